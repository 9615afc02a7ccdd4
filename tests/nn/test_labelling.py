"""Transducers and beams beside NumPy transcriptions, and beside sums over all alignments."""

import itertools
import math

import numpy as np
import pytest
import torch

from elman import nn as enn
from elman.nn import functional as F


def lattice(*shape):
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=torch.float64).log_softmax(-1)


def transcription(log_probs, targets, blank):
    """Graves 2012, eqs 16-22, of one sequence: alpha and beta, and p from both."""
    p, (T, U) = np.exp(log_probs), (len(log_probs), len(targets))
    alpha, beta = np.zeros((T, U + 1)), np.zeros((T, U + 1))
    for t, u in np.ndindex(T, U + 1):
        alpha[t, u] = (t == u == 0) + (t and alpha[t - 1, u] * p[t - 1, u, blank])
        alpha[t, u] += u and alpha[t, u - 1] * p[t, u - 1, targets[u - 1]]
    for t, u in reversed(list(np.ndindex(T, U + 1))):
        if (t, u) == (T - 1, U):
            beta[t, u] = p[t, u, blank]
        else:
            beta[t, u] = (beta[t + 1, u] * p[t, u, blank] if t + 1 < T else 0) + (
                beta[t, u + 1] * p[t, u, targets[u]] if u < U else 0
            )
    for n in range(1, T + U):  # eq. 22, on every diagonal
        total = sum(alpha[t, n - t] * beta[t, n - t] for t in range(T) if 0 <= n - t <= U)
        assert total == pytest.approx(beta[0, 0])
    return alpha[T - 1, U] * p[T - 1, U, blank]


@pytest.mark.parametrize("blank", [0, 4])
def test_the_transducer_is_that_of_the_paper(blank):
    log_probs = lattice(4, 5, 4, 5).requires_grad_()
    targets = torch.tensor([[1, 1, 3], [2, 3, 1], [3, 0, 0], [0, 0, 0]])
    if not blank:
        targets = torch.where(targets == 0, 2, targets)
    frames, lengths = torch.tensor([5, 3, 1, 4]), torch.tensor([3, 2, 1, 0])
    nll = F.transducer_nll(log_probs, targets, frames, lengths, blank=blank, reduction="none")
    for b, (T, U) in enumerate(zip(frames, lengths, strict=True)):
        one = log_probs[b, :T, : U + 1].detach().numpy()
        assert nll[b].item() == pytest.approx(-math.log(transcription(one, targets[b, :U].tolist(), blank)))
    assert F.transducer_nll(log_probs, targets, frames, lengths, blank=blank).item() == pytest.approx(nll.mean().item())
    whole = F.transducer_nll(log_probs, targets, frames, lengths, blank=blank, reduction="sum")
    torch.testing.assert_close(whole, nll.sum())

    def of(z):
        return F.transducer_nll(z.log_softmax(-1), targets, frames, lengths, blank=blank, reduction="none")

    assert torch.autograd.gradcheck(of, (log_probs,))


def test_long_sequences_stay_finite_and_improbable_ones_have_gradients():
    logits = (40 * torch.randn(1, 400, 60, 7)).requires_grad_()
    targets = torch.randint(1, 7, (1, 59))
    F.transducer_nll(logits.log_softmax(-1), targets, torch.tensor([400]), torch.tensor([59])).backward()
    assert logits.grad.isfinite().all()


def all_labels(V, most):
    return [one for n in range(most + 1) for one in itertools.product(range(1, V), repeat=n)]


def collapsed(path):
    return tuple(k for k, _ in itertools.groupby(path) if k)


