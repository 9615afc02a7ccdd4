"""A model of trees: the labels of their nodes, and, of a parser, the score of a tree."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elman.data.trees.shape import Trees
from elman.network.cores.core import Trace
from elman.network.cores.recursive import RecursiveCore
from elman.network.model import LanguageModel
from elman.network.trees.composition import NodeState, by_height


@final
class TreeModel(LanguageModel):
    """p(label | node), the vector of a node being composed along the tree below it.

    Shapes: S words, B sentences, N nodes, L labels, H numbers per node. Used as a model of sequences it labels every
    word by itself. Dropout is applied to vectors before they are labelled or scored, never between nodes.
    """

    core: RecursiveCore

    def leaves(self, words: Int[Tensor, "S B"], lengths: Int[Tensor, " B"]) -> NodeState:
        """The states [S, B, ...] of the leaves of padded sentences."""
        mask = torch.arange(len(words), device=words.device).unsqueeze(1) < lengths
        return self.core.leaves(self.encoder(words), mask)

    def nodes(self, leaves: NodeState, trees: Trees) -> NodeState:
        """The states [N, ...] of the nodes of trees, from the states [S, B, ...] of their leaves."""
        own = tuple(leaf.flatten(0, 1)[trees.places] for leaf in leaves)
        return by_height(self.core.composition, own, trees)

    def dropped(self, vectors: Float[Tensor, "N H"]) -> Float[Tensor, "N H"]:
        """Vectors as they are labelled and scored."""
        return self.core.dropout(vectors.unsqueeze(1)).squeeze(1)

    def trace_of(self, vectors: Float[Tensor, "N H"]) -> Trace:
        """Nodes as what the output layer reads, [N, 1, H]."""
        return Trace((vectors.unsqueeze(1),), (vectors.unsqueeze(1),))

    def label_log_probs(self, vectors: Float[Tensor, "*N H"]) -> Float[Tensor, "*N L"]:
        """Log-probabilities of the labels of nodes; their vectors are taken as they are."""
        flat = vectors.flatten(0, -2)
        return self.output.log_probs(self.trace_of(flat)).squeeze(1).unflatten(0, vectors.shape[:-1])

    def scores(self, vectors: Float[Tensor, "*N H"]) -> Float[Tensor, "*N"]:
        """The scores u'p of nodes that have children; only a parser has them."""
        return self.core.scores(vectors)
