"""Compositions: how the vectors of the children of a node of a tree become that of the node."""

from typing import Annotated, ClassVar

from msgspec import Meta

from elman.config.parts import Part


class Composition(Part, frozen=True):
    """How the vector of a node is made from the vectors of its children."""

    folder = "elman.config.composition"
    builder: ClassVar[str]


class Affine(Composition, frozen=True, tag="affine"):
    """tanh of an affine map of both children, Socher's recursive network."""

    builder: ClassVar = "elman.network.trees.affine:Affine"


class MatrixVector(Composition, frozen=True, tag="matrix-vector"):
    """A vector and a matrix per node; the matrix of a word is the identity, a diagonal and `rank` outer products."""

    builder: ClassVar = "elman.network.trees.matrix_vector:MatrixVector"
    rank: Annotated[int, Meta(ge=0, le=1000)] = 3


class BinaryTreeLSTM(Composition, frozen=True, tag="binary-lstm"):
    """A tree LSTM whose left and right child have weights of their own."""

    builder: ClassVar = "elman.network.trees.binary_lstm:BinaryTreeLSTM"


class ChildSumTreeLSTM(Composition, frozen=True, tag="child-sum-lstm"):
    """A tree LSTM over the sum of any number of children."""

    builder: ClassVar = "elman.network.trees.child_sum_lstm:ChildSumTreeLSTM"
