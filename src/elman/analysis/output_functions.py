"""The images of a line of scores z = h w + b 1 under output functions (Kanai's thesis, sections 4.2 and 4.3).

Log-softmax maps such a line into the plane of w and 1 for every b; the other functions leave it, so that their
matrices of log-probabilities can have a higher rank. M symbols, n points on the line; everything is float64.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from markupsafe import Markup
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from torch import Tensor

from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import INK, MUTED, SERIES, canvas, colour, label, legend, svg
from elman.errors import UserError
from elman.network.output.activation import ACTIVATIONS

DIRECTION = torch.tensor([1.0, 0.2, -0.8], dtype=torch.float64)
SHIFTS = (-2.0, 0.0, 2.0)
SIZES = tuple(range(2, 9))
LIMITS = tuple(float(shift) for shift in range(-30, 31))

Ranks: TypeAlias = list[tuple[str, float, list[int]]]
Limits: TypeAlias = list[tuple[str, list[float]]]

_SMALLEST = 1e-13
"""Differences below this are rounding."""


def require_known(names: Iterable[str]) -> list[str]:
    """The names as a list; raises UserError if one is not an activation."""
    for name in (known := list(names)):
        if name not in ACTIVATIONS:
            raise UserError(f"--activation {name}: unknown; choose among {', '.join(ACTIVATIONS)}")
    return known


def log_outputs(activation: str, scores: Tensor) -> Tensor:
    """Log f(z), [n, M], of scores [n, M]."""
    log_g = ACTIVATIONS[activation].log_g(scores)
    return log_g - log_g.logsumexp(-1, keepdim=True)


def line(direction: Tensor, shift: float, reach: float = 6.0, count: int = 401) -> Tensor:
    """Scores h w + b 1 for `count` values of h between -reach and reach, [count, M]."""
    positions = torch.linspace(-reach, reach, count, dtype=torch.float64)
    return positions.unsqueeze(-1) * direction.double() + shift


def on_simplex(log_probs: Tensor) -> Tensor:
    """Three probabilities [n, 3] as points [n, 2] of a triangle with corners (0, 0), (1, 0) and (1/2, sqrt(3)/2)."""
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]], dtype=torch.float64)
    return log_probs.exp() @ corners


def beside_plane(log_probs: Tensor, direction: Tensor) -> Tensor:
    """Log-probabilities [n, 3] as (place along the part of w orthogonal to 1, distance from the plane), [n, 2]."""
    ones = torch.ones(3, dtype=torch.float64)
    across = torch.linalg.cross(direction.double(), ones)
    along = direction.double() - direction.double().mean()
    return log_probs @ torch.stack([along / along.norm(), across / across.norm()], dim=-1)


def rank_of_line(activation: str, size: int, shift: float) -> int:
    """The numerical rank of the log outputs of one line with distinct w, M = size (theorem 4.4: M for sigsoftmax).

    It counts singular values above sqrt(M + n + 1)/2 * sigma_1 * eps.
    """
    outputs = log_outputs(activation, line(torch.linspace(-1.0, 1.3, size), shift, reach=12.0))
    outputs = outputs[outputs.isfinite().all(-1)]
    values = torch.linalg.svdvals(outputs)
    return int((values > 0.5 * math.sqrt(size + len(outputs) + 1) * values[0] * torch.finfo(torch.float64).eps).sum())


def distance_from_softmax(activation: str, shift: float, direction: Tensor) -> float:
    """The largest |log f - log softmax| on the line with this shift (theorem 4.5: sigsoftmax tends to softmax)."""
    scores = line(direction, shift)
    difference = (log_outputs(activation, scores) - scores.log_softmax(-1)).abs()
    return float(difference[difference.isfinite()].max())


def rank_table(activations: Sequence[str]) -> Ranks:
    """(activation, b, the rank for each M of `SIZES`)."""
    cases = ((name, shift) for name in activations for shift in SHIFTS)
    return [(name, shift, [rank_of_line(name, size, shift) for size in SIZES]) for name, shift in cases]


def limit_table(activations: Sequence[str]) -> Limits:
    """(activation, its distance from softmax for each b of `LIMITS`)."""
    return [(name, [distance_from_softmax(name, shift, DIRECTION) for shift in LIMITS]) for name in activations]


def write_outputs_page(out: Path, activations: Sequence[str], ranks: Ranks, limits: Limits) -> Path:
    """Write the page about these activations; `ranks` and `limits` as the tables above."""
    shifts = legend(f"b = {shift:g}" for shift in SHIFTS)
    simplex = "Every point of the triangle is a distribution over three symbols; its corners are certainty."
    log_space = (
        "The log-probabilities seen along the plane of w and 1. Log-softmax stays in it, for every b, and so spans two"
        " dimensions of three; functions that leave the plane span all of them."
    )
    place = f"w = ({', '.join(f'{value:g}' for value in DIRECTION.tolist())})"
    return write_page(
        out,
        kind="Output functions",
        title="What output functions can express",
        verdict=verdict(ranks),
        text=[f"Three symbols, and scores on a line: z = h w + b 1, {place}, h from -6 to 6, one hidden unit."],
        sections=[
            Section("Images on the simplex", [simplex], shifts, [Figure(n, _simplex(n)) for n in activations], True),
            Section("Images in log space", [log_space], shifts, [Figure(n, _log_space(n)) for n in activations], True),
            _theorem_ranks(ranks),
            _theorem_limits(limits),
        ],
    )


def verdict(ranks: Ranks) -> str:
    """Which functions reach the full rank."""
    full = dict.fromkeys(name for name, _, found in ranks if found == list(SIZES))
    flat = dict.fromkeys(name for name, _, found in ranks if max(found) < max(SIZES) and name not in full)
    parts = []
    if full:
        verb = "reach" if len(full) > 1 else "reaches"
        parts.append(f"From one line of scores, {_and(full)} {verb} rank M for some b.")
    if flat:
        most = max(max(found) for name, _, found in ranks if name in flat)
        parts.append(f"{_and(flat).capitalize()} never {'exceed' if len(flat) > 1 else 'exceeds'} {most}.")
    return " ".join(parts)


def _and(names: Sequence[str] | dict[str, None]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _simplex(name: str) -> Markup:
    figure, axes = canvas("square")
    height = np.sqrt(3) / 2
    axes.fill([0, 1, 0.5], [0, 0, height], facecolor=MUTED, alpha=0.12)
    axes.plot([0, 1, 0.5, 0], [0, 0, height, 0], color=MUTED, linewidth=0.8)
    for number, shift in enumerate(SHIFTS):
        points = on_simplex(log_outputs(name, line(DIRECTION, shift))).numpy()
        axes.plot(points[:, 0], points[:, 1], color=SERIES[number], linewidth=2.6 - 0.7 * number)
    for x, y, text in ((0, -0.08, "y₁"), (1, -0.08, "y₂"), (0.5, height + 0.04, "y₃")):
        axes.text(x, y, text, color=INK, fontsize=9.5, ha="center")
    axes.set_aspect("equal")
    axes.set_axis_off()
    return svg(figure, f"simplex-{name}", name, "images of three lines on the simplex of three symbols")


def _log_space(name: str) -> Markup:
    figure, axes = canvas("narrow")
    axes.axhline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    reach = 0.0
    for number, shift in enumerate(SHIFTS):
        points = beside_plane(log_outputs(name, line(DIRECTION, shift)), DIRECTION).numpy()
        points = points[np.isfinite(points).all(-1)]
        axes.plot(points[:, 0], points[:, 1], color=SERIES[number], linewidth=2.6 - 0.7 * number)
        reach = max(reach, float(np.abs(points[:, 1]).max(initial=0.0)))
    limit = 1.1 * max(reach, 1.0)
    axes.set_ylim(-limit, limit)
    label(axes, "place along w", "distance from the plane")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    return svg(figure, f"log-{name}", name, "distance of the log-probabilities from the plane of w and 1")


def _theorem_ranks(ranks: Ranks) -> Section:
    rows = [[f"{name}, b = {shift:g}", *map(str, found)] for name, shift, found in ranks]
    text = (
        "The numerical rank of the log-probabilities of one line z = h w + b 1 with distinct w, in float64. Theorem 4.4"
        " states that sigsoftmax spans all M dimensions from one such line; softmax spans the two of w and 1."
    )
    return Section("Rank M from one line", [text], tables=[Table("", ["", *(f"M = {m}" for m in SIZES)], rows)])


def _theorem_limits(limits: Limits) -> Section:
    figure, axes = canvas("wide")
    shown = [(name, distances) for name, distances in limits if max(distances) > _SMALLEST]
    for number, (_, distances) in enumerate(shown):
        values = np.array(distances)
        values[values < _SMALLEST] = np.nan
        axes.plot(LIMITS, values, color=colour(number), linewidth=1.7)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_minor_locator(NullLocator())
    label(axes, "shift b", "largest |log f - log softmax|")
    drawing = svg(figure, "limits", "Distance from softmax", "against the shift b, one line per function")
    text = (
        "On the line z = h w + b 1 sigsoftmax tends to softmax as b grows, like exp(-b), and so approximates whatever"
        " softmax can express (theorem 4.5). Sigmoid and softplus tend to it as b falls."
    )
    figures = [Figure("", drawing)] if shown else ()
    return Section("Softmax as a limit", [text], legend(name for name, _ in shown), figures)
