"""A network and n-gram models as one model: p = w_0 p_network + sum over i of w_i p_i, word by word.

The mixture is a `LanguageModel`, whose state is the network's with the last words that were read, so that
whatever scores, ranks or draws with a network does so with the mixture. Weights are found on held-out text.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from elman.evaluation.ngram.table import NOTHING
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import State

if TYPE_CHECKING:
    from elman.evaluation.ngram.alignment import AlignedNGram


class Mixture(LanguageModel):
    """A network mixed with n-gram models over its vocabulary, which have the given weights, the network the rest.

    Its state is (state of the network, the last words [B, N - 1]), where N is the highest order and -1 stands before
    the beginning of a text. `trace` is the network's.
    """

    def __init__(self, network: LanguageModel, ngrams: "Sequence[AlignedNGram]", weights: Sequence[float]) -> None:
        super().__init__(network.encoder, network.core, network.output)
        assert len(ngrams) == len(weights) > 0
        assert 0 < sum(weights) < 1, "the network has the rest"
        self.network, self.ngrams, self.weights = [network], list(ngrams), list(weights)
        self.training = network.training
        self._kept = max(1, *(ngram.order - 1 for ngram in ngrams))

    def knowing(self, words: Sequence[str]) -> "Mixture":
        """The same mixture that also reads these words by their spelling, the n-gram models among it."""
        return Mixture(self.network[0].knowing(words), [ngram.knowing(words) for ngram in self.ngrams], self.weights)

    def begin(self, batch: int) -> State:
        """The state of `batch` texts that have not begun."""
        nothing = torch.full((batch, self._kept), NOTHING, device=self.device)
        return self.network[0].begin(batch), nothing

    def trace(self, inputs: Tensor, state: State) -> tuple[Trace, State]:
        """The trace of the network over inputs [T, B], and the state of the mixture after them."""
        inner, before = state
        trace, inner = self.network[0].trace(inputs, inner)
        assert isinstance(before, Tensor)
        return trace, (inner, torch.cat([before, inputs.t()], 1)[:, -self._kept :])

    def log_prob(self, inputs: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probability [T, B] (nats) of targets [T, B], each given the inputs up to its position."""
        trace, after = self.trace(inputs, state)
        found = [self.output.log_prob(trace, targets)]
        read = self._read(inputs, state)
        # Of a stream of words each is predicted from those read before it; the first of these are no targets.
        words = np.concatenate([np.zeros((len(read), self._kept + 1), np.int64), targets.t().cpu().numpy()], 1)
        read = np.concatenate([read, np.full((len(read), 1), NOTHING)], 1)
        for ngram in self.ngrams:
            log_prob = ngram.score(words, read)[:, self._kept + 1 :]
            found.append(torch.from_numpy(log_prob.T.copy()).to(found[0]))
        return self._mixed(found), after

    def log_probs(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities [T, B, V] of the symbol that follows each position of inputs [T, B]."""
        trace, after = self.trace(inputs, state)
        found = [self.output.log_probs(trace)]
        read = self._read(inputs, state)
        for ngram in self.ngrams:
            last = ngram.log_probs(read)[:, self._kept :]
            found.append(torch.from_numpy(last.swapaxes(0, 1).copy()).to(found[0]))
        return self._mixed(found), after

    def _read(self, inputs: Tensor, state: State) -> np.ndarray:
        """What was read, [B, N - 1 + T]."""
        before = state[1]
        assert isinstance(before, Tensor)
        return torch.cat([before, inputs.t()], 1).cpu().numpy()

    def _mixed(self, log_probs: list[Tensor]) -> Tensor:
        weights = [1 - sum(self.weights), *self.weights]
        parts = [part + math.log(weight) for part, weight in zip(log_probs, weights, strict=True)]
        return torch.logsumexp(torch.stack(parts), 0)


ITERATIONS, CHANGE = 1000, 1e-6  # the weights are found after this many steps, or once none changes by more


def best_weights(log_probs: Sequence[np.ndarray]) -> list[float]:
    """The weights, which sum to one, that make a text most probable under the mixture of M models.

    `log_probs` [n] (nats), one array for each model: of the text's tokens; a token that has none (NaN) under a model is
    not counted. Each step sets a weight to the mean share that its model has in the probability of a token,
    as SRILM's `compute-best-mix` does; the likelihood is concave in the weights, so there is one maximum.

    Example:
        >>> [round(weight, 3) for weight in best_weights([np.log([0.9, 0.1, 0.9]), np.log([0.1, 0.9, 0.1])])]
        [0.708, 0.292]
    """
    stacked = np.stack([part.astype(np.float64) for part in log_probs])
    stacked = stacked[:, ~np.isnan(stacked).any(axis=0)]
    stacked = stacked[:, np.isfinite(stacked).any(axis=0)]
    relative = np.exp(stacked - stacked.max(axis=0))
    weights = np.full(len(stacked), 1 / len(stacked))
    for _ in range(ITERATIONS):
        shares = weights[:, None] * relative
        improved = (shares / shares.sum(axis=0)).mean(axis=1)
        done = np.abs(improved - weights).max() < CHANGE
        weights = improved
        if done:
            break
    return [float(weight) for weight in weights / weights.sum()]
