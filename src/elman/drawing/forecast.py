"""A forecast and the series that it predicts: the truth, one-step predictions, and the range of free continuations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from markupsafe import Markup

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure


class Forecast(msgspec.Struct, frozen=True, tag_field="kind", tag="forecast"):
    """The last n steps of a column, the last m of which are also forecast freely.

    Attributes:
        column: its name.
        first: the number of the first step shown, within its split.
        truth: [n]; None where a value is missing.
        one_step: the mean of each step given all steps before it, [n]; None where a value is missing.
        low, middle, high: the .1, .5 and .9 quantiles of free continuations, [m].
        dates: of the steps, [n], in ISO 8601; None: they have none.
    """

    column: str
    first: int
    truth: list[float | None]
    one_step: list[float | None]
    low: list[float]
    middle: list[float]
    high: list[float]
    dates: list[str] | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.truth) == len(self.one_step):
            raise ValueError("truth and one_step have different lengths")
        if self.dates is not None and len(self.dates) != len(self.truth):
            raise ValueError("truth and dates have different lengths")
        if not len(self.low) == len(self.middle) == len(self.high) <= len(self.truth):
            raise ValueError("low, middle and high have different lengths")

    caption: ClassVar[str] = ""

    def draw(self, name: str, title: str) -> Markup:
        """An `<svg>`; `name` must be unique within the page."""
        from elman.drawing.style import svg  # matplotlib, for pages alone

        return svg(self.figure(), name, f"Forecast of {self.column}", title)

    def figure(self) -> "Figure":
        """The drawing, whose legend is above the curves."""
        import numpy as np

        from elman.drawing.style import INK, MUTED, SERIES, canvas, dated, label

        figure, axes = canvas("wide")
        steps = range(self.first, self.first + len(self.truth))
        free = steps[len(steps) - len(self.middle) :]
        truth, one_step = (np.array(part, np.float64) for part in (self.truth, self.one_step))
        axes.plot(steps, truth, color=INK, linewidth=1.2, label="series", **_alone(truth))
        if not np.isnan(one_step).all():
            dashed: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (3, 2)), "label": "one step ahead"}
            axes.plot(steps, one_step, color=SERIES[0], **dashed, **_alone(one_step))
        single = 5 * (len(free) == 1)  # points of width, since its range has none
        axes.fill_between(free, self.low, self.high, color=SERIES[1], alpha=0.25, linewidth=single, label="80 %")
        axes.plot(free, self.middle, color=SERIES[1], linewidth=1.2, label="free forecast", **_alone(self.middle))
        label(axes, "" if self.dates else "step", "")
        if self.dates:
            dated(axes, steps, self.dates)
        axes.tick_params(labelsize=8)
        low, high = axes.get_ylim()
        axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= high])
        axes.set_ylim(low, high + 0.16 * (high - low))  # for the legend, which no line crosses
        axes.legend(
            frameon=False,
            fontsize=7.5,
            labelcolor=MUTED,
            loc="upper left",
            ncols=4,
            columnspacing=1.2,
            handlelength=1.6,
            handletextpad=0.5,
            borderaxespad=0.1,
        )
        return figure


def _alone(values: "Sequence[float] | npt.NDArray[Any]") -> dict[str, Any]:
    """How a line is drawn so that values between missing ones, which no line joins, are seen: as dots."""
    import numpy as np

    known = np.pad(np.isfinite(np.asarray(values, np.float64)), 1)
    places = np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:]).tolist()
    return {"marker": "o", "markersize": 3, "markevery": places} if places else {}
