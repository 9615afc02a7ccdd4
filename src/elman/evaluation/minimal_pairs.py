"""Accuracy on minimal pairs: how often the grammatical sentence is the more probable one.

Sentences in the order of their tokens form a tree of prefixes. The nodes of one depth are the columns of one step, and
a node takes its state from its parent, so that every shared beginning is read once and nothing is padded.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.data.minimal_pairs import Pair
from elman.data.stimuli import UnknownWords, unknown_by
from elman.data.text.lacking import refusal
from elman.data.text.sentences import Lexicon, fit
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.decoding.sampling import require_numbers
from elman.errors import UserError
from elman.evaluation.statistics import Floats, Proportion
from elman.jobs import Advance
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import select

Ids: TypeAlias = npt.NDArray[np.int32]

Scorer = Callable[[Sequence[Ids], Sequence[Ids]], Floats]
"""Log-probabilities [n] of the sentences in the first argument, read as those in the second (`CodedPair.read`)."""

BOUNDARY = -1  # at the end of a sentence: any token that ends its last word

_VALUES = 12  # values that a column has at most whose accuracies are reported

_GROUP = 2048  # sentences whose tree is held at once: bounds the memory of the states


class CodedPair(NamedTuple):
    """A pair as a model reads it.

    Attributes:
        phenomenon, field: as in `Pair`.
        good, bad: ids, as they are predicted; at the end `BOUNDARY` where the last word is only spelt so far.
        read: how the two are read: the same ids, but to a model that reads spelling unknown words have their own.
        unknown: words outside the vocabulary in either sentence, each position once, in order.
        same: whether the model cannot distinguish the two, since it reads them as the same: mostly they differ in
            unknown words only; where those are spelled, in the last token only, which nothing follows.
    """

    phenomenon: str
    field: str
    good: Ids
    bad: Ids
    read: tuple[Ids, Ids]
    unknown: tuple[str, ...]
    same: bool


class PairAccuracy(NamedTuple):
    """The number of pairs of a phenomenon, and how many the model cannot distinguish, which are not judged.

    `accuracy` counts the judged pairs whose grammatical sentence is more probable, where a tie is not right; `known` is
    the same of pairs without unknown words, and `strange` has the unknown words.
    """

    phenomenon: str
    field: str
    pairs: int
    same: int
    accuracy: Proportion
    known: Proportion
    strange: UnknownWords

    def facts(self) -> dict[str, Any]:
        """Return the figures as JSON writes them."""
        return {
            "phenomenon": self.phenomenon,
            "field": self.field,
            "pairs": self.pairs,
            "not_distinguished": self.same,
            "judged": self.accuracy.count,
            **shares(self.accuracy, self.known),
            "with_unknown_words": self.strange.strange,
            "unknown_words": list(self.strange.words),
        }


def shares(every: Proportion, known: Proportion) -> dict[str, Any]:
    """The share of right judgements with its interval, and of those without unknown words, as JSON writes them."""
    low, high = every.interval
    return {
        "accuracy": every.share if every.count else None,
        "low": low,
        "high": high,
        "without_unknown_words": known.count,
        "accuracy_without_unknown_words": known.share if known.count else None,
    }


def code(
    pairs: Sequence[Pair], vocabulary: Vocabulary, tokeniser: Tokeniser, lexicon: Lexicon | None = None
) -> list[CodedPair]:
    """The pairs as ids, by the vocabulary and the tokeniser of a model.

    A `lexicon` takes up unknown words, for a model that reads spelling; without one they are read as `<unk>`. Where
    tokens spell words, and a pair ends with a word in the midst of a sentence, the end of that word is predicted too:
    without it "know" would never be less probable than "knows" (Pimentel & Meister 2024).

    Raises UserError where a sentence has no token, or an unknown word and the vocabulary no `<unk>`.
    """
    return [_code(pair, vocabulary, tokeniser, lexicon) for pair in pairs]


def _code(pair: Pair, vocabulary: Vocabulary, tokeniser: Tokeniser, lexicon: Lexicon | None) -> CodedPair:
    end = [EOS] if pair.whole and vocabulary.eos is not None else []
    is_open = not pair.whole and tokeniser.options.spelt
    sides: list[tuple[Ids, Ids]] = []
    unknown: set[tuple[int, str]] = set()
    for text in (pair.good, pair.bad):
        as_it_is = pair.tokenised and tokeniser.options.tokenisation == "words"
        words = _folded(text.split(), vocabulary) if as_it_is else fit(text, vocabulary, tokeniser)
        if not words:
            raise UserError(f"{pair.phenomenon}: the sentence {text!r} has no token that the model could read")
        lacking = [(at, word) for at, word in enumerate(words) if word not in vocabulary.ids]
        if lacking and vocabulary.unk is None:
            place = f"{pair.phenomenon}: item {pair.item}: {text!r}"
            raise refusal(lacking[0][1], vocabulary, tokeniser.options, place, "leave the pair out")
        unknown |= set(lacking)
        ids = vocabulary.encode([*words, *end])
        read = ids if lexicon is None else lexicon.read([*words, *end]).astype(np.int32)
        # What stands for the boundary among the inputs is never read: nothing follows it.
        sides.append((np.append(ids, np.int32(BOUNDARY)), np.append(read, np.int32(0))) if is_open else (ids, read))
    (good, read_good), (bad, read_bad) = sides
    same = np.array_equal(good, bad) and np.array_equal(read_good[:-1], read_bad[:-1])
    strange = tuple(word for _, word in sorted(unknown))
    return CodedPair(pair.phenomenon, pair.field, good, bad, (read_good, read_bad), strange, same)


def _folded(words: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """Words in lower case where only that is in the vocabulary, if it has no capitals."""
    known, fold = vocabulary.ids, vocabulary.in_lower_case
    return [word.lower() if fold and word not in known and word.lower() in known else word for word in words]


def pair_log_probs(coded: Sequence[CodedPair], score: Scorer) -> Floats:
    """Log-probabilities (nats) of the good and the bad sentence of each pair, [n, 2]; NaN where they are the same."""
    found = np.full((len(coded), 2), np.nan)
    judged = [index for index, pair in enumerate(coded) if not pair.same]
    sides = [side for index in judged for side in (coded[index].good, coded[index].bad)]
    found[judged] = score(sides, [side for index in judged for side in coded[index].read]).reshape(-1, 2)
    return found


def judge_pairs(coded: Sequence[CodedPair], score: Scorer) -> list[PairAccuracy]:
    """The accuracy on each phenomenon, in the order of their first pairs, and on all pairs at the end."""
    return accuracies(coded, pair_log_probs(coded, score))


def by_phenomenon(pairs: Sequence[Pair | CodedPair]) -> dict[tuple[str, str], list[int]]:
    """The numbers of the pairs of each (phenomenon, field), in the order of their first pairs."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault((pair.phenomenon, pair.field), []).append(index)
    return groups


