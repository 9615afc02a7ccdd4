"""What a run shows of its model: samples.json and surprisal.json, as tasks write them and the report reads them."""

from pkgutil import resolve_name
from typing import Any

import msgspec

from elman.drawing.heat_map import Word

FIGURES = {
    "piano-roll": "elman.drawing.piano_roll:PianoRoll",
    "forecast": "elman.drawing.forecast:Forecast",
    "tree": "elman.drawing.constituents:TreeDrawing",
    "tags": "elman.drawing.tags:TagDrawing",
}
"""What a sample may be drawn as: by its tag a record with `draw`, which is imported when there is one."""


class Attention(msgspec.Struct, frozen=True):
    """The attention of a decoder: the weight of each source word at each target word, [T, S]."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]

    def __post_init__(self) -> None:
        if [len(row) for row in self.weights] != [len(self.source)] * len(self.target):
            raise ValueError("weights are not a number per target and source word")


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of samples.json.

    Where `figure`, one of `FIGURES`, is drawn, `text` describes it. For pairs the prompt is the source, the text the
    output, and the reference the target of the data.
    """

    prompt: str | None = None
    reference: str | None = None
    text: str
    temperature: float | None = None
    seed: int | None = None
    figure: Any = None
    attention: Attention | None = None

    def __post_init__(self) -> None:
        if isinstance(self.figure, dict):  # as it stands in the file
            if (kind := self.figure.get("kind")) not in FIGURES:
                raise ValueError(f"a figure of kind {kind!r}")
            msgspec.structs.force_setattr(self, "figure", msgspec.convert(self.figure, resolve_name(FIGURES[kind])))
        elif self.figure is not None and not hasattr(self.figure, "draw"):
            raise ValueError("a figure that cannot be drawn")


class Passage(msgspec.Struct, frozen=True):
    sentence: list[Word] = []
