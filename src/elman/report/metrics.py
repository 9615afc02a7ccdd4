"""Reading metrics.jsonl: what a run wrote down while it trained."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import msgspec

from elman.drawing.heat_map import Word
from elman.errors import UserError
from elman.evaluation.statistics import Figure


# FOLDED report/records.py: The files of a run folder as records: what of them the report reads.
class Output(msgspec.Struct, frozen=True):
    """What a model of pairs wrote, measured, and a baseline that needs no model; `constrained` is told of trees."""

    beam: int
    measures: list[Figure]
    baseline: list[Figure]
    baseline_name: str
    constrained: bool | None = None


class Result(msgspec.Struct, frozen=True):
    """A row of results.json or, with a name, of baselines.json; perplexity a token, `nll` in nats."""

    split: str
    perplexity: float
    name: str | None = None
    nll: float | None = None
    bits_per_token: float | None = None
    bits_per_character: float | None = None
    tokens: int | None = None
    unknown: int | None = None
    method: str = "static"
    context: str | None = None
    model: str = "best"
    accuracy: float | None = None
    pieces: int | None = None
    output: Output | None = None


class Looks(msgspec.Struct, frozen=True):
    """What a decoder looked at: the weight of each word of the source at each word of the target, [T, S]."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]


class Sample(msgspec.Struct, frozen=True):
    """A row of samples.json; `roll` is music, the MIDI pitches that sound at each step, and `text` then its file.

    Of pairs the prompt is the source, the text what was found, and the reference what the data has.
    """

    text: str
    prompt: str = ""
    temperature: float | None = None
    seed: int | None = None
    roll: list[list[int]] | None = None
    reference: str | None = None
    attention: Looks | None = None


class Passage(msgspec.Struct, frozen=True):
    """surprisal.json."""

    sentence: list[Word] = []


class SplitFacts(msgspec.Struct, frozen=True):
    """A split in data.json; of music its steps are the tokens."""

    tokens: int
    unknown: int | None = None
    characters: int | None = None
    lines: int | None = None
    sha256: str | None = None
    pieces: int | None = None


class DataFacts(msgspec.Struct, frozen=True):
    """data.json."""

    name: str
    source: str | None = None
    tokenisation: str | None = None
    lowercase: bool | None = None
    eos: str | None = None
    min_count: int | None = None
    splits: dict[str, SplitFacts] = {}
    digest: str | None = None


class TrainingFacts(msgspec.Struct, frozen=True):
    """What of [training] is drawn."""

    clip: float | None = None
    clip_by: str = "global"


class Expected(msgspec.Struct, frozen=True):
    """[expected] of the recipe: published perplexities and parameters."""

    source: str = "source not given"
    valid: float | None = None
    test: float | None = None
    fine_tuned_valid: float | None = None
    fine_tuned_test: float | None = None
    parameters: int | None = None


class RecipeFacts(msgspec.Struct, frozen=True):
    """What of a recipe the report speaks of; recipes of other versions may hold other keys."""

    title: str | None = None
    notes: str | None = None
    citation: str | None = None
    seed: int | None = None
    training: TrainingFacts = TrainingFacts()
    expected: Expected | None = None


# TARGET
class Train(msgspec.Struct, frozen=True, tag_field="kind", tag="train"):
    """A stretch of training since the previous such line.

    Attributes:
        step: updates done so far.
        epoch: passes over the text, a fraction.
        loss: mean negative log-likelihood (nats a token), without penalties.
        perplexity: exp(loss).
        lr: learning rate of the last step.
        grad_norm: norm of the gradient before clipping.
        tokens_per_s: speed.
        seconds: time trained since the run began, over all resumptions.
        sigma_1, s, s_other: of each constrained block; see `learning/constraint.py`.
        spectral_radius: of J, over all layers.

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
    """A validation: nats a token, and whether the averaged weights were used."""

    step: int
    epoch: float
    nll: float
    perplexity: float
    seconds: float
    phase: int = 0
    best: bool = False
    averaged: bool = False


class Event(msgspec.Struct, frozen=True, tag_field="kind", tag="event"):
    """Something that happened: averaging began, fine-tuning began, the run was resumed or stopped.

    `nll`: the validation loss of the untrained model, for the event of that name.
    """

    step: int
    epoch: float
    event: str
    message: str = ""
    seconds: float = math.nan
    nll: float = math.nan


Entry = Train | Valid | Event

_KINDS = ("train", "valid", "event")


@dataclasses.dataclass(frozen=True)
class Metrics:
    """The lines of a metrics.jsonl by kind, in the order in which they were written."""

    train: tuple[Train, ...] = ()
    valid: tuple[Valid, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def best(self) -> Valid | None:
        """The validation of lowest perplexity; None before the first."""
        finite = [check for check in self.valid if math.isfinite(check.nll)]
        return min(finite, key=lambda check: check.nll, default=None)

    @property
    def seconds(self) -> float:
        """Time trained; NaN when nothing was written."""
        return max((line.seconds for line in self._lines), default=math.nan)

    @property
    def epochs(self) -> float:
        """Passes over the text so far; NaN when nothing was written."""
        return max((line.epoch for line in self._lines), default=math.nan)

    @property
    def tokens_per_s(self) -> float:
        """The median speed; NaN when none was written."""
        speeds = sorted(line.tokens_per_s for line in self.train if math.isfinite(line.tokens_per_s))
        return speeds[len(speeds) // 2] if speeds else math.nan

    @property
    def _lines(self) -> tuple[Train | Valid, ...]:
        return (*self.train, *self.valid)

    def seconds_at(self, step: int) -> float:
        """When a step was done, by the last line up to it; 0 before the first."""
        return max((line.seconds for line in self._lines if line.step <= step), default=0.0)


def read_metrics(path: Path) -> Metrics:
    """Read a metrics.jsonl.

    A last line without its line break that cannot be read is one that is just being written, or was when
    the run was killed: it is ignored. So are blank lines and kinds of lines that this version does not know.

    Raises:
        UserError: another line is damaged.

    """
    lines = path.read_bytes().split(b"\n")
    entries: list[Entry] = []
    for number, line in enumerate(lines, start=1):
        try:
            raw = json.loads(line.decode()) if line.strip() else None
            entry = None if raw is None else _entry(raw)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise UserError(
                f"{path}, line {number}: not a line of metrics ({error}); remove the line or restore the file"
            ) from None
        if entry is not None:
            entries.append(entry)
    return Metrics(
        train=tuple(entry for entry in entries if isinstance(entry, Train)),
        valid=tuple(entry for entry in entries if isinstance(entry, Valid)),
        events=tuple(entry for entry in entries if isinstance(entry, Event)),
    )


def _entry(raw: Any) -> Entry | None:
    if isinstance(raw, dict) and isinstance(raw.get("kind"), str) and raw["kind"] not in _KINDS:
        return None
    return msgspec.convert(raw, Entry)
