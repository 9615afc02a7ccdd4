"""The network as a whole."""

from typing import Literal

from elman.config.initialisation import Initialisation
from elman.config.network import Characters, Core, Frames, Lookup, Reader
from elman.config.output import Output
from elman.config.record import Record


class Model(Record, frozen=True):
    """The network. `masks`: dropout masks held over time ("locked", Gal) or drawn anew ("fresh", Zaremba).

    `source`: what reads the source of each target, with the core attentive.
    """

    encoder: Lookup | Characters | Frames
    core: Core
    output: Output = Output()
    source: Reader | None = None
    initialisation: Initialisation = Initialisation()
    masks: Literal["locked", "fresh"] = "locked"
