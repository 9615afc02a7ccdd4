"""The lines of metrics.jsonl, which a run writes while it trains."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import msgspec

from elman.errors import UserError
from elman.formats import parse_json


class Train(msgspec.Struct, frozen=True, tag_field="kind", tag="train"):
    """A stretch of training since the previous such line.

    `loss` is the mean negative log-likelihood (nats per token) without penalties, `epoch` a fraction, `grad_norm` taken
    before clipping, `seconds` over all resumptions; sigma_1, s and s_other belong to each constrained block (see
    `learning/constraint.py`), the spectral radius to J over all layers.
    """

    step: int
    epoch: float
    loss: float
    perplexity: float
    seconds: float
    phase: int = 0
    lr: float = math.nan
    grad_norm: float = math.nan
    tokens_per_s: float = math.nan
    sigma_1: tuple[float, ...] = ()
    s: tuple[float, ...] = ()
    s_other: tuple[float, ...] = ()
    spectral_radius: float = math.nan


class Valid(msgspec.Struct, frozen=True, tag_field="kind", tag="valid"):
    """A validation: `nll` in nats per token; `averaged`: whether the averaged weights were used."""

    step: int
    epoch: float
    nll: float
    perplexity: float
    seconds: float
    phase: int = 0
    best: bool = False
    averaged: bool = False


class Event(msgspec.Struct, frozen=True, tag_field="kind", tag="event"):
    """The start of averaging or fine-tuning, a resumption, a stop, or the `nll` of the untrained model or of a branch.

    `predicted`: the NLL at the end, by a branch.
    """

    step: int
    epoch: float
    event: str
    message: str = ""
    seconds: float = math.nan
    nll: float = math.nan
    predicted: float = math.nan


class SavedModel(msgspec.Struct, frozen=True):
    """The validation and the size of the saved model, as its file states them; `epoch` within its phase."""

    step: int
    epoch: float
    valid_nll: float
    parameters: int | None = None


Entry = Train | Valid | Event


@dataclasses.dataclass(frozen=True)
class Metrics:
    """The lines by kind, in the order in which they were written."""

    train: tuple[Train, ...] = ()
    valid: tuple[Valid, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def best(self) -> Valid | None:
        """The validation of lowest perplexity; None before the first."""
        finite = [check for check in self.valid if math.isfinite(check.nll)]
        return min(finite, key=lambda check: check.nll, default=None)

    @property
    def prediction(self) -> Event | None:
        """The event that predicted the loss at the end; None where none did."""
        return next((event for event in reversed(self.events) if math.isfinite(event.predicted)), None)

    @property
    def seconds(self) -> float:
        """Training time; NaN where nothing was written."""
        return max((line.seconds for line in self._lines), default=math.nan)

    @property
    def epochs(self) -> float:
        """Passes over the text so far; NaN where nothing was written."""
        return max((line.epoch for line in self._lines), default=math.nan)

    @property
    def tokens_per_s(self) -> float:
        """The median speed; NaN where none was written."""
        speeds = sorted(line.tokens_per_s for line in self.train if math.isfinite(line.tokens_per_s))
        return speeds[len(speeds) // 2] if speeds else math.nan

    @property
    def _lines(self) -> tuple[Train | Valid, ...]:
        return (*self.train, *self.valid)

    def seconds_at(self, step: int) -> float:
        """When a step was done, by the last line or event up to it; 0 before the first."""
        seconds = (line.seconds for line in (*self._lines, *self.events) if line.step <= step)
        return max((value for value in seconds if math.isfinite(value)), default=0.0)


def read_metrics(path: Path) -> Metrics:
    """Read a metrics.jsonl, epochs counted over all phases; raises UserError where a line is damaged.

    An unreadable last line without a line break is still being written, or was when the run was killed: it is ignored.
    So are blank lines and lines of unknown kinds. A number that was not finite is null.
    """
    lines, entries = path.read_bytes().split(b"\n"), list[Entry]()
    phase, before, done = 0, 0.0, 0.0  # the epochs of earlier phases, and of all so far
    for number, line in enumerate(lines, start=1):
        try:
            raw = parse_json(line) if line.strip() else None
            if isinstance(raw, dict) and isinstance(raw.get("epoch"), int | float):
                if raw.get("phase", phase) != phase:  # a phase counts its epochs from 0
                    phase, before = raw["phase"], done
                raw["epoch"] += before
                done = max(done, raw["epoch"])
            entry = None if raw is None else _entry(raw)
        except ValueError as error:
            if number == len(lines):
                break
            where = f"{path}, line {number}"
            raise UserError(f"{where}: not a line of metrics ({error}); remove the line or restore the file") from None
        if entry is not None:
            entries.append(entry)
    return Metrics(
        train=tuple(entry for entry in entries if isinstance(entry, Train)),
        valid=tuple(entry for entry in entries if isinstance(entry, Valid)),
        events=tuple(entry for entry in entries if isinstance(entry, Event)),
    )


def with_model(metrics: Metrics, model: SavedModel | None) -> Metrics:
    """The metrics with the validation of the saved model, where a run that was out of time wrote no line of it."""
    written = (*metrics.train, *metrics.valid, *metrics.events)
    if model is None or not written or any(line.step == model.step for line in metrics.valid):
        return metrics
    seconds, nll = metrics.seconds_at(model.step), model.valid_nll
    epoch = max([model.epoch, *(line.epoch for line in metrics.valid if line.step <= model.step)])
    check = Valid(model.step, epoch, nll, math.exp(min(nll, 700.0)), seconds, best=True)
    return dataclasses.replace(metrics, valid=(*metrics.valid, check))


def _entry(raw: Any) -> Entry | None:
    if isinstance(raw, dict) and isinstance(raw.get("kind"), str) and raw["kind"] not in ("train", "valid", "event"):
        return None
    if isinstance(raw, dict):
        raw = {key: math.nan if value is None else value for key, value in raw.items()}
    return msgspec.convert(raw, Entry)
