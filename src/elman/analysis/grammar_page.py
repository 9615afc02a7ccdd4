"""The page of `elman grammar test`: agreement by depth and attractors, nearness to the grammar, trajectories."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from elman.analysis.agreement import Closeness, Components, Line
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, SERIES, canvas, style, svg

HEADER = ["verbs", "number", "accuracy, %", "95 % interval", "share of the right number, %"]


@dataclasses.dataclass(frozen=True)
class Walk:
    """The hidden states [N+1, H] along a sentence: after `<eos>`, then after each word."""

    words: tuple[str, ...]
    states: np.ndarray


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a test found: the lines of all tables, the distance from the grammar, the components and some walks."""

    run: str
    grammar: str
    whole: Line
    by_levels: Sequence[Line]
    by_attractors: Sequence[Line]
    by_depth: Sequence[Line]
    closeness: Closeness
    sentences: int
    seen: int
    components: Components
    walks: Sequence[Walk]

    @property
    def tables(self) -> dict[str, Sequence[Line]]:
        """By title."""
        return {
            "by levels of embedding between noun and verb": self.by_levels,
            "by attractors": self.by_attractors,
            "by depth of the verb's clause": self.by_depth,
        }

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "run": self.run,
            "grammar": self.grammar,
            "sentences": self.sentences,
            "sentences_seen_in_training": self.seen,
            "all": as_facts(self.whole),
            "by_levels": [as_facts(one) for one in self.by_levels],
            "by_attractors": [as_facts(one) for one in self.by_attractors],
            "by_depth": [as_facts(one) for one in self.by_depth],
            "cross_entropy": self.closeness._asdict(),
            "variance_of_components": self.components.shares.tolist(),
        }


def as_facts(line: Line) -> dict[str, Any]:
    """A line as JSON."""
    low, high = line.accuracy.interval
    return {
        "label": line.label,
        "verbs": line.accuracy.count,
        "accuracy": line.accuracy.share,
        "low": low,
        "high": high,
        "share_of_right_number": line.share,
        "margin_of_share": None if np.isnan(line.margin) else line.margin,
    }


def cells(line: Line) -> list[str]:
    """A line as a row of a table."""
    low, high = line.accuracy.interval
    margin = "" if np.isnan(line.margin) else f" ± {100 * line.margin:.2f}"
    return [
        line.label,
        f"{line.accuracy.count:,}",
        f"{100 * line.accuracy.share:.2f}",
        f"{100 * low:.2f} to {100 * high:.2f}",
        f"{100 * line.share:.2f}{margin}",
    ]


def write_findings(out: Path, found: Findings) -> Path:
    """Write the page.

    Raises:
        UserError: `out` is a folder or cannot be written.

    """
    near = found.closeness
    low, high = found.whole.accuracy.interval
    return write_page(
        out,
        kind="Grammar",
        title=f"{found.run} on {found.grammar}",
        verdict=f"The right form is more probable than the wrong one for {100 * found.whole.accuracy.share:.2f} % of"
        f" {found.whole.accuracy.count:,} verbs (95 %: {100 * low:.2f} to {100 * high:.2f}).",
        text=[
            f"{found.sentences:,} fresh sentences, {found.seen:,} of which stand in the training text. Intervals are"
            " Wilson's and treat verbs as independent.",
            f"Cross-entropy {near.model:.4f} nats a word, the grammar's own {near.grammar:.4f}; the next-word"
            f" distributions differ by {near.divergence:.4f} nats (KL divergence, mean over {near.words:,} words).",
        ],
        sections=[
            Section(
                "Agreement",
                tables=[Table(title, HEADER, [cells(one) for one in lines]) for title, lines in found.tables.items()],
            ),
            Section(
                "Trajectories",
                ["The hidden state of the last layer along sentences, after Elman 1991: each point is the state after a"
                 " word, with its place in the sentence. Components are of the states of all test sentences."],
                figures=[figure for index, walk in enumerate(found.walks) for figure in _figures(found, walk, index)],
            ),
        ],
    )  # fmt: skip


def _figures(found: Findings, walk: Walk, index: int) -> list[Figure]:
    points = found.components.project(walk.states[1:])
    sentence, shares = " ".join(walk.words), 100 * found.components.shares
    across, up = f"component 1 ({shares[0]:.0f} %)", f"component 2 ({shares[1]:.0f} %)"
    return [
        Figure(sentence, _plane(points, walk.words, f"plane-{index}", sentence, (across, up))),
        Figure("by word", _by_word(points, walk.words, f"steps-{index}", sentence)),
    ]


def _plane(points: np.ndarray, words: Sequence[str], name: str, sentence: str, labels: tuple[str, str]) -> Markup:
    figure, axes = canvas("square")
    axes.plot(points[:, 0], points[:, 1], "-o", color=SERIES[0], linewidth=1.0, markersize=3.5)
    for place, (word, (x, y, *_)) in enumerate(zip(words, points, strict=True), start=1):
        axes.annotate(f"{place} {word}", (x, y), xytext=(3, 3), textcoords="offset points", fontsize=8, color=MUTED)
    axes.margins(0.15)
    _label(axes, *labels)
    return svg(figure, name, "State along a sentence", sentence)


def _by_word(points: np.ndarray, words: Sequence[str], name: str, sentence: str) -> Markup:
    figure, axes = canvas("wide")
    for component in range(min(3, points.shape[1])):
        axes.plot(points[:, component], "-o", color=SERIES[component], linewidth=1.2, markersize=3)
        axes.annotate(
            f"{component + 1}", (len(words) - 1, points[-1, component]), xytext=(5, -3), textcoords="offset points",
            fontsize=9, color=SERIES[component],
        )  # fmt: skip
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right")
    _label(axes, "", "components 1 to 3")
    return svg(figure, name, "Components of the state, word by word", sentence)


def _label(axes: Axes, across: str, up: str) -> None:
    style(axes)
    axes.set_xlabel(across, color=MUTED, fontsize=9)
    axes.set_ylabel(up, color=MUTED, fontsize=9)
