"""Where a unit of the state is most active, and which units are on along a phrase, as LSTMVis searches for them.

After Strobelt, Gehrmann, Pfister & Rush 2018 (LSTMVis, IEEE TVCG 24): units that are on throughout a marked range and
off before and after it, and other places where the same units are on. A unit is on where its value is a number of
standard deviations above its mean over the text, so that units of any range can be compared.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from markupsafe import Markup, escape

from elman.data.text.vocabulary import EOS
from elman.data.windows import EvaluationWindows
from elman.drawing.page import Section, write_page
from elman.errors import UserError
from elman.evaluation.perplexity import traces
from elman.jobs import Advance, advancing
from elman.network.model import LanguageModel

SETTLING = 100
"""Tokens at the beginning of a text at most that are left out."""

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


@torch.inference_mode()
def values_along(model: LanguageModel, windows: EvaluationWindows, level: int, advance: Advance = None) -> Floats:
    """The units [n - 1, H] of a level after every token of a stream [n] but its last."""
    found: Floats | None = None
    for batch, positions, trace in advancing(traces(model, windows), windows.num_windows, advance):
        places = positions.to(trace.raw[level].device)[batch.mask] - 1
        states = trace.raw[level][batch.mask][places >= 0].float().cpu().numpy()
        found = np.zeros((len(windows.tokens) - 1, states.shape[1]), np.float32) if found is None else found
        found[places[places >= 0].cpu().numpy()] = states
    if found is None or len(found) < 2:
        raise UserError("the text has less than three tokens, of which no unit has a mean; give another by --data")
    return found


def settled(values: Floats) -> int:
    """The tokens at the beginning of a text that are left out, where states still depend on where they begin."""
    return min(SETTLING, len(values) // 4)


class Scale(NamedTuple):
    """The mean and the standard deviation of every unit along a text, [H] each; of a unit that never changes 1."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, values: Floats) -> "Scale":
        """Of a text whose beginning (`settled`) is left out."""
        values = values[settled(values) :]
        mean, deviation = values.mean(0, dtype=np.float64), values.std(0, dtype=np.float64)
        return cls(mean.astype(np.float32), np.where(np.ptp(values, axis=0) > 0, deviation, 1).astype(np.float32))

    def apply(self, values: Floats) -> Floats:
        """Values in standard deviations above the mean."""
        return (values - self.mean) / self.deviation


class Found(NamedTuple):
    """A unit on a range: its mean there, in standard deviations; whether it is on there and off before and after."""

    unit: int
    mean: float
    switches: bool


def units_on(values: Floats, start: int, stop: int, threshold: float) -> list[Found]:
    """All units by a range of a sentence, values [n, H] from `Scale.apply`: first those that switch on for it.

    Both kinds fall by their mean in the range.
    """
    on: Bools = np.asarray(values >= threshold)
    around = [row for row in (start - 1, stop) if 0 <= row < len(values)]
    switches: Bools = np.all(on[start:stop], axis=0) & ~np.any(on[around], axis=0)
    means = values[start:stop].mean(0)
    order = np.lexsort([-means, ~switches])
    return [Found(int(unit), float(means[unit]), bool(switches[unit])) for unit in order]


def units_apart(values: Floats, matching: Bools) -> list[Found]:
    """All units by how much higher they are where tokens match than elsewhere, the largest difference first."""
    means = values[matching].mean(0) - values[~matching].mean(0)
    return [Found(int(unit), float(means[unit]), switches=False) for unit in np.argsort(-means, kind="stable")]


def places_of(score: Floats, count: int, apart: int) -> list[int]:
    """The places of the highest scores [n], at least `apart` tokens from each other; ties go to the first.

    Places at the beginning (`settled`) are left out.
    """
    found = list[int]()
    for place in np.argsort(-score, kind="stable").tolist():
        if len(found) == count:
            break
        if place < settled(score):
            continue
        if all(abs(place - other) >= apart for other in found):
            found.append(place)
    return found


def together(values: Floats, units: Sequence[int], length: int, threshold: float) -> Floats:
    """How many of some units are on throughout each range of `length` tokens, [n - length + 1].

    Ties are broken by their mean there, which counts for less than a unit.
    """
    chosen = values[:, units]
    spans = np.lib.stride_tricks.sliding_window_view(chosen, length, axis=0)
    mean = spans.mean((1, 2))
    return ((spans >= threshold).all(2).sum(1) + np.tanh(mean) / 4).astype(np.float32)


class Context(NamedTuple):
    """A range of a text and the tokens around it, with a value for each of them."""

    first: int
    tokens: list[str]
    values: list[float]
    start: int
    stop: int

    @property
    def peak(self) -> float:
        """The highest value in the range."""
        return max(self.values[self.start : self.stop])

    def text(self, blank: str) -> str:
        """In one line, the range between brackets."""
        parts = (self.tokens[: self.start], self.tokens[self.start : self.stop], self.tokens[self.stop :])
        before, inside, after = (blank.join("⏎" if one == EOS else one for one in part) for part in parts)
        return f"{before}{blank}[{inside}]{blank}{after}".strip()

    def shaded(self, blank: str) -> Markup:
        """A paragraph in which a token is the warmer, the higher its value, from 0 to 4."""
        spans = [
            Markup('<span class="word" style="--heat:{:.2f}" title="{}: {:+.2f}">{}</span>').format(
                min(1.0, max(0.0, value / 4)), token, value, _marked(token, inside=self.start <= place < self.stop)
            )
            for place, (token, value) in enumerate(zip(self.tokens, self.values, strict=True))
        ]
        return Markup('<p class="heat">{}</p>').format(Markup(blank).join(spans))


def _marked(token: str, *, inside: bool) -> Markup:
    shown = Markup("⏎") if token == EOS else escape(token)
    return Markup("<b>{}</b>").format(shown) if inside else shown


def context(tokens: Sequence[str], values: Floats, start: int, length: int, width: int) -> Context:
    """A range of a text and `width` tokens on both sides; `values` [n]: of each token."""
    first, stop = max(0, start - width), min(len(values), start + length + width)
    return Context(first, list(tokens[first:stop]), values[first:stop].tolist(), start - first, start - first + length)


def write_units_page(
    out: Path, parts: Sequence[tuple[str, Sequence[Context]]], *, run: str, level: str, text: str, blank: str
) -> Path:
    """Write the page, a section of contexts under each heading."""
    sections = [
        Section(heading, body=Markup("\n").join(one.shaded(blank) for one in contexts)) for heading, contexts in parts
    ]
    return write_page(
        out,
        kind="Units of the state",
        title=run,
        verdict=f"Where units of {level} are highest along {text}.",
        text=[
            "The warmer a token, the higher the unit, or the mean of the units, after it: from its mean over the text"
            " to four standard deviations above. Found places are bold."
        ],
        sections=sections,
    )
