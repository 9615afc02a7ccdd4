"""Learning rules, and teacher forcing that is taken back."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from elman.config.record import Positive, PositiveFloat, Record, Tagged


class BPTT(Tagged, frozen=True, tag="bptt"):
    """Back-propagation through time; `steps`: no gradient goes back further than so many (`learning/lookback.py`)."""

    steps: Positive | None = None


class RTRL(Tagged, frozen=True, tag="rtrl"):
    """Real-time recurrent learning (`learning/rtrl.py`), for networks whose influence matrix has room in `max_gb`."""

    max_gb: PositiveFloat = 2.0


Rule: TypeAlias = BPTT | RTRL


class Forcing(Record, frozen=True):
    """How likely each true symbol is read, rather than one of the model's own (`learning/forcing.py`).

    `scale` is k, and the time i is counted in epochs.
    """

    schedule: Literal["constant", "linear", "exponential", "sigmoid"] = "linear"
    scale: PositiveFloat = 0.1
    floor: Annotated[float, Meta(ge=0, le=1)] = 0.0
