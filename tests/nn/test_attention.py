"""Attention beside NumPy transcriptions of the papers, and its gradients."""

import numpy as np
import pytest
import torch

from elman import nn as enn
from elman.nn import penalties

B, T, S, D, M, A = 2, 3, 5, 4, 6, 7


def made():
    torch.manual_seed(2)
    attention = enn.AdditiveAttention(D, M, A).double()
    query = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    return attention, query, torch.randn(B, S, M, dtype=torch.float64, requires_grad=True)


def transcription(attention, h, memory, read):
    """Bahdanau et al. 2015, appendix A.1.2, for one query and one memory; positions that are not read are left out."""
    w, u, v = (one.detach().numpy() for one in (attention.query.weight, attention.memory.weight, attention.vector))
    scores = np.array([v @ np.tanh(w @ h + u @ m) if one else -np.inf for m, one in zip(memory, read, strict=True)])
    weights = np.exp(scores) / np.exp(scores).sum()
    return weights @ memory, weights


def test_additive_attention_is_that_of_the_paper():
    attention, query, memory = made()
    mask = torch.ones(B, S, dtype=torch.bool)
    mask[1, 3:] = False
    for given in (None, mask):
        contexts, weights = attention(query, memory, mask=given)
        for b, t in np.ndindex(B, T):
            place = (
                query[b, t].detach().numpy(),
                memory[b].detach().numpy(),
                (mask if given is not None else ~mask | mask)[b],
            )
            for ours, expected in zip((contexts, weights), transcription(attention, *place), strict=True):
                np.testing.assert_allclose(ours[b, t].detach().numpy(), expected, rtol=1e-12)
    assert not weights[1, :, 3:].any()
    again = attention(query, memory, attention.keys(memory), mask)
    torch.testing.assert_close(again, (contexts, weights))
    assert torch.autograd.gradcheck(lambda *given: attention(*given, mask=mask), (query, memory))


def test_coverage_is_that_of_the_paper():
    """Xu et al. 2015, eq. 14: lambda sum_i (1 - sum_t alpha_ti)^2, a mean over the batch."""
    weights = torch.rand(B, T, S, dtype=torch.float64, requires_grad=True)
    alpha = weights.detach().numpy()
    mask = torch.tensor([[True, True, True], [True, False, False]])
    whole = [sum((1 - sum(alpha[b, t, i] for t in range(T))) ** 2 for i in range(S)) for b in range(B)]
    assert penalties.coverage(weights, 0.3).item() == pytest.approx(0.3 * np.mean(whole))
    whole[1] = sum((1 - alpha[1, 0, i]) ** 2 for i in range(S))
    assert penalties.coverage(weights, 0.3, mask).item() == pytest.approx(0.3 * np.mean(whole))
    assert torch.autograd.gradcheck(lambda one: penalties.coverage(one, 0.3, mask), weights)
