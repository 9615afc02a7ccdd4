"""Agreement and trajectories of a model on sentences whose parse is known.

Elman 1991; Linzen, Dupoux & Goldberg 2016. N words in a sentence, V in the vocabulary, H hidden units.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from elman.data.batches import stack_sequences
from elman.data.grammar.exact import Oracle, Parses
from elman.data.grammar.rules import Grammar
from elman.data.grammar.sample import Dependency, Sentence
from elman.data.stimuli import UnknownWords
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError, counted, notice
from elman.evaluation.spread import spread
from elman.evaluation.statistics import Proportion
from elman.network.model import LanguageModel

Array = npt.NDArray[np.float64]


class Judged(NamedTuple):
    """A word that agrees with another, as the model predicted it; `correct`: P(right form) > P(wrong form).

    The masses are the probabilities of all targets of the right value of the feature, and of all of the others; where
    the target comes before its controller, the shares of the two sentences up to there.
    """

    dependency: Dependency
    correct: bool
    right_mass: float
    wrong_mass: float

    @property
    def share(self) -> float:
        """The share of the right value in the probability of targets."""
        total = self.right_mass + self.wrong_mass
        return self.right_mass / total if total else 0.5


class AgreementLine(NamedTuple):
    """The pairs of a right and a wrong form of one kind: a row of a table.

    A pair counts as right if the right form is more probable than the wrong one; a tie does not. `share` is the mean
    share of the right value in the probability of targets, `margin` half of its 95 % interval (Student's t).
    """

    label: str
    accuracy: Proportion
    share: float
    margin: float


class SentenceOutput(NamedTuple):
    """Log-probabilities [N+1, V] and hidden states [N+1, H] along a sentence, after `<eos>` and after each word."""

    log_probs: np.ndarray
    states: np.ndarray


class Known(NamedTuple):
    """The sentences and dependencies whose words a model knows, and the unknown words that others are left out for.

    `pairs` counts the pairs that are left out, among them all of these sentences; `sentence` is the notice of it.
    """

    sentences: list[Sentence]
    unknown: UnknownWords
    pairs: int = 0
    sentence: tuple[str, ...] = ()

    @property
    def summary(self) -> dict[str, Any]:
        """Return what is left out as JSON writes it."""
        return {"words": list(self.unknown.words), "sentences": self.unknown.strange, "pairs": self.pairs}


def of_known_words(grammar: Grammar, vocabulary: Vocabulary, drawn: Sequence[Sentence], *, leave_out: bool) -> Known:
    """The sentences without words that the model does not know, and their pairs whose two forms it knows.

    A pair goes with both of its forms, so that each value keeps forms of the same words. A notice names the words and
    how much is left out. Raises UserError with the same figures unless `leave_out`, and where nothing remains.
    """
    unknown = tuple(word for word in grammar.vocabulary if word not in vocabulary.ids)
    if not unknown:
        return Known(list(drawn), UnknownWords(grammar.name, len(drawn), 0, ()))
    missing, kept = frozenset(unknown), []
    for sentence in drawn:
        if missing.isdisjoint(sentence.words):
            links = tuple(one for one in sentence.dependencies if one.wrong not in missing)
            kept.append(sentence._replace(dependencies=links))
    pairs, rest = (sum(len(one.dependencies) for one in part) for part in (drawn, kept))
    strange = UnknownWords(grammar.name, len(drawn), len(drawn) - len(kept), unknown)
    what = (
        f"the model does not know {len(unknown):,} of the {len(grammar.vocabulary):,} words of {grammar.name}"
        f" ({strange.named})"
    )
    without = f"{strange.strange:,} of {counted(len(drawn), 'sentence')}"
    many = f"{without} and {pairs - rest:,} of {counted(pairs, 'pair')}"
    if not leave_out or not kept:
        advice = "" if leave_out else ", or leave these out with --unknown exclude"
        raise UserError(
            f"{what}: {many} have them; train on this grammar, or name the model's own with --grammar{advice}"
        )
    line = f"{what}: {many} are left out; the grammar's distribution is over the words that the model knows"
    notice(line)
    return Known(kept, strange, pairs - rest, (f"{line[0].upper()}{line[1:]}.",))


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


def judge(
    grammar: Grammar,
    vocabulary: Vocabulary,
    sentence: Sentence,
    log_probs: np.ndarray,
    altered: Mapping[Dependency, float] = MappingProxyType({}),
) -> list[Judged]:
    """Every dependency of a sentence; `log_probs` [N+1, V] before each word.

    A target after its controller is judged by the probabilities of its forms there; a form of several values counts for
    the right one where it is among them. For one before it `altered` has
    the log-probability (nats) of the words from the target to the controller with the wrong form.
    """
    found, ids = [], vocabulary.ids
    for one in sentence.dependencies:
        if one.controller > one.target:
            places = range(one.target, one.end + 1)
            right = sum(float(log_probs[at, ids[sentence.words[at]]]) for at in places)
            share = 1 / (1 + math.exp(min(altered[one] - right, 700.0)))
            found.append(Judged(one, right > altered[one], share, 1 - share))
            continue
        before, forms = log_probs[one.target], grammar.forms(one.feature, ids)
        masses, seen = list[float](), set[str]()
        for words in (forms.pop(one.value), *forms.values()):
            masses.append(float(np.exp(before[[ids[word] for word in words if word not in seen]]).sum()))
            seen.update(words)
        correct = bool(before[ids[one.right]] > before[ids[one.wrong]])
        found.append(Judged(one, correct, masses[0], sum(masses[1:])))
    return found


def altered_log_probs(
    model: LanguageModel, vocabulary: Vocabulary, found: Sequence[Sentence], first: int
) -> list[dict[Dependency, float]]:
    """For each sentence what `judge` needs of its targets that come before their controllers."""
    places = [(at, one) for at, sentence in enumerate(found) for one in sentence.dependencies]
    places = [(at, one) for at, one in places if one.controller > one.target]
    changed = [Sentence(with_wrong_form(found[at], one), (), 0) for at, one in places]
    scores: list[dict[Dependency, float]] = [{} for _ in found]
    for (at, one), sentence, output in zip(
        places, changed, predictions(model, vocabulary, changed, first), strict=True
    ):
        words = sentence.words[one.target :]
        scores[at][one] = sum(
            float(output.log_probs[one.target + step, vocabulary.ids[word]]) for step, word in enumerate(words)
        )
    return scores


def with_wrong_form(sentence: Sentence, one: Dependency) -> tuple[str, ...]:
    """The words of a sentence up to the later of the two, the target in its wrong form."""
    return (*sentence.words[: one.target], one.wrong, *sentence.words[one.target + 1 : one.end + 1])


Key = TypeVar("Key", int, tuple[int, int])


def table(
    judged: Sequence[Judged], kind: Callable[[Dependency], Key], label: Callable[[Key], str]
) -> list[AgreementLine]:
    """A line for each kind of dependency, in the order of the kinds."""
    ordered = sorted(judged, key=lambda one: kind(one.dependency))
    return [line(label(key), list(group)) for key, group in groupby(ordered, lambda one: kind(one.dependency))]


def line(label: str, judged: Sequence[Judged]) -> AgreementLine:
    """The accuracy and the share of some pairs."""
    shares = [one.share for one in judged]
    found, mean = spread(shares), float(np.mean(shares)) if shares else math.nan
    accuracy = Proportion(sum(one.correct for one in judged), len(judged))
    return AgreementLine(label, accuracy, mean, found.margin if found else math.nan)


class Closeness(NamedTuple):
    """The distance between a model and the grammar, nats per word (the end of a sentence counts as one).

    The cross-entropies of the model and of the grammar itself, the lower bound, and the mean KL divergence from the
    true next-word distribution to the model's.
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

    def add(self, sentence: Sentence, log_probs: np.ndarray) -> list[Parses]:
        """Add a sentence; `log_probs` [N+1, V] before each word. Returns the parses before each word."""
        parses, read = self.oracle.begin(), []
        for word, row in zip([*sentence.words, EOS], log_probs.astype(np.float64), strict=True):
            read.append(parses)
            true, at = self.oracle.next_words(parses), self.vocabulary.ids[word]
            possible = true > 0
            self.divergence += float((true[possible] * (np.log(true[possible]) - row[possible])).sum())
            self.model -= float(row[at])
            self.grammar -= math.log(true[at])
            self.words += 1
            if word != EOS:
                parses = self.oracle.read(parses, word)
        return read

    def allows(self, sentence: Sentence, one: Dependency, read: Sequence[Parses]) -> bool:
        """Whether the grammar has a sentence that begins with the wrong form; `read` as `add` returned it."""
        parses = read[one.target]
        for word in with_wrong_form(sentence, one)[one.target :]:
            parses = self.oracle.read(parses, word)
        return bool(parses)

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
