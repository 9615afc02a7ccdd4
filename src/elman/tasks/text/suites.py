"""Minimal pairs, and test suites of SyntaxGym, as a model reads and judges them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elman.data.minimal_pairs import Pair
from elman.data.stimuli import Stimulus, UnknownWords, of_known_items, regions_of, unknown_by
from elman.data.suites import METRICS, Suite
from elman.data.text.reading import Sentence
from elman.data.text.sentences import Lexicon
from elman.data.text.tokeniser import ends_word
from elman.data.text.vocabulary import EOS
from elman.errors import UserError
from elman.evaluation.minimal_pairs import BOUNDARY, CodedPair, Ids, code, pair_log_probs, sentence_log_probs, shares
from elman.evaluation.spread import spread
from elman.evaluation.statistics import Floats, Proportion
from elman.evaluation.word_ends import with_word_ends
from elman.jobs import Advance, advancing
from elman.tasks.text.model import Scored, TextModel, pair_scores
from elman.tasks.text.run import TextRun


class Judged(NamedTuple):
    """Pairs as a run reads them, and the log-probabilities (nats) of good and bad, [n, 2]; NaN: not distinguished."""

    coded: list[CodedPair]
    log_probs: Floats


def judge(run: TextModel, pairs: Sequence[Pair], *, known_only: bool = False, advance: Advance = None) -> Judged:
    """Score pairs; with `known_only` unknown words are `<unk>` also to a model that reads spelling.

    Raises UserError where a sentence has a line break, or has nothing that the model could read.
    """
    for pair in pairs:
        if "\n" in pair.good + pair.bad:
            raise UserError(f"{pair.phenomenon}: item {pair.item}: a line break in a sentence; take it out")
    if not isinstance(run, TextRun):
        return Judged(*pair_scores(run, pairs, advance))
    lexicon = Lexicon(run.vocabulary) if run.reads_spelling and not known_only else None
    coded = code(pairs, run.vocabulary, run.tokeniser, lexicon)
    model = run.model if lexicon is None else run.model.knowing(lexicon.words)
    ends = [number for number, token in enumerate(run.vocabulary.words) if ends_word(token, run.options)]

    def score(ids: Sequence[Ids], read: Sequence[Ids]) -> Floats:
        return sentence_log_probs(model, ids, run.first, advance, read, ends)

    log_probs = pair_log_probs(coded, score)
    return Judged(coded, log_probs)


def item_rows(name: str, pairs: Sequence[Pair], judged: Judged) -> Iterator[dict[str, str | float | int]]:
    """A row for each pair: item, sentences, log-probabilities, whether it is judged correctly, and its other columns.

    Log-probabilities and judgement are empty where the pair is not distinguished.
    """
    others = list(dict.fromkeys(key for pair in pairs for key, _ in pair.others))
    for pair, coded, (good, bad) in zip(pairs, judged.coded, judged.log_probs.tolist(), strict=True):
        row: dict[str, str | float | int] = {
            "run": name,
            "item": pair.item,
            "phenomenon": pair.phenomenon,
            "field": pair.field,
            "good": pair.good,
            "bad": pair.bad,
            "log_prob_good": "" if coded.same else round(good, 6),
            "log_prob_bad": "" if coded.same else round(bad, 6),
            "difference": "" if coded.same else round(good - bad, 6),
            "correct": "" if coded.same else int(good > bad),
            "tokens_good": int((coded.good != BOUNDARY).sum()),
            "tokens_bad": int((coded.bad != BOUNDARY).sum()),
            "unknown": " ".join(coded.unknown),
        }
        given = dict(pair.others)
        yield row | {key if key not in row else f"{key}_given": given.get(key, "") for key in others}


@dataclass(frozen=True)
class JudgedSuite:
    """A suite under a model.

    Attributes:
        suite: the suite.
        surprisals: of each condition and number of a region (bits), [items].
        lacking: the words that the model does not know, by sentence of the suite.
    """

    suite: Suite
    surprisals: dict[tuple[str, int], Floats]
    lacking: list[list[str]]

    @cached_property
    def known(self) -> np.ndarray:
        """Whether the model knows all words of all conditions of each item, [items]."""
        of_items = [sentence.item for sentence in self.suite.sentences]
        kept = {of_items[number] for number in of_known_items(of_items, self.lacking)}
        return np.array([item in kept for item in self.suite.items])

    @cached_property
    def holds(self) -> np.ndarray:
        """Whether each prediction holds for each item, and at the end all of them, [predictions + 1, items]."""
        each = [formula.value(self.surprisals).astype(bool) for _, formula in self.suite.predictions]
        return np.stack([*each, np.all(each, axis=0)])

    @property
    def labels(self) -> list[tuple[str, str]]:
        """The name of each row of `holds`, and its formula."""
        named = ((str(number), text) for number, (text, _) in enumerate(self.suite.predictions, start=1))
        return [*named, ("all", "all predictions")]

    def facts(self, kept: np.ndarray) -> dict[str, Any]:
        """The figures of the kept [items] as JSON writes them."""
        suite, known, holds = self.suite, self.known & kept, self.holds
        predictions = []
        for (name, formula), right in zip(self.labels, holds, strict=True):
            every, sure = (Proportion(int(right[some].sum()), int(some.sum())) for some in (kept, known))
            named = {"prediction": name, "formula": formula, "items": every.count}
            predictions.append(named | shares(every, sure))
        regions = []
        for (condition, number), bits in self.surprisals.items():
            found = spread(bits[kept].tolist())
            margin = math.nan if found is None else found.margin
            mean = None if found is None else found.mean
            interval = (None, None) if mean is None or math.isnan(margin) else (mean - margin, mean + margin)
            named = {"condition": condition, "region": number, "name": suite.names.get(number, "")}
            regions.append({**named, "surprisal": mean, "low": interval[0], "high": interval[1]})
        return {
            "suite": suite.name,
            "metric": suite.metric,
            "items": int(kept.sum()),
            "left_out": int((~kept).sum()),
            "predictions": predictions,
            "regions": regions,
            "unknown": [one.facts() for one in self.unknown(kept)],
        }

    def unknown(self, kept: np.ndarray) -> list[UnknownWords]:
        """What is unknown in the sentences of each condition of the kept items."""
        inside = {item for item, stays in zip(self.suite.items, kept, strict=True) if stays}
        both = zip(self.suite.sentences, self.lacking, strict=True)
        rows = [(one.condition, words) for one, words in both if one.item in inside]
        return unknown_by([condition for condition, _ in rows], [words for _, words in rows])

    def rows(self, name: str, kept: np.ndarray) -> Iterator[dict[str, str | float | int]]:
        """A row for each region of each sentence: its surprisal, and which predictions hold for the item."""
        place, holds = {item: at for at, item in enumerate(self.suite.items)}, self.holds
        for sentence, lacking in zip(self.suite.sentences, self.lacking, strict=True):
            if not kept[at := place[sentence.item]]:
                continue
            judged = {f"prediction_{label}": int(row[at]) for (label, _), row in zip(self.labels, holds, strict=True)}
            for number, text in zip(sentence.numbers, sentence.texts, strict=True):
                yield {
                    "run": name,
                    "suite": self.suite.name,
                    "item": sentence.item,
                    "condition": sentence.condition,
                    "region": number,
                    "name": self.suite.names.get(number, ""),
                    "text": text,
                    "surprisal": round(float(self.surprisals[sentence.condition, number][at]), 6),
                    "unknown": " ".join(dict.fromkeys(lacking)),
                    **judged,
                }

    def as_pairs(self) -> tuple[list[Pair], Floats]:
        """Each prediction of each item as a pair, and a "log-probability" [n, 2] that is 1, 0 where it holds."""
        labels, holds = self.labels[:-1], self.holds[:-1]
        pairs = [
            Pair("", "", f"prediction {name}", self.suite.name, item=item)
            for name, _ in labels
            for item in self.suite.items
        ]
        return pairs, np.stack([holds.ravel(), ~holds.ravel()], axis=1).astype(np.float64)


def judge_suite(model: TextModel, suite: Suite, advance: Advance = None) -> JudgedSuite:
    """The surprisal of every region under a model; raises UserError where a sentence cannot be read.

    An empty region has surprisal 0, the end of the sentence belongs to its last region, and a first token that the
    model does not predict counts for nothing. Blanks and ends of words are counted as `score` counts them by region.
    """
    reader, stimuli, read = model.reader("the sentence"), list[Stimulus](), list[Sentence]()
    for line, written in enumerate(suite.sentences, start=1):
        stimuli.append(written.stimulus(line, model.options))
        try:
            read.append(reader.complete(stimuli[-1].text, line))
        except UserError as error:
            raise UserError(f"{_place(suite, line - 1)}: {error}") from None
    found = {
        (one.condition, number): np.zeros(len(suite.items))
        for one in suite.sentences[: len(suite.conditions)]
        for number in one.numbers
    }
    item_of = {item: at for at, item in enumerate(suite.items)}
    metric = METRICS[suite.metric]
    for at, (sentence, log_probs) in enumerate(advancing(_scored(model, read), len(read), advance)):
        own = suite.sentences[at]
        full = [place for place, text in enumerate(own.texts) if text]
        places = np.array(
            [
                len(own.texts) - 1 if piece == EOS else full[place]
                for piece, place in zip(
                    sentence.pieces,
                    regions_of(sentence, stimuli[at], model.tokeniser, _place(suite, at)),
                    strict=True,
                )
            ]
        )
        bits = sentence.spread(log_probs) / -math.log(2)
        for place, number in enumerate(own.numbers):
            inside = bits[places == place]
            inside = inside[~np.isnan(inside)].astype(np.float64)
            surprisals = found.setdefault((own.condition, number), np.zeros(len(suite.items)))
            surprisals[item_of[own.item]] = metric(inside) if len(inside) else 0.0
    return JudgedSuite(suite, found, [sentence.lacking for sentence in read])


def _place(suite: Suite, at: int) -> str:
    return f"{suite.path}: item {suite.sentences[at].item}, condition {suite.sentences[at].condition}"


def _scored(model: TextModel, sentences: Sequence[Sentence]) -> Scored:
    """The log-probabilities of tokens; where words have ends of their own, each with the end of its word."""
    text = model.as_read(sentences)
    if not (model.word_ends and model.spaces):
        yield from model.score_text(text)
        return
    for sentence, found in model.predict_text(text):
        yield sentence, with_word_ends(found.log_prob, found.space, sentence, model.tokeniser).astype(np.float32)


def is_suite(name: str) -> bool:
    """Whether a file of --pairs is a suite of SyntaxGym, or a folder of them."""
    path = Path(name)
    return path.suffix == ".json" or (path.is_dir() and any(path.glob("*.json")) and not any(path.glob("*.jsonl")))


def suites_of(names: Sequence[str]) -> list[Path]:
    """The files of suites; raises UserError where some of the names are no suites."""
    if others := [name for name in names if not is_suite(name)]:
        raise UserError(f"{others[0]} is no suite of SyntaxGym (.json), and others are; judge them in two commands")
    return [
        file for name in names for file in (sorted(Path(name).glob("*.json")) if Path(name).is_dir() else [Path(name)])
    ]