def test_the_ctc_beam_sums_alignments():
    T, V = 5, 3
    log_probs = lattice(T, V)
    sums = dict.fromkeys(all_labels(V, T), 0.0)
    for path in itertools.product(range(V), repeat=T):
        sums[collapsed(path)] += math.exp(sum(log_probs[t, k].item() for t, k in enumerate(path)))
    found = enn.ctc_beam(log_probs, width=10_000)
    assert {one.labels: one.log_prob for one in found if one.log_prob > -math.inf} == pytest.approx(
        {labels: math.log(p) for labels, p in sums.items() if p}
    )
    assert [one.log_prob for one in found] == sorted((one.log_prob for one in found), reverse=True)
    best = found[0]
    nll = torch.nn.functional.ctc_loss(log_probs, torch.tensor([best.labels]), [T], [len(best.labels)], reduction="sum")
    assert best.log_prob == pytest.approx(-nll.item())
    assert [one.labels for one in enn.ctc_beam(log_probs, width=8)[:2]] == [one.labels for one in found[:2]]


def test_the_transducer_beam_sums_alignments():
    T, V, most = 4, 3, 2
    torch.manual_seed(0)
    table = torch.randn(T, most * T + 1, V, dtype=torch.float64).log_softmax(-1)  # p(k | t, u)

    def log_probs(t, labels):
        return table[t, [len(one) for one in labels]]

    found = enn.transducer_beam(log_probs, T, width=10_000, most=most)
    for one in found:
        p = 0.0
        for counts in itertools.product(range(most + 1), repeat=T):
            if sum(counts) == len(one.labels):
                u, total = 0, 0.0
                for t, n in enumerate(counts):
                    total += sum(table[t, u + i, one.labels[u + i]].item() for i in range(n))
                    u += n
                    total += table[t, u, 0].item()
                p += math.exp(total)
        assert one.log_prob == pytest.approx(math.log(p))
    assert len(found) == len(all_labels(V, most * T))
    short = [one for one in found if len(one.labels) <= most]  # every alignment is allowed
    for one in short:
        U = len(one.labels)
        targets = torch.tensor([one.labels or [1]])[:, : max(U, 1)]
        grid = table[None, :, : targets.shape[1] + 1]
        assert F.transducer_nll(grid, targets, torch.tensor([T]), torch.tensor([U])).item() == pytest.approx(
            -one.log_prob
        )


@pytest.mark.parametrize("width", [3, 10_000])
def test_a_prior_is_added_for_each_label_and_for_the_end(width):
    T, V = 5, 4
    log_probs, weights = lattice(T, V), {k: torch.randn(V).tolist() for k in range(V)}

    def prior(labels):
        return weights[labels[-1] if labels else 0]

    for found in (
        enn.ctc_beam(log_probs, width, prior=prior),
        enn.transducer_beam(lambda t, labels: log_probs[t].expand(len(labels), -1), T, width, prior=prior),
    ):
        scores = [one.log_prob + one.prior for one in found]
        assert scores == sorted(scores, reverse=True)
        for one in found:
            path = [0, *one.labels]
            expected = sum(weights[a][b] for a, b in itertools.pairwise(path)) + weights[path[-1]][0]
            assert one.prior == pytest.approx(expected)


