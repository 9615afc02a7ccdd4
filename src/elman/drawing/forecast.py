"""A forecast beside the series it predicts: the truth, one-step predictions, and the range of free continuations."""

from typing import ClassVar

import msgspec
from markupsafe import Markup


class Forecast(msgspec.Struct, frozen=True, tag_field="kind", tag="forecast"):
    """The last n steps of a column, the last m of which are also forecast freely.

    Attributes:
        column: its name.
        first: the number of the first step shown, within its split.
        truth: [n]; None where a value is missing.
        one_step: the mean of each step given all steps before it, [n]; None where a value is missing.
        low, middle, high: the .1, .5 and .9 quantiles of free continuations, [m].
    """

    column: str
    first: int
    truth: list[float | None]
    one_step: list[float | None]
    low: list[float]
    middle: list[float]
    high: list[float]

    def __post_init__(self) -> None:
        if not 0 < len(self.truth) == len(self.one_step):
            raise ValueError("truth and one_step have different lengths")
        if not len(self.low) == len(self.middle) == len(self.high) <= len(self.truth):
            raise ValueError("low, middle and high have different lengths")

    caption: ClassVar[str] = ""

    def draw(self, name: str, title: str) -> Markup:
        """An `<svg>`; `name` must be unique within the page."""
        import numpy as np

        from elman.drawing.style import INK, MUTED, SERIES, canvas, label, svg  # matplotlib, for pages alone

        figure, axes = canvas("wide")
        end = self.first + len(self.truth)
        steps, free = range(self.first, end), range(end - len(self.middle), end)
        truth, one_step = (np.array(part, np.float64) for part in (self.truth, self.one_step))
        axes.plot(steps, truth, color=INK, linewidth=1.2, label="series")
        axes.plot(steps, one_step, color=SERIES[0], linewidth=1.0, linestyle=(0, (3, 2)), label="one step ahead")
        axes.fill_between(free, self.low, self.high, color=SERIES[1], alpha=0.25, linewidth=0)
        axes.plot(free, self.middle, color=SERIES[1], linewidth=1.2, label="free forecast, median and 80 %")
        label(axes, "step", "")
        axes.margins(y=0.25)
        axes.legend(frameon=False, fontsize=8.5, labelcolor=MUTED, loc="upper left", ncols=3)
        return svg(figure, name, f"Forecast of {self.column}", title)
