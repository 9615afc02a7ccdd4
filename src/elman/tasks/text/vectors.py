"""Word vectors to begin training with: a factorisation of which words stand near which in the training text.

A pair of words d <= window tokens apart counts 1 / d, in both orders; c_ij is the sum for words i and j. With
c_i = sum_j c_ij, s_j = c_j^0.75 and S = sum_j s_j the positive pointwise mutual information is

    M_ij = max(0, log (c_ij S / (c_i s_j))),

and with M ~ U diag(sigma) W^T of rank E the vectors are the rows of U diag(sqrt(sigma)) (Levy & Goldberg 2014; the
power 0.75 and the root follow Levy, Goldberg & Dagan 2015). They spare the network the first part of its training: in
a race of some minutes nothing else gains as much (docs/training.md).
"""

import numpy as np
import torch
from torch import Tensor

from elman.errors import UserError, notice
from elman.network.encoders.lookup import Cooccurrence, LookupEncoder
from elman.network.model import LanguageModel

MOST = 10_000_000
"""Tokens at most, from the beginning of the text, that are counted: memory grows with the pairs that differ."""

SMOOTHING = 0.75  # the power of the frequency of the second word, without which rare words dominate
OVERSAMPLING = 10
"""Directions that the randomised factorisation follows beyond those that are kept (Halko, Martinsson & Tropp 2011)."""


def mutual_information(tokens: np.ndarray, num_words: int, window: int) -> Tensor:
    """The matrix M [V, V], sparse, of a text [N] of words below V."""
    text = torch.from_numpy(np.array(tokens[:MOST], dtype=np.int64))
    reach = range(1, min(window, len(text) - 1) + 1)
    pairs = torch.cat([text[:-distance] * num_words + text[distance:] for distance in reach])
    weights = torch.cat([torch.full((len(text) - distance,), 1 / distance) for distance in reach])
    found, place = torch.unique(pairs, return_inverse=True)
    counts = torch.zeros(len(found)).index_add_(0, place, weights)
    one_way = _matrix(torch.stack([found // num_words, found % num_words]), counts, num_words)
    both = (one_way + one_way.t()).coalesce()
    at, counts = both.indices(), both.values()
    total = torch.zeros(num_words).index_add_(0, at[0], counts)
    smoothed = total**SMOOTHING
    information = (counts * smoothed.sum() / (total[at[0]] * smoothed[at[1]])).log()
    positive = information > 0
    return _matrix(at[:, positive], information[positive], num_words)


def _matrix(at: Tensor, values: Tensor, num_words: int) -> Tensor:
    return torch.sparse_coo_tensor(at, values, (num_words, num_words), check_invariants=False).coalesce()


def vectors(tokens: np.ndarray, num_words: int, size: int, record: Cooccurrence) -> Tensor:
    """Vectors [V, min(E, V)] for a text [N] of words below V; words without pairs have zeros.

    The factorisation is randomised, from torch's global random state.
    """
    matrix = mutual_information(tokens, num_words, record.window)
    size = min(size, num_words)
    directions, values, _ = torch.svd_lowrank(matrix, q=min(num_words, size + OVERSAMPLING))
    found = directions[:, :size] * values[:size].sqrt()
    return found * (record.std / found.square().mean().sqrt())


@torch.no_grad()
def begin_with_cooccurrence(record: Cooccurrence, model: LanguageModel, tokens: np.ndarray) -> None:
    """Begin with vectors of the training text; words without pairs keep random ones.

    Raises UserError where the text is a single token.
    """
    assert isinstance(model.encoder, LookupEncoder)
    if len(tokens) < 2:
        raise UserError("model.encoder.cooccurrence: the training text has no pair of tokens; leave it out")
    if len(tokens) > MOST:
        notice(f"model.encoder.cooccurrence: the first {MOST:,} of {len(tokens):,} tokens are counted")
    found = vectors(tokens, len(model.encoder.weight), model.encoder.weight.shape[1], record)
    occurring = found.abs().sum(1) > 0
    model.encoder.weight[occurring, : found.shape[1]] = found[occurring]
