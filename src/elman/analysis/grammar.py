"""A trained model on fresh sentences of a grammar: agreement, distance from the grammar, trajectories, and the page."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elman.analysis.agreement import (
    AgreementLine,
    Closeness,
    Components,
    Distance,
    Known,
    altered_log_probs,
    judge,
    line,
    of_known_words,
    predictions,
    principal_components,
    table,
)
from elman.analysis.trajectories import figures
from elman.config.text import GrammarOptions
from elman.data.grammar.exact import Oracle
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.sample import Dependency, Sentence, sentences, wish_of
from elman.data.text.utf8 import read_text
from elman.drawing.page import Section, Table, write_page
from elman.errors import UserError, counted, notice
from elman.jobs import Advance
from elman.tasks.text.run import TextRun

HEADER = ["agreement", "pairs", "accuracy, %", "95 % interval", "share of the right value, %"]

_TABLES = ("by_feature", "by_levels", "by_attractors", "by_depth")

SEED = "agreement"
"""Part of the seed, which no split has, so that the test sentences are new."""


@dataclasses.dataclass(frozen=True)
class Walk:
    """The hidden states [N+1, H] along a sentence: after `<eos>`, then after each word."""

    words: tuple[str, ...]
    states: np.ndarray


@dataclasses.dataclass(frozen=True)
class GrammarFindings:
    """The lines of all tables, the distance from the grammar, the principal components and some trajectories.

    `seen` counts the sentences that are in the training text, None where that is missing; `max_length` is the limit of
    their words, which the grammar's own distribution ignores; `unknown` is what was left out for words that the model
    does not know, and `allowed` counts the pairs that are not judged because the grammar allows their wrong form too.
    """

    run: str
    grammar: str
    max_length: int | None
    whole: AgreementLine
    by_feature: Sequence[AgreementLine]
    by_levels: Sequence[AgreementLine]
    by_attractors: Sequence[AgreementLine]
    by_depth: Sequence[AgreementLine]
    closeness: Closeness
    sentences: int
    seen: int | None
    components: Components
    walks: Sequence[Walk]
    unknown: Known
    allowed: int

    @property
    def tables(self) -> dict[str, Sequence[AgreementLine]]:
        """The lines of each table, by its title."""
        found = {
            "by feature": self.by_feature,
            "by levels of embedding between controller and target": self.by_levels,
            "by attractors": self.by_attractors,
            "by depth of the target's clause": self.by_depth,
        }
        return {title: lines for title, lines in found.items() if title != "by feature" or len(lines) > 1}

    @property
    def verdict(self) -> str:
        """How often the right form is predicted."""
        pairs = self.whole.accuracy
        if not pairs.count:
            return "No word agrees with another."
        low, high = pairs.interval
        return (
            f"The right form is more probable than the wrong one in {100 * pairs.share:.2f} % of"
            f" {counted(pairs.count, 'pair')} (95 %: {100 * low:.2f} to {100 * high:.2f})."
        )

    @property
    def not_judged(self) -> list[str]:
        """A sentence on the pairs whose wrong form the grammar allows, if there are any."""
        if not self.allowed:
            return []
        return [f"{counted(self.allowed, 'pair')} not judged: the grammar allows the wrong form there too."]

    @property
    def novelty(self) -> str:
        """How many of the sentences are new to the model."""
        if self.seen is None:
            return f"{counted(self.sentences, 'fresh sentence')}; the training text is not there to compare them with"
        return f"{counted(self.sentences, 'fresh sentence')}, {self.seen:,} of which are in the training text"

    def summary(self) -> dict[str, Any]:
        """Return the findings as JSON writes them."""
        return {
            "run": self.run,
            "grammar": self.grammar,
            "sentences": self.sentences,
            "max_length": self.max_length,
            "sentences_seen_in_training": self.seen,
            "all": as_facts(self.whole),
            **{name: list(map(as_facts, getattr(self, name))) for name in _TABLES},
            "unknown": self.unknown.summary,
            "wrong_form_allowed": self.allowed,
            "cross_entropy": self.closeness._asdict(),
            "variance_of_components": self.components.shares.tolist(),
        }


def options_of(run: TextRun, grammar: str | None) -> GrammarOptions:
    """The grammar and the sentences a run was trained on, or another grammar; raises UserError if there is neither."""
    own = run.data.grammar
    if grammar is None:
        if own is None:
            raise UserError(f"{run.path}: its recipe names no grammar; give one with --grammar, such as elman-1991")
        return own
    return msgspec.structs.replace(own or GrammarOptions(), rules=grammar)


def examine(
    run: TextRun,
    options: GrammarOptions,
    *,
    count: int,
    seed: int = 0,
    walks: Sequence[str] = (),
    leave_out: bool = False,
    advance: Advance = None,
) -> GrammarFindings:
    """Agreement by feature, embedding and attractors, distance from the grammar, and trajectories.

    `count` sentences are drawn, whose shares and limits `options` give (the sizes of the splits are not used). `walks`
    are the sentences whose trajectories are shown, by default three test sentences, of depth 0, 1 and 2; `advance` is
    called with (sentences done, sentences in all). With `leave_out` what has words that the model does not know is left
    out, with a notice. Raises UserError where it does not know words of the grammar otherwise, or a word of the walks,
    or the sentences cannot be drawn. A notice reports where their length is limited, which the grammar's own
    distribution ignores.
    """
    grammar = read_grammar(options.rules)
    for walk in walks:
        unknown = [word for word in walk.split() if word not in run.vocabulary.ids]
        if unknown or not walk.split():
            what = f"the model does not know the word {unknown[0]!r}" if unknown else "a sentence without words"
            raise UserError(f"walk {walk!r}: {what}; give words of the grammar")
    wish = wish_of(options)
    if wish.max_length is not None:
        notice(_about_length(wish.max_length))
    drawn = list(islice(sentences(grammar, wish, f"{seed} {SEED}"), count))
    known = of_known_words(grammar, run.vocabulary, drawn, leave_out=leave_out)
    drawn = known.sentences
    altered = altered_log_probs(run.model, run.vocabulary, drawn, run.first)
    distance, judged, states = Distance(Oracle(grammar, wish, run.vocabulary.words), run.vocabulary), [], []
    for index, (sentence, output, others) in enumerate(
        zip(drawn, predictions(run.model, run.vocabulary, drawn, run.first), altered, strict=True), start=1
    ):
        read = distance.add(sentence, output.log_probs)
        fair = [one for one in sentence.dependencies if not distance.allows(sentence, one, read)]
        judged += judge(grammar, run.vocabulary, sentence._replace(dependencies=tuple(fair)), output.log_probs, others)
        states.append(output.states)
        if advance is not None and index % 50 == 0:
            advance(index, len(drawn))
    shown = [Sentence(tuple(walk.split()), (), 0) for walk in walks] or _of_each_depth(drawn)
    walked = predictions(run.model, run.vocabulary, shown, run.first)
    agreeing = [feature for feature in grammar.features if any(one.dependency.feature == feature for one in judged)]

    def by(kind: Callable[[Dependency], int], label: Callable[[int], str]) -> list[AgreementLine]:
        """A line for each feature and each number of a kind; the feature is named where there are several."""

        def named(key: tuple[int, int]) -> str:
            return f"{agreeing[key[0]]}, {label(key[1])}" if len(agreeing) > 1 else label(key[1])

        return table(judged, lambda one: (agreeing.index(one.feature), kind(one)), named)

    return GrammarFindings(
        run=str(run.path),
        grammar=options.rules,
        max_length=wish.max_length,
        whole=line("all", judged),
        by_feature=table(judged, lambda one: agreeing.index(one.feature), agreeing.__getitem__),
        by_levels=by(lambda one: one.levels, partial(counted, noun="level")),
        by_attractors=by(lambda one: one.attractors, partial(counted, noun="attractor")),
        by_depth=by(lambda one: one.depth, lambda depth: f"depth {depth}"),
        closeness=distance.closeness,
        sentences=len(drawn),
        seen=_seen(run, drawn),
        components=principal_components(states),
        walks=[Walk(one.words, output.states) for one, output in zip(shown, walked, strict=True)],
        unknown=known,
        allowed=sum(len(one.dependencies) for one in drawn) - len(judged),
    )


def _of_each_depth(drawn: Sequence[Sentence]) -> list[Sentence]:
    """The first sentence of depth 0, 1 and 2 that has a dependency across as many levels."""
    across = [one for one in drawn if one.depth == max([link.levels for link in one.dependencies], default=0)]
    firsts = (next((one for one in across if one.depth == depth), None) for depth in range(3))
    return [one for one in firsts if one is not None]


def _about_length(limit: int) -> str:
    return (
        f"Sentences have {limit} words at most (max_length), and the distribution of the grammar has longer ones too:"
        " its cross-entropy and the KL divergence are computed for sentences of any length"
    )


def _seen(run: TextRun, drawn: Sequence[Sentence]) -> int | None:
    """How many of the sentences are in the training text; None where that is not a text of a sentence per line."""
    path = Path(run.source) / "train.txt"
    if not path.is_file():
        return None
    known = set(read_text(path).split("\n"))
    return sum(" ".join(one.words) in known for one in drawn)


def as_facts(line: AgreementLine) -> dict[str, Any]:
    """Return the figures of a line as JSON writes them."""
    low, high = line.accuracy.interval
    return {
        "label": line.label,
        "pairs": line.accuracy.count,
        "accuracy": line.accuracy.share,
        "low": low,
        "high": high,
        "share_of_right_value": line.share,
        "margin_of_share": None if math.isnan(line.margin) else line.margin,
    }


def cells(line: AgreementLine) -> list[str]:
    """A line as a row of a table."""
    low, high = line.accuracy.interval
    margin = "" if math.isnan(line.margin) else f" ± {100 * line.margin:.2f}"
    return [
        line.label,
        f"{line.accuracy.count:,}",
        f"{100 * line.accuracy.share:.2f}",
        f"{100 * low:.2f} to {100 * high:.2f}",
        f"{100 * line.share:.2f}{margin}",
    ]


def write_findings(out: Path, found: GrammarFindings) -> Path:
    """Write the page; raises UserError where `out` is a folder or cannot be written."""
    near = found.closeness
    limited = [] if found.max_length is None else [f"{_about_length(found.max_length)}."]
    return write_page(
        out,
        kind="Grammar",
        title=f"{found.run} on {found.grammar}",
        verdict=found.verdict,
        text=[
            f"{found.novelty}. Intervals are Wilson's and treat pairs as independent.",
            f"Cross-entropy {near.model:.4f} nats per word, the grammar's own {near.grammar:.4f}; the next-word"
            f" distributions differ by {near.divergence:.4f} nats (KL divergence, mean over {near.words:,} words).",
            *limited,
            *found.not_judged,
            *found.unknown.sentence,
        ],
        sections=[
            Section("Agreement", tables=[Table(t, HEADER, list(map(cells, rows))) for t, rows in found.tables.items()]),
            Section(
                "Trajectories",
                ["The hidden state of the last layer along sentences, after Elman 1991: each point is the state after a"
                 " word, labelled by its place. The components are computed from the states of all test sentences."],
                figures=[
                    figure
                    for index, walk in enumerate(found.walks)
                    for figure in figures(found.components, walk.words, walk.states[1:], str(index))
                ],
            ),
        ],
    )  # fmt: skip
