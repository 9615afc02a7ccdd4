"""Compositions: how the vectors of the children of a node of a tree become that of the node."""

from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta

from elman.config.record import Part


class Affine(Part, frozen=True, tag="affine"):
    """tanh of an affine map of both children, Socher's recursive network."""

    builder: ClassVar = "elman.network.trees.affine:Affine"


class MatrixVector(Part, frozen=True, tag="matrix-vector"):
    """A vector and a matrix per node; the matrix of a word is the identity, a diagonal and `rank` outer products."""

    builder: ClassVar = "elman.network.trees.matrix_vector:MatrixVector"
    rank: Annotated[int, Meta(ge=0, le=1000)] = 3


class BinaryTreeLSTM(Part, frozen=True, tag="binary-lstm"):
    """A tree LSTM whose left and right child have weights of their own."""

    builder: ClassVar = "elman.network.trees.binary_lstm:BinaryTreeLSTM"


class ChildSumTreeLSTM(Part, frozen=True, tag="child-sum-lstm"):
    """A tree LSTM over the sum of any number of children."""

    builder: ClassVar = "elman.network.trees.child_sum_lstm:ChildSumTreeLSTM"


Composition: TypeAlias = Affine | MatrixVector | BinaryTreeLSTM | ChildSumTreeLSTM
