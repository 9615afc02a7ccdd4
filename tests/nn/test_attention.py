"""Attention beside NumPy transcriptions of the papers, and its gradients."""

import numpy as np
import pytest
import torch

from elman import nn as enn
from elman.nn import penalties

B, T, S, D, M, A, K = 2, 3, 5, 4, 6, 7, 2


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


def test_soft_window_is_that_of_the_paper():
    """Graves 2013, eqs 46 to 51, one step after another."""
    torch.manual_seed(3)
    window = enn.SoftWindow(D, K, pace=0.3).double()
    query = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    memory = torch.randn(B, S, M, dtype=torch.float64, requires_grad=True)
    start = torch.rand(B, K, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(B, S, dtype=torch.bool)
    mask[1, 3:] = False
    contexts, weights, places = window(query, memory, start, mask)
    weight, bias = (one.detach().numpy() for one in (window.numbers.weight, window.numbers.bias))
    for b in range(B):
        kappa = start[b].detach().numpy()
        for t in range(T):
            alpha, beta, pace = np.exp(weight @ query[b, t].detach().numpy() + bias).reshape(3, K)
            kappa = kappa + pace
            phi = [
                sum(alpha[k] * np.exp(-beta[k] * (kappa[k] - u) ** 2) for k in range(K)) * mask[b, u - 1].item()
                for u in range(1, S + 1)
            ]
            np.testing.assert_allclose(places[b, t].detach().numpy(), kappa, rtol=1e-12)
            np.testing.assert_allclose(weights[b, t].detach().numpy(), phi, rtol=1e-12)
            np.testing.assert_allclose(contexts[b, t].detach().numpy(), phi @ memory[b].detach().numpy(), rtol=1e-12)
    assert torch.autograd.gradcheck(lambda *given: window(*given, mask=mask), (query, memory, start))


def test_soft_window_goes_on_step_by_step():
    torch.manual_seed(3)
    window, query, memory = enn.SoftWindow(D, K), torch.randn(B, T, D), torch.randn(B, S, M)
    whole, place, steps = window(query, memory), None, []
    for t in range(T):
        context, weights, place = window(query[:, t : t + 1], memory, place)
        steps.append((context, weights, place))
        place = place[:, -1]
    for ours, expected in zip(map(torch.cat, zip(*steps, strict=True), [1] * 3), whole, strict=True):
        torch.testing.assert_close(ours, expected)


def test_soft_window_begins_at_its_pace():
    window = enn.SoftWindow(D, K, pace=0.25)
    _, _, places = window(torch.zeros(B, T, D), torch.zeros(B, S, M))
    torch.testing.assert_close(places, 0.25 * torch.arange(1.0, T + 1).view(1, T, 1).expand(B, T, K))
    for wrong in ({"components": 0}, {"pace": 0.0}):
        with pytest.raises(ValueError, match="they must be 1 or more, and above 0"):
            enn.SoftWindow(D, **wrong)
