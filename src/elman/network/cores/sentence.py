"""The core of a tagger: layers that read whole sentences, forwards or in both directions (Schuster & Paliwal 1997)."""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from elman import config
from elman.data.batches import Source
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.cores.source import sentence_reader
from elman.network.cores.stack import Stack
from elman.network.state import State


class Sentence(config.Core, frozen=True, tag="sentence"):
    """Layers that read a whole sentence, forwards or in both directions, before anything is predicted.

    `stack.sizes` holds the size of each direction; the layers make a `Reader`.
    """

    reads = "tags"
    stack: Stack
    bidirectional: bool = True


@final
class SentenceCore(RecurrentCore, of=Sentence):
    """Vectors of the words of B sentences of at most S words, [S, B, M], from their own, [S, B, E].

    In both directions each vector depends on the whole sentence, so that there is no state: `forward` takes a window as
    whole sentences without padding.
    """

    reads = "sentences"

    def __init__(self, record: Sentence, surroundings: Surroundings) -> None:
        super().__init__()
        input_size, locked = surroundings.input_size, surroundings.locked
        where, both = "model.core.stack", record.bidirectional
        self.reader = sentence_reader(record.stack, input_size, where, locked=locked, bidirectional=both)
        self.dims = (input_size, self.reader.sizes[-1])

    def read(self, x: Float[Tensor, "S B E"], mask: Bool[Tensor, "S B"]) -> Trace:
        """The trace of sentences; the mask is false at padding, which follows a sentence and has no effect on it."""
        vectors = self.reader(Source(x, mask)).memory
        return Trace((x, vectors), (x, vectors))

    def begin(self, batch: int) -> State:  # noqa: ARG002
        return ()

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        return self.read(x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)), state

    def initialise(self, rules: config.Initialisation) -> None:
        self.reader.initialise(rules)