def accuracies(coded: Sequence[CodedPair], log_probs: Floats) -> list[PairAccuracy]:
    """The accuracy on each phenomenon and on all pairs, by the log-probabilities of `pair_log_probs`."""
    right = log_probs[:, 0] > log_probs[:, 1]

    def accuracy(phenomenon: str, field: str, members: Sequence[int]) -> PairAccuracy:
        different = [index for index in members if not coded[index].same]
        known = [index for index in different if not coded[index].unknown]
        among_all, among_known = (Proportion(int(right[some].sum()), len(some)) for some in (different, known))
        (strange,) = unknown_by([phenomenon] * len(members), [coded[index].unknown for index in members])
        same = len(members) - len(different)
        return PairAccuracy(phenomenon, field, len(members), same, among_all, among_known, strange)

    found = [accuracy(*names, members) for names, members in by_phenomenon(coded).items()]
    return [*found, accuracy("all", "", range(len(coded)))]


def by_column(pairs: Sequence[Pair], coded: Sequence[CodedPair], log_probs: Floats) -> list[PairAccuracy]:
    """The accuracy by each value of each other column with 2 to 12 values; the column is the field."""
    found = list[PairAccuracy]()
    for column in dict.fromkeys(name for pair in pairs for name, _ in pair.others):
        values = [dict(pair.others).get(column, "") for pair in pairs]
        if 2 <= len(set(values)) <= _VALUES:
            named = zip(coded, values, strict=True)
            rows = [one._replace(phenomenon=value, field=column) for one, value in named]
            found += accuracies(rows, log_probs)[:-1]
    return found


