"""What a run shows of its model: samples.json and surprisal.json, as tasks write them and the report reads them."""

from typing import TypeAlias

import msgspec

from elman.drawing.constituents import TreeDrawing
from elman.drawing.forecast import Forecast
from elman.drawing.heat_map import Word
from elman.drawing.piano_roll import PianoRoll
from elman.drawing.tags import TagDrawing

Figure: TypeAlias = PianoRoll | Forecast | TreeDrawing | TagDrawing
"""What a sample may be drawn as."""


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

    Where `figure` is drawn, `text` describes it. For pairs the prompt is the source, the text the output, and the
    reference the target of the data.
    """

    prompt: str | None = None
    reference: str | None = None
    text: str
    temperature: float | None = None
    seed: int | None = None
    figure: Figure | None = None
    attention: Attention | None = None


class Passage(msgspec.Struct, frozen=True):
    sentence: list[Word] = []
