"""The path of the hidden state along sentences, by its principal components (Elman 1991, section 4)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from elman.analysis.agreement import Components
from elman.drawing.page import Figure, Section, write_page
from elman.drawing.style import MUTED, SERIES, canvas, colour, label, legend, svg


def figures(components: Components, words: Sequence[str], states: npt.NDArray[np.floating], name: str) -> list[Figure]:
    """A sentence in the plane of the first two components, and its components word by word.

    `states` [N, H] are those after each word, which have no plane where H is 1; `name` is unique within the page.
    """
    sentence = " ".join(words)
    steps = _by_word(components.project(states), words, f"steps-{name}", sentence)
    if len(components.axes) == 1:
        return [Figure(sentence, steps)]
    plane = _plane(components, [(words, states)], f"plane-{name}", sentence)
    return [Figure(sentence, plane), Figure("by word", steps)]


def write_trajectories_page(
    out: Path, components: Components, walks: Sequence[tuple[Sequence[str], npt.NDArray[np.floating]]], *, run: str,
    level: str, text: str,
) -> Path:  # fmt: skip
    """Write the page: all sentences, each a list of words and states [N, H], in one plane, then each by itself.

    Raises UserError where `out` is a folder or cannot be written.
    """
    shares = 100 * components.shares
    together = []
    if len(walks) > 1 and len(components.axes) > 1:
        plane = Figure("", _plane(components, walks, "together", "all sentences"))
        together = [Section("Together", legend=legend(" ".join(words) for words, _ in walks), figures=[plane])]
    alone = [
        figure
        for index, (words, states) in enumerate(walks)
        for figure in figures(components, words, states, str(index))
    ]
    return write_page(
        out,
        kind="Trajectories of the state",
        title=run,
        verdict=f"The first two components have {shares[:2].sum():.0f} % of the variance of the states of {level}.",
        text=[
            f"Each point is the state of {level} after a word, labelled by its place, after Elman (1991). The"
            f" components are computed from the states along {text}, the largest variance first."
        ],
        sections=[*together, Section("Sentences", figures=alone)],
    )


def _plane(
    components: Components, walks: Sequence[tuple[Sequence[str], npt.NDArray[np.floating]]], name: str, description: str
) -> Markup:
    figure, axes = canvas("square")
    for number, (words, states) in enumerate(walks):
        _walk(axes, components.project(states), words, colour(number))
    axes.margins(0.15)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))  # of numbers that do not touch each other
    label(axes, *(f"component {place} ({100 * components.shares[place - 1]:.0f} %)" for place in (1, 2)))
    return svg(figure, name, "State along sentences", description)


def _walk(axes: Axes, points: npt.NDArray[np.float64], words: Sequence[str], line: str) -> None:
    axes.plot(points[:, 0], points[:, 1], "-o", color=line, linewidth=1.0, markersize=3.5)
    for place, (word, (x, y, *_)) in enumerate(zip(words, points, strict=True), start=1):
        axes.annotate(f"{place} {word}", (x, y), xytext=(3, 3), textcoords="offset points", fontsize=8, color=MUTED)


def _by_word(points: npt.NDArray[np.float64], words: Sequence[str], name: str, sentence: str) -> Markup:
    figure, axes = canvas("wide")
    for component in range(min(3, points.shape[1])):
        axes.plot(points[:, component], "-o", color=SERIES[component], linewidth=1.2, markersize=3)
        axes.annotate(
            f"{component + 1}", (len(words) - 1, points[-1, component]), xytext=(5, -3), textcoords="offset points",
            fontsize=9, color=SERIES[component],
        )  # fmt: skip
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right")
    label(axes, "", "components 1 to 3")
    return svg(figure, name, "Components of the state, word by word", sentence)