def test_a_mean_of_levels_is_that_of_the_paper():
    """Peters et al. 2018, eq. 1."""
    mix = enn.ScalarMix(3).double()
    levels = torch.randn(3, 2, 5, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(mix(levels), levels.mean(0))
    with torch.no_grad():
        mix.w.copy_(torch.tensor([1.0, -2.0, 0.5]))
        mix.gamma.fill_(3.0)
    w = np.array([1.0, -2.0, 0.5])
    s = np.exp(w) / np.exp(w).sum()
    expected = sum(3.0 * s[j] * levels[j].detach().numpy() for j in range(3))
    np.testing.assert_allclose(mix(list(levels)).detach().numpy(), expected)
    np.testing.assert_allclose(mix.weights.detach().numpy(), s)
    assert torch.autograd.gradcheck(
        lambda h, w, gamma: torch.func.functional_call(mix, {"w": w, "gamma": gamma}, (h,)),
        (levels, mix.w, mix.gamma),
    )
    with pytest.raises(ValueError, match="2 levels for 3 weights"):
        mix(levels[:2])


@pytest.mark.parametrize(
    ("core", "blank"), [(None, 0), (enn.LSTM(5, 5), 3), (enn.GRU(5, 5), 0), (torch.nn.GRU(5, 5), 3)]
)
def test_a_transducer_joins_frames_and_labels(core, blank):
    """Graves et al. 2013, section 3.2: the loss on its lattice, also beside padding, and the beam that searches it."""
    T, D, V, H = 3, 3, 4, 5
    torch.manual_seed(1)
    transducer = enn.Transducer(D, V, H, core, blank).double()
    frames = torch.randn(T, 2, D, dtype=torch.float64, requires_grad=True)
    targets, sizes, lengths = torch.tensor([[1, 2], [2, 2]]), torch.tensor([2, 1]), torch.tensor([3, 2])
    lattice = transducer(frames, targets)
    assert lattice.shape == (2, T, 3, V)
    said, _ = transducer.core(transducer.labels(torch.tensor([[blank], [1], [2]])))
    w, u, v = (one.weight.detach().numpy() for one in (transducer.of_frame, transducer.of_labels, transducer.joint))
    b, c = (one.bias.detach().numpy() for one in (transducer.of_frame, transducer.joint))
    for t, n in np.ndindex(T, 3):
        f, p = frames[t, 0].detach().numpy(), said[n, 0].detach().numpy()
        logits = v @ np.tanh(w @ f + u @ p + b) + c
        expected = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(lattice[0, t, n].detach().exp().numpy(), expected)
    nll = transducer.nll(frames, targets, lengths, sizes, reduction="none")
    alone = transducer.nll(frames[:2, 1:], targets[1:, :1], lengths[1:], sizes[1:])
    torch.testing.assert_close(nll[1], alone)
    for k, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        found = {one.labels: one for one in transducer.beam(frames[:length, k], width=10_000)}
        assert found[tuple(targets[k, :size].tolist())].log_prob == pytest.approx(-nll[k].item())
    nll.sum().backward()
    assert all(one.grad.isfinite().all() and one.grad.any() for one in [frames, *transducer.parameters()])
    assert not frames.grad[2:, 1].any()


@pytest.mark.parametrize(
    ("targets", "frames", "lengths", "line"),
    [
        ([[1, 2], [3, 1]], [0, 2], [2, 1], "frames are from 1 to 3, and lengths from 0 to 2"),
        ([[1, 2], [3, 1]], [4, 2], [2, 1], "frames are from 1 to 3"),
        ([[1, 2], [3, 1]], [3, 2], [-1, 1], "lengths from 0 to 2"),
        ([[1, 2], [3, 1]], [3, 2], [3, 1], "lengths from 0 to 2"),
        ([[1, 2]], [3, 2], [2, 1], r"\[B, T, U \+ 1, V\], \[B, U\], \[B\] and \[B\] are read"),
        ([[1, 2], [3, 1]], [3], [2], "are read"),
    ],
)
def test_lattices_that_do_not_fit(targets, frames, lengths, line):
    given = (torch.tensor(one) for one in (targets, frames, lengths))
    with pytest.raises(ValueError, match=line):
        F.transducer_nll(lattice(2, 3, 3, 4), *given)


@pytest.mark.parametrize("wrong", [{"width": 0}, {"blank": -1}, {"blank": 4}])
def test_beams_that_cannot_search(wrong):
    line = "a beam is 1 or more wide, and the blank is a label"
    with pytest.raises(ValueError, match=line):
        enn.ctc_beam(lattice(3, 4), **wrong)
    if wrong != {"blank": 4}:
        with pytest.raises(ValueError, match=line):
            enn.transducer_beam(lambda _, labels: lattice(len(labels), 4), 3, **wrong)
