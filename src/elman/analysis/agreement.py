"""Number agreement and trajectories of a model on sentences whose parse is known.

Elman 1991; Linzen, Dupoux & Goldberg 2016. N words in a sentence, V in the vocabulary, H hidden units.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from elman.data.batches import stack_sequences
from elman.data.grammar.exact import Oracle
from elman.data.grammar.rules import Grammar
from elman.data.grammar.sample import Dependency, Sentence
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError
from elman.evaluation.statistics import Proportion, spread
from elman.network.model import LanguageModel

Array = npt.NDArray[np.float64]


class Judged(NamedTuple):
    """One verb, as the model predicted it; `correct`: P(right form) > P(wrong form).

    The masses are the probabilities of all verbs of the right number, and of all of the other.
    """

    dependency: Dependency
    correct: bool
    right_mass: float
    wrong_mass: float

    @property
    def share(self) -> float:
        """The share of the right number in the probability of verbs."""
        total = self.right_mass + self.wrong_mass
        return self.right_mass / total if total else 0.5


class AgreementLine(NamedTuple):
    """The verbs of one kind: a row of a table.

    A verb counts as right if its right form is more probable than the wrong one; a tie does not. `share` is the mean
    share of the right number in the probability of verbs, `margin` half of its 95 % interval (Student's t).
    """

    label: str
    accuracy: Proportion
    share: float
    margin: float


class SentenceOutput(NamedTuple):
    """Log-probabilities [N+1, V] and hidden states [N+1, H] along a sentence, after `<eos>` and after each word."""

    log_probs: np.ndarray
    states: np.ndarray


def require_words(grammar: Grammar, vocabulary: Vocabulary) -> None:
    """Raises UserError where the model does not know a word of the grammar."""
    missing = [word for word in grammar.vocabulary if word not in vocabulary.ids]
    if missing:
        raise UserError(
            f"the model does not know {len(missing)} of the {len(grammar.vocabulary)} words of {grammar.name}"
            f" ({', '.join(missing[:5])}); train on this grammar, or name that of the model with --grammar"
        )


@torch.inference_mode()
def predictions(
    model: LanguageModel, vocabulary: Vocabulary, found: Sequence[Sentence], first: int, batch_size: int = 128
) -> Iterator[SentenceOutput]:
    """The output of the model along each sentence, all independent of each other."""
    for start in range(0, len(found), batch_size):
        ids = [vocabulary.encode([*sentence.words, EOS]) for sentence in found[start : start + batch_size]]
        batch, lengths = stack_sequences(ids, first)
        trace, _ = model.trace(batch.inputs.to(model.device), model.begin(len(ids)))
        log_probs, states = model.output.log_probs(trace).float().cpu().numpy(), trace.raw[-1].float().cpu().numpy()
        for column, length in enumerate(lengths):
            yield SentenceOutput(log_probs[:length, column], states[:length, column])


def judge(grammar: Grammar, vocabulary: Vocabulary, sentence: Sentence, log_probs: np.ndarray) -> list[Judged]:
    """Every verb of a sentence; `log_probs` [N+1, V] before each word."""
    found, ids = [], vocabulary.ids
    for one in sentence.dependencies:
        before = log_probs[one.verb]
        masses = {
            number: float(np.exp(before[[ids[word] for word in grammar.verb_forms(number)]]).sum())
            for number in sorted({grammar.number[verb] for verb in grammar.verbs})
        }
        right = masses.pop(one.number)
        correct = bool(before[ids[one.right]] > before[ids[one.wrong]])
        found.append(Judged(one, correct, right, sum(masses.values())))
    return found


def table(
    judged: Sequence[Judged], kind: Callable[[Dependency], int], label: Callable[[int], str]
) -> list[AgreementLine]:
    """A line for each kind of dependency, in the order of the kinds."""
    ordered = sorted(judged, key=lambda one: kind(one.dependency))
    return [line(label(key), list(group)) for key, group in groupby(ordered, lambda one: kind(one.dependency))]


def line(label: str, judged: Sequence[Judged]) -> AgreementLine:
    """The accuracy and the share of some verbs."""
    shares = [one.share for one in judged]
    found, mean = spread(shares), float(np.mean(shares)) if shares else math.nan
    accuracy = Proportion(sum(one.correct for one in judged), len(judged))
    return AgreementLine(label, accuracy, mean, found.margin if found else math.nan)


class Closeness(NamedTuple):
    """The distance between a model and the grammar, nats per word (the end of a sentence counts as one).

    The cross-entropies of the model and of the grammar itself, the lower bound, and the mean KL divergence from the
    true next-word distribution to that of the model.
    """

    model: float
    grammar: float
    divergence: float
    words: int


class Distance:
    """Sums over sentences of the distance between a model and the true distribution."""

    def __init__(self, oracle: Oracle, vocabulary: Vocabulary) -> None:
        self.oracle, self.vocabulary = oracle, vocabulary
        self.model = self.grammar = self.divergence = 0.0
        self.words = 0

    def add(self, sentence: Sentence, log_probs: np.ndarray) -> None:
        """Add a sentence; `log_probs` [N+1, V] before each word."""
        parses = self.oracle.begin()
        for word, row in zip([*sentence.words, EOS], log_probs.astype(np.float64), strict=True):
            true, at = self.oracle.next_words(parses), self.vocabulary.ids[word]
            possible = true > 0
            self.divergence += float((true[possible] * (np.log(true[possible]) - row[possible])).sum())
            self.model -= float(row[at])
            self.grammar -= math.log(true[at])
            self.words += 1
            if word != EOS:
                parses = self.oracle.read(parses, word)

    @property
    def closeness(self) -> Closeness:
        """The means per word of what was added."""
        return Closeness(self.model / self.words, self.grammar / self.words, self.divergence / self.words, self.words)


class Components(NamedTuple):
    """Principal components of states with this mean [H]: orthonormal axes [K, H], and their shares [K] in the variance.

    The largest variance comes first.
    """

    mean: Array
    axes: Array
    shares: Array

    def project(self, states: npt.ArrayLike) -> Array:
        """Coordinates [N, K] of states [N, H]."""
        return (np.asarray(states, np.float64) - self.mean) @ self.axes.T


def principal_components(states: Sequence[npt.NDArray[np.floating]], count: int = 4) -> Components:
    """The principal components of all states, each array [N, H]; the largest weight of each is positive."""
    together = np.concatenate([np.asarray(one, np.float64) for one in states])
    mean = together.mean(axis=0)
    # Eigenvectors of the covariance [H, H]: there are many more states than units.
    values, vectors = np.linalg.eigh(np.cov((together - mean).T).reshape(len(mean), len(mean)))
    axes = vectors.T[::-1][:count]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    shares = values[::-1][:count] / max(float(values.sum()), 1e-300)
    return Components(mean, axes * signs[:, None], shares)
