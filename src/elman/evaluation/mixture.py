"""What the components of a mixture do over a text: their weights, what each predicts, how evenly they are used.

T positions, K components, V words.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.windows import EvaluationWindows
from elman.errors import UserError
from elman.evaluation.perplexity import traces
from elman.evaluation.rank import num_words
from elman.model import LanguageModel
from elman.objective.penalties import squared_variation
from elman.output.choice import Choice
from elman.output.contexts import Mixture

_ELEMENTS = 1 << 24
"""How many log-probabilities a window may hold."""


class Reading(NamedTuple):
    """What was found at every position of a text, before its token was read.

    Attributes:
        levels: the layer of each component, [K]; 0 is the embedding.
        prior: the weights, [T, K].
        entropy: of the distribution of each component, bits, [T, K].
        top: the most probable words of each component, [T, K, n].
        top_prob: and their probabilities, [T, K, n].
        component_log_prob: of the token under each component, nats, [T, K].

    """

    levels: list[int]
    prior: np.ndarray
    entropy: np.ndarray
    top: np.ndarray
    top_prob: np.ndarray
    component_log_prob: np.ndarray

    @property
    def log_prob(self) -> np.ndarray:
        """Of the token under the mixture, nats, [T]."""
        return np.logaddexp.reduce(np.log(self.prior) + self.component_log_prob, axis=-1)

    @property
    def responsibility(self) -> np.ndarray:
        """The share of each component in the probability of the token, [T, K]."""
        return self.prior * np.exp(self.component_log_prob - self.log_prob[:, None])

    @property
    def names(self) -> list[str]:
        """As "layer 2.1" for the first component of layer 2, [K]."""
        return [f"layer {level}.{self.levels[: at + 1].count(level)}" for at, level in enumerate(self.levels)]

    @property
    def by_level(self) -> dict[int, np.ndarray]:
        """The weights of every layer's components together, [T]."""
        levels = np.array(self.levels)
        return {level: self.prior[:, levels == level].sum(-1) for level in dict.fromkeys(self.levels)}

    @property
    def variation(self) -> float:
        """The coefficient of variation of the summed weights (Takase et al. 2018, eqs 12-13): 0 where all are alike."""
        return math.sqrt(float(squared_variation(torch.from_numpy(self.prior.sum(0)))))


def effective_number(weights: np.ndarray) -> np.ndarray:
    """How many components are in use: exp of the entropy of weights [..., K], between 1 and K.

    Example:
        >>> effective_number(np.array([0.5, 0.5, 0.0])).round(3).item()
        2.0

    """
    logs = np.log(np.where(weights > 0, weights, 1.0))
    return np.exp(-(weights * logs).sum(-1))


def read_mixture(
    model: LanguageModel, tokens: np.ndarray, first: int, top: int = 5, *, inputs: np.ndarray | None = None
) -> Reading:
    """Read a stream, the state carried, and keep what every component says.

    Args:
        model: a model whose output is a mixture, in evaluation mode.
        tokens: the stream, [T], T > 0.
        first: the symbol before it.
        top: how many words to keep of each component.
        inputs: what is read in place of the stream, [T]; see `scoring.score_sentences`.

    Raises:
        UserError: its output is no mixture.

    """
    contexts = model.output.contexts
    if not isinstance(contexts, Mixture):
        raise UserError(
            "the run's output is a single distribution, no mixture; give a run whose recipe has"
            ' model.output.contexts.kind = "mixture"'
        )
    levels = [level for level, count in contexts.heads.items() for _ in range(count)]
    windows = list(_read(model, tokens, first, inputs, len(levels), top))
    return Reading(levels, *(torch.cat(parts).cpu().numpy() for parts in zip(*windows, strict=True)))


@torch.inference_mode()
def _read(
    model: LanguageModel, tokens: np.ndarray, first: int, inputs: np.ndarray | None, num_components: int, top: int
) -> Iterator[tuple[Tensor, ...]]:
    choice = model.output.choice
    assert isinstance(choice, Choice), "words, not frames of notes"
    length = max(1, min(256, _ELEMENTS // (num_components * num_words(model))))
    for batch, _, trace in traces(model, EvaluationWindows(tokens, first, length=length, inputs=inputs)):
        targets = batch.targets.flatten()
        vectors, log_prior = model.output.contexts(trace)
        each = choice.log_probs(vectors.flatten(0, 1)).double()
        probs = each.exp()
        # An impossible word has no share in the entropy: 0 log 0 = 0.
        entropy = torch.special.entr(probs).sum(-1) / math.log(2)
        best = probs.topk(min(top, probs.shape[-1]))
        said = each.gather(-1, targets.view(-1, 1, 1).expand(-1, num_components, 1)).squeeze(-1)
        yield log_prior.flatten(0, 1).double().exp(), entropy, best.indices, best.values, said
