"""The interface of recurrent cores: a beginning state, and a trace of all levels."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.config import plugins
from elman.config.parts import Built
from elman.network.state import State


class Trace(NamedTuple):
    """The levels of a core over a window, level 0 being the encoded input.

    `levels` are their outputs [T, B, _] after dropout, read by contexts and AR, `raw` those before it, of which TAR
    reads the last; `attention` holds the weights [T, B, S] of the positions of the source, if there is one. `inputs`
    are the inputs [T, B] or [T, B, P] that were read, for a gate with word vectors of its own; a core leaves them out.
    """

    levels: tuple[Tensor, ...]
    raw: tuple[Tensor, ...]
    attention: Tensor | None = None
    inputs: Tensor | None = None

    @property
    def top(self) -> Tensor:
        """The last level after dropout, [T, B, D]."""
        return self.levels[-1]


class RecurrentCore(Built, nn.Module, ABC):
    """A recurrent network between encoder and output layer; `dims`: widths of the trace's levels, encoder first.

    `reads` decides which model it is a part of: of sequences, of trees, or of the tags of sentences. Where it `hears`
    the output of the model, a third argument of `forward` gives log-probabilities [1, B, V] of the trace of one step.
    """

    reads: ClassVar[Literal["sequences", "trees", "sentences"]] = "sequences"
    hears = False
    dims: tuple[int, ...]

    @abstractmethod
    def begin(self, batch: int) -> State:
        """The state of `batch` sequences that have not begun."""

    @abstractmethod
    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        """The trace of a window x [T, B, E], and the state after it."""

    @abstractmethod
    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the parameters, in a fixed order, from torch's global random state."""


class Surroundings(NamedTuple):
    """What a core needs to know of the network around it: E, V and how dropout masks are drawn.

    `num_outputs` is for a core that reads the model's own output. `memory_size` is the width of the memory of a source,
    for a core with attention; None: there is no source.
    """

    input_size: int
    num_outputs: int = 0
    locked: bool = True
    memory_size: int | None = None


def build_core(
    record: config.Core, input_size: int, num_outputs: int = 0, *, locked: bool, memory_size: int | None = None
) -> RecurrentCore:
    """The recurrent core of a recipe; arguments as in `Surroundings`; raises UserError where parts do not fit."""
    return plugins.built(record, RecurrentCore, Surroundings(input_size, num_outputs, locked, memory_size))