def by_field(found: Sequence[PairAccuracy]) -> list[PairAccuracy]:
    """The phenomena added up by their field, where there are several."""
    fields: dict[str, list[PairAccuracy]] = {}
    for one in found:
        if one.field:
            fields.setdefault(one.field, []).append(one)
    if len(fields) < 2:
        return []
    return [
        PairAccuracy(
            field,
            "",
            sum(one.pairs for one in members),
            sum(one.same for one in members),
            _sum([one.accuracy for one in members]),
            _sum([one.known for one in members]),
            UnknownWords(
                field,
                sum(one.pairs for one in members),
                sum(one.strange.strange for one in members),
                tuple(dict.fromkeys(word for one in members for word in one.strange.words)),
            ),
        )
        for field, members in fields.items()
    ]


def _sum(parts: Sequence[Proportion]) -> Proportion:
    return Proportion(sum(part.successes for part in parts), sum(part.count for part in parts))


class PrefixLevel(NamedTuple):
    """The nodes of one depth of the tree: the last token of each as it is read and as it is predicted, [N].

    `parents` [N] are the nodes of the level before that they follow; at the first level the root, 0.
    """

    symbols: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]


def levels_of(sentences: Sequence[Ids], inputs: Sequence[Ids]) -> tuple[list[PrefixLevel], list[list[int]]]:
    """The tree of sentences, read as `inputs`, and the nodes, level by level, that each sentence passes."""
    numbers: list[dict[tuple[int, int, int], int]] = []
    paths = []
    for sentence, read in zip(sentences, inputs, strict=True):
        path: list[int] = []
        for depth, (target, symbol) in enumerate(zip(sentence.tolist(), read.tolist(), strict=True)):
            if depth == len(numbers):
                numbers.append({})
            key = (path[-1] if path else 0, symbol, target)
            path.append(numbers[depth].setdefault(key, len(numbers[depth])))
        paths.append(path)
    keys = (np.array(list(nodes), dtype=np.int64) for nodes in numbers)
    return [PrefixLevel(key[:, 1], key[:, 2], key[:, 0]) for key in keys], paths


@torch.inference_mode()
def sentence_log_probs(
    model: LanguageModel,
    sentences: Sequence[Ids],
    first: int,
    advance: Advance = None,
    inputs: Sequence[Ids] | None = None,
    boundaries: Sequence[int] = (),
) -> Floats:
    """Log-probability (nats) of each sentence, preceded by `first` and no other context, [n].

    The model is in evaluation mode, and no sentence empty; `inputs` are read in place of the sentences, where unknown
    words have numbers of their own. `BOUNDARY` at the end of a sentence is any of the ids `boundaries`. `advance` is
    called with (sentences done, sentences in all).
    """
    found, inputs = np.zeros(len(sentences)), inputs or sentences
    order = sorted(range(len(sentences)), key=lambda index: inputs[index].tolist())
    for start in range(0, len(order), _GROUP):
        group = order[start : start + _GROUP]
        levels, paths = levels_of([sentences[index] for index in group], [inputs[index] for index in group])
        by_level = _score(model, levels, first, boundaries)
        for index, path in zip(group, paths, strict=True):
            found[index] = by_level[len(path) - 1][path[-1]]
        if advance is not None:
            advance(start + len(group), len(order))
    return found


def _score(model: LanguageModel, levels: Sequence[PrefixLevel], first: int, boundaries: Sequence[int]) -> list[Floats]:
    """The log-probability of every node's prefix, level by level."""
    state, symbols = model.begin(1), torch.tensor([first], device=model.device)
    so_far, found = np.zeros(1), []
    for depth, level in enumerate(levels):
        trace, state = model.trace(symbols.unsqueeze(0), state)
        parents = torch.from_numpy(level.parents).to(model.device)
        targets = torch.from_numpy(level.targets).to(model.device)
        log_prob = model.output.log_prob(_columns(trace, parents), targets.clamp(min=0).unsqueeze(0)).squeeze(0)
        if (ends := targets == BOUNDARY).any():
            every = model.output.log_probs(_columns(trace, parents[ends])).squeeze(0)
            log_prob = log_prob.masked_scatter(ends, every[:, list(boundaries)].logsumexp(-1).to(log_prob))
        require_numbers(log_prob)
        so_far = so_far[level.parents] + log_prob.cpu().double().numpy()
        found.append(so_far)
        if depth + 1 < len(levels):
            state, symbols = select(state, parents), torch.from_numpy(level.symbols).to(model.device)
    return found


def _columns(trace: Trace, columns: Tensor) -> Trace:
    """The trace of some columns."""
    levels, raw = (tuple(part[:, columns] for part in parts) for parts in (trace.levels, trace.raw))
    assert trace.inputs is not None
    return Trace(levels, raw, inputs=trace.inputs[:, columns])
