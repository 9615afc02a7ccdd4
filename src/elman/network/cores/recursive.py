"""The core of a network over trees: the leaves of sentences, the composition of nodes, and their scores."""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elman import config
from elman.config import plugins
from elman.config.parts import OneOf
from elman.config.record import Positive, Rate
from elman.data.batches import Source
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.cores.source import sentence_reader
from elman.network.cores.stack import Stack
from elman.network.dropout import Dropout
from elman.network.initialisation import fill
from elman.network.state import State
from elman.network.trees.binary_lstm import BinaryTreeLSTM
from elman.network.trees.composition import Composition, NodeState


class Recursive(config.Core, frozen=True, tag="recursive"):
    """A network over trees: nodes are vectors of `size` numbers, composed of their children's vectors.

    `leaves`: layers that read the sentence in both directions before, `stack.sizes` holding the size of each direction;
    None: the leaves are the words alone. `parser`: nodes have scores, by which trees are searched for, and the recipe
    has a table training.margin; without it trees are always given. `output_dropout`: of the vectors that are labelled
    and scored.
    """

    reads = "trees"
    size: Positive
    composition: OneOf[config.Composition] = BinaryTreeLSTM()
    leaves: Stack | None = None
    parser: bool = False
    output_dropout: Rate = 0.0


@final
class RecursiveCore(RecurrentCore, of=Recursive):
    """Vectors of nodes [*, H]; S words, B sentences, E the width of word vectors.

    As a core of sequences it makes every word a tree of its own: `forward` gives the vectors of leaves. Other nodes are
    composed by `composition`, along trees that are given (`elman.network.trees.composition`) or searched for. A parser
    has `score_weight`, u in the score u'p of a node.
    """

    reads = "trees"

    def __init__(self, record: Recursive, surroundings: Surroundings) -> None:
        super().__init__()
        input_size, locked = surroundings.input_size, surroundings.locked
        self.dims = (input_size, record.size)
        below = record.leaves
        self.reader = None if below is None else sentence_reader(below, input_size, "model.core.leaves", locked=locked)
        width = input_size if self.reader is None else self.reader.sizes[-1]
        self.composition = plugins.built(record.composition, Composition, width, record.size)
        self.score_weight = nn.Parameter(torch.empty(1, record.size)) if record.parser else None
        self.dropout = Dropout(record.output_dropout, locked=False)

    def leaves(self, x: Float[Tensor, "S B E"], mask: Bool[Tensor, "S B"]) -> NodeState:
        """The states [S, B, ...] of the leaves of sentences from the vectors of words; the mask is false at padding."""
        return self.composition.leaf(x if self.reader is None else self.reader(Source(x, mask)).memory)

    def scores(self, vectors: Float[Tensor, "*N H"]) -> Float[Tensor, "*N"]:
        """Return u'p of nodes that have children; only a parser has such scores."""
        assert self.score_weight is not None, "only a parser scores nodes"
        return (vectors * self.score_weight.squeeze(0)).sum(-1)

    def begin(self, batch: int) -> State:  # noqa: ARG002
        return ()

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        """The vectors of the words as leaves of whole sentences, [T, B, H]."""
        everywhere = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        vectors = self.leaves(x, everywhere)[0]
        return Trace((x, self.dropout(vectors)), (x, vectors)), state

    def initialise(self, rules: config.Initialisation) -> None:
        if self.reader is not None:
            self.reader.initialise(rules)
        self.composition.initialise(rules)
        if self.score_weight is not None:
            fill(self.score_weight, rules.output, self.dims[-1])
