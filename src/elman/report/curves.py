"""The curves of a report: perplexity or NLL, learning rate, gradient norm, speed."""

import dataclasses
import math
from collections.abc import Sequence

from elman.drawing.plots import Curve, Mark, Plot, Quantity, is_empty
from elman.report.folder import RunFolder
from elman.report.metrics import Metrics, Train, Valid
from elman.report.tables import loss

_EVENTS = {"averaging": "averaging begins", "fine-tune": "fine-tuning", "resume": "resumed", "stop": "stopped"}


@dataclasses.dataclass(frozen=True)
class Axis:
    """The x axis: time in units of `unit` seconds, or epochs where there is no unit."""

    name: str
    unit: float | None = None

    def along(self, lines: Sequence[Train | Valid]) -> list[float]:
        """The places of lines."""
        return [line.epoch if self.unit is None else line.seconds / self.unit for line in lines]

    def marks(self, metrics: Metrics) -> list[Mark]:
        """The places of events; one without a time lies at the last line before it."""
        marks = []
        for event in metrics.events:
            if event.event in _EVENTS:
                seconds = event.seconds if math.isfinite(event.seconds) else metrics.seconds_at(event.step)
                marks.append(Mark(event.epoch if self.unit is None else seconds / self.unit, _EVENTS[event.event]))
        return marks


EPOCHS = Axis("epochs")


def time_axis(runs: Sequence[RunFolder]) -> Axis:
    """Minutes; seconds where all runs are short, hours where one is long."""
    longest = max((run.metrics.seconds for run in runs if math.isfinite(run.metrics.seconds)), default=0.0)
    if longest < 180:
        return Axis("seconds", 1)
    return Axis("minutes", 60) if longest < 6 * 3600 else Axis("hours", 3600)


def loss_plots(runs: Sequence[RunFolder], series: Sequence[int]) -> list[Plot]:
    """The loss against epochs and against time; `series` is the colour of each run."""
    plots = [_loss(axis, runs, series) for axis in (EPOCHS, time_axis(runs))]
    return [plot for plot in plots if not is_empty(plot)]


def other_plots(runs: Sequence[RunFolder], series: Sequence[int]) -> list[Plot]:
    """Learning rate, gradient norm before clipping and speed, where they were written."""
    rates, norms, speeds = [], [], []
    time = time_axis(runs)
    for run, colour in zip(runs, series, strict=True):
        lines = run.metrics.train
        rates.append(Curve(EPOCHS.along(lines), [line.lr for line in lines], colour))
        norms.append(Curve(EPOCHS.along(lines), [line.grad_norm for line in lines], colour))
        speeds.append(Curve(time.along(lines), [line.tokens_per_s for line in lines], colour))
    # The threshold applies to the norm that is drawn only where it is the norm of all gradients.
    thresholds = {t.clip if t.clip_by == "global" else None for t in (run.recipe.training for run in runs)}
    levels = [Mark(clip, "clipped above") for clip in thresholds if clip is not None and len(thresholds) == 1]
    wanted: list[tuple[str, str, Axis, Quantity, list[Curve], list[Mark]]] = [
        ("rate", "Learning rate", EPOCHS, "rate", rates, []),
        ("norm", "Gradient norm before clipping", EPOCHS, "norm", norms, levels),
        ("speed", f"{runs[0].symbol.capitalize()}s per second", time, "speed", speeds, []),
    ]
    plots = [
        Plot(name, title, _range(drawn), axis.name, quantity, drawn, levels=lines, size="narrow")
        for name, title, axis, quantity, drawn, lines in wanted
    ]
    return [plot for plot in plots if not is_empty(plot)]


def _loss(axis: Axis, runs: Sequence[RunFolder], series: Sequence[int]) -> Plot:
    scale = runs[0].scale
    curves: list[Curve] = []
    best: list[tuple[float, float, int]] = []
    for run, colour in zip(runs, series, strict=True):
        train, checks, lowest = run.metrics.train, run.metrics.valid, run.metrics.best
        thin = 1 if len(runs) == 1 else colour
        curves.append(Curve(axis.along(train), [scale.of(line.loss) for line in train], thin))
        curves.append(Curve(axis.along(checks), [scale.of(line.nll) for line in checks], colour, "checks"))
        if lowest is not None:
            best.append((axis.along([lowest])[0], scale.of(lowest.nll), colour))
    one, margin = len(runs) == 1, runs[0].recipe.training.margin is not None
    name = "loss with the margin" if margin else scale.name
    baselines = [Mark(scale.of(row.nll), row.name) for row in runs[0].baselines if row.split == "valid" and row.name]
    return Plot(
        name=f"{scale.quantity}-{axis.name}",
        title=f"{name[0].upper()}{name[1:]} against {axis.name}",
        description="; ".join(map(_described, runs)),
        x_label=axis.name,
        quantity=scale.quantity,
        curves=curves,
        marks=axis.marks(runs[0].metrics) if one else [],
        levels=baselines if one and not margin else [],  # of the same loss as the dots
        rings=best,
    )


def _described(run: RunFolder) -> str:
    train, best, scaled = run.metrics.train, run.metrics.best, run.scale.of
    losses = [scaled(line.loss) for line in train if math.isfinite(line.loss)]
    text = f"training from {loss(losses[0])} to {loss(losses[-1])}" if losses else "no training lines"
    return f"{text}, best validation {loss(scaled(best.nll))} at epoch {best.epoch:g}" if best else text


def _range(curves: Sequence[Curve]) -> str:
    values = [y for curve in curves for y in curve.y if math.isfinite(y)]
    return f"between {min(values):.3g} and {max(values):.3g}" if values else "no values"
