"""The theorem of the softmax bottleneck: d units suffice exactly if d is the minimal rank over all shifts of rows.

Logits and log-probabilities A [T, V] differ by one number per row, so softmax can say A with d units (no bias) if and
only if some matrix of F(A) = { A + shift 1' } has a rank of at most d (Yang et al. 2018, Properties 1 and 2; Kanai's
thesis, theorem 4.1 and A.2). The least is the rank of A with every row's mean taken off; it is rank(A) - 1, or
rank(A) where the vector of ones is no combination of the rows.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

from elman.network.output.flat import FlatChoice

DRAW = np.random.default_rng(4)


def exact_rank(matrix):
    """The rank of a matrix of whole numbers or fractions, by elimination without rounding."""
    rows, found = [[Fraction(entry) for entry in row] for row in matrix], 0
    for column in range(len(rows[0])):
        pivot = next((index for index in range(found, len(rows)) if rows[index][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for index in range(found + 1, len(rows)):
            factor = rows[index][column] / rows[found][column]
            rows[index] = [entry - factor * top for entry, top in zip(rows[index], rows[found], strict=True)]
        found += 1
    return found


def shifted(matrix, shifts):
    return [[Fraction(entry) + shift for entry in row] for row, shift in zip(matrix, shifts, strict=True)]


def centred(matrix):
    return shifted(matrix, [-Fraction(sum(row)) / len(row) for row in matrix])


MATRICES = {
    "full rank": [[1, 2, 0, 5], [0, 3, 1, 1], [2, 2, 7, 0]],
    "ones among the combinations of its rows": [[1, 1, 1, 1], [2, 2, 2, 2], [0, 1, 3, 4]],
    "rank one, rows alike": [[1, 2, 3, 5], [1, 2, 3, 5], [2, 4, 6, 10]],
    "rank one, rows of ones": [[1, 1, 1, 1], [3, 3, 3, 3], [-2, -2, -2, -2]],
    "rank two, ones by their difference": [[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
}
RANKS = {
    "full rank": (3, 3),
    "ones among the combinations of its rows": (2, 1),
    "rank one, rows alike": (1, 1),
    "rank one, rows of ones": (1, 0),
    "rank two, ones by their difference": (2, 1),
}
"""The rank of each matrix, and the least of its shifts: one less if the ones are a combination of the rows."""


@pytest.mark.parametrize("name", MATRICES)
def test_the_ranks_of_all_shifts_differ_by_at_most_one_and_the_least_is_that_of_centred_rows(name):
    matrix, (rank, least) = MATRICES[name], RANKS[name]
    assert (exact_rank(matrix), exact_rank(centred(matrix))) == (rank, least)
    ones = exact_rank([*matrix, [1, 1, 1, 1]]) == rank
    assert least == rank - ones
    found = {
        exact_rank(shifted(matrix, shifts)) for shifts in itertools.product((-3, -1, 0, 1, Fraction(1, 2)), repeat=3)
    }
    assert found <= {least, least + 1}
    assert rank in found


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def flat(W):
    """Softmax without a bias over the rows of W [V, d]."""
    return FlatChoice(torch.nn.Parameter(torch.from_numpy(W)), bias=False)


def spoken(W, H):
    """The log-probabilities [T, V] of softmax with vectors W [V, d] after contexts H [T, d]."""
    return flat(W).log_probs(torch.from_numpy(H).unsqueeze(1)).squeeze(1).detach().numpy()


def factors(A, d):
    """Contexts and vectors whose logits are the best approximation of rank d of A with centred rows."""
    u, values, vh = np.linalg.svd(A - A.mean(1, keepdims=True))
    return u[:, :d] * values[:d], np.ascontiguousarray(vh[:d].T), values


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_so_many_units_say_any_distributions_exactly_and_one_fewer_cannot(needed):
    """T = 6 positions, V = 5 words; the rank of log-probabilities of `needed` units is needed + 1 (theorem 4.1)."""
    A = log_softmax(DRAW.normal(size=(6, needed)) @ DRAW.normal(size=(needed, 5)))
    assert np.linalg.matrix_rank(A) == needed + 1
    assert np.linalg.matrix_rank(A - A.mean(1, keepdims=True)) == needed
    H, W, values = factors(A, needed)
    np.testing.assert_allclose(spoken(W, H), A, atol=1e-12)
    # One fewer: whatever H, W, the centred logits are off by the last singular value or more (Eckart & Young 1936).
    H, W, _ = factors(A, needed - 1)
    others = [(DRAW.normal(size=H.shape), DRAW.normal(size=W.shape)) for _ in range(20)]
    distances = [np.linalg.norm(_centre(spoken(w, h)) - _centre(A)) for h, w in [(H, W), *others]]
    assert values[needed - 1] > 0.05
    assert distances[0] == pytest.approx(values[needed - 1])
    assert min(distances) == distances[0]


def test_rank_minus_one_is_necessary_and_not_always_enough():
    """One distribution at every position: rank(A) = 1, yet no constant logits say it; uniform: none are needed."""
    p = np.array([[0.5, 0.3, 0.2]] * 4)
    H, W, _ = factors(np.log(p), 1)
    assert np.linalg.matrix_rank(np.log(p)) == 1
    np.testing.assert_allclose(np.exp(spoken(W, H)), p)
    nothing = np.exp(spoken(np.zeros((3, 1)), np.zeros((4, 1))))
    np.testing.assert_allclose(nothing, 1 / 3)
    assert np.linalg.matrix_rank(_centre(np.log(nothing)), tol=1e-12) == 0


def _centre(A):
    return A - A.mean(1, keepdims=True)
