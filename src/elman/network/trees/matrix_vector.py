"""The matrix-vector recursive network: words and phrases change each other (Socher, Huval, Manning & Ng 2012, eqs 2-3).

    p = tanh(W [B a; A b]),  P = W_M [A; B]

A node is a vector and a matrix [d, d]: a and A of the left child, b and B of the right one. The matrix of a word
is A = I + U V + diag(s), with U [d, r] and V [r, d] (section 3.5 of the paper: r = 3). The numbers of a, s, U and V are
an affine map of the word's vector.
"""

from typing import Annotated, final

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn

from elman import config
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.trees.composition import Composition, NodeState, Part


class MatrixVector(config.Composition, frozen=True, tag="matrix-vector"):
    """A vector and a matrix per node; the matrix of a word is the identity, a diagonal and `rank` outer products."""

    rank: Annotated[int, Meta(ge=0, le=1000)] = 3


@final
class MatrixVectorComposition(Composition, of=MatrixVector):
    """p = tanh(W [B a; A b]), P = W_M [A; B]; the state is (p [*, d], P [*, d, d])."""

    def __init__(self, record: MatrixVector, input_size: int, size: int) -> None:
        super().__init__()
        self.size, self.rank = size, record.rank
        numbers = 2 * size + 2 * size * record.rank
        self.weight_leaf = nn.Parameter(torch.empty(numbers, input_size))
        self.bias_leaf = nn.Parameter(torch.empty(numbers))
        self.weight = nn.Parameter(torch.empty(size, 2 * size))
        self.weight_matrix = nn.Parameter(torch.empty(size, 2 * size))

    def leaf(self, x: Float[Tensor, "*N E"]) -> NodeState:
        """The vector of a word, and I + U V + diag(s)."""
        size, rank = self.size, self.rank
        numbers = linear(x, self.weight_leaf, self.bias_leaf)
        vector, diagonal, u, v = numbers.split([size, size, size * rank, size * rank], -1)
        product = u.unflatten(-1, (size, rank)) @ v.unflatten(-1, (rank, size))
        return vector, product + torch.diag_embed(1 + diagonal)

    def left(self, child: NodeState) -> Part:
        """a, A and W_M's left half times A."""
        vector, matrix = child
        return vector, matrix, self.weight_matrix[:, : self.size] @ matrix

    def right(self, child: NodeState) -> Part:
        """b, B and W_M's right half times B."""
        vector, matrix = child
        return vector, matrix, self.weight_matrix[:, self.size :] @ matrix

    def join(self, left: Part, right: Part) -> NodeState:
        """Each child's matrix times the vector of the other, and the sum of the maps of the matrices."""
        (a, matrix_a, from_a), (b, matrix_b, from_b) = left, right
        changed = torch.cat([(matrix_b @ a.unsqueeze(-1)).squeeze(-1), (matrix_a @ b.unsqueeze(-1)).squeeze(-1)], -1)
        return linear(changed, self.weight).tanh(), from_a + from_b

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.weight_leaf, rules.input, self.weight_leaf.shape[1])
        fill(self.bias_leaf, rules.bias, self.size)
        fill(self.weight, rules.hidden, self.size)
        fill(self.weight_matrix, rules.hidden, self.size)
        half = torch.eye(self.size, device=self.weight_matrix.device) / 2
        with torch.no_grad():
            self.weight_matrix.mul_(0.1).add_(torch.cat([half, half], 1))
