"""Encoders: from symbols, frames of notes or real values to vectors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from elman import config
from elman.config import plugins
from elman.config.parts import Built


class TokenEncoder(Built, nn.Module, ABC):
    """Maps the input of each step ("symbols", "notes" or "values") to a vector of width `size` = E.

    One that `spells` its symbols has a vector for any word (`LanguageModel.knowing`).
    """

    reads: ClassVar[str] = "symbols"
    spells: ClassVar[bool] = False
    size: int

    @abstractmethod
    def forward(self, x: Shaped[Tensor, "T B *P"]) -> Float[Tensor, "T B E"]:
        """Vectors [T, B, E] of symbols [T, B], or of frames or values [T, B, P]."""

    @abstractmethod
    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the parameters, in a fixed order, from torch's global random state."""


class Inputs(NamedTuple):
    """The inputs of an encoder: V symbols or P pitches, the vocabulary (for spelling), dropout masks held over time."""

    number: int
    words: Sequence[str] | None = None
    locked: bool = True

    def spelled(self) -> Sequence[str]:
        """The vocabulary; without it words are spelled as their numbers."""
        return self.words or [str(symbol) for symbol in range(self.number)]


def build_encoder(
    record: config.Encoder, number: int, words: Sequence[str] | None = None, *, locked: bool
) -> TokenEncoder:
    """The encoder of a recipe; arguments as in `Inputs`; raises UserError where parts do not fit together."""
    return plugins.built(record, TokenEncoder, Inputs(number, words, locked))
