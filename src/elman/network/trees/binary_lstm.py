"""The binary tree LSTM (Tai, Socher & Manning 2015, section 3.2, N = 2).

    i = sigm(U_i1 h_1 + U_i2 h_2 + b_i)           f_k = sigm(U_fk1 h_1 + U_fk2 h_2 + b_f), k = 1, 2
    o = sigm(...),  u = tanh(...)
    c = i u + f_1 c_1 + f_2 c_2                   h = o tanh(c)

Leaves have an input x and no children, so that c = i u; inner nodes have no x. The gates are stacked in the order i, o,
u, f_1, f_2; both forget gates have the one bias b_f.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.trees.composition import Composition, NodeState, Part


class BinaryTreeLSTM(config.Composition, frozen=True, tag="binary-lstm"):
    """A tree LSTM whose left and right child have weights of their own."""

    def build(self, input_size: int, size: int) -> "BinaryTreeLSTMComposition":
        return BinaryTreeLSTMComposition(input_size, size)


@final
class BinaryTreeLSTMComposition(Composition):
    """The state of a node is (h, c), [*, H] each."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight_leaf = nn.Parameter(torch.empty(3 * size, input_size))
        self.weight_left = nn.Parameter(torch.empty(5 * size, size))
        self.weight_right = nn.Parameter(torch.empty(5 * size, size))
        self.bias = nn.Parameter(torch.empty(4 * size))

    def leaf(self, x: Float[Tensor, "*N E"]) -> NodeState:
        i, o, u = linear(x, self.weight_leaf, self.bias[: 3 * self.size]).chunk(3, -1)
        c = i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def left(self, child: NodeState) -> Part:
        """The products with h_1 and the biases, and c_1."""
        h, c = child
        return linear(h, self.weight_left, torch.cat([self.bias, self.bias[3 * self.size :]])), c

    def right(self, child: NodeState) -> Part:
        """The products with h_2, and c_2."""
        h, c = child
        return linear(h, self.weight_right), c

    def join(self, left: Part, right: Part) -> NodeState:
        drive = left[0] + right[0]
        gates, u = drive.sigmoid(), drive[..., 2 * self.size : 3 * self.size].tanh()
        i, o, _, f_left, f_right = gates.chunk(5, -1)
        c = i * u + f_left * left[1] + f_right * right[1]
        return o * c.tanh(), c

    def initialise(self, rules: config.Initialisation) -> None:
        size = self.size
        for gate in self.weight_leaf.split(size):
            fill(gate, rules.input, self.weight_leaf.shape[1])
        for gate in (*self.weight_left.split(size), *self.weight_right.split(size)):
            fill(gate, rules.hidden, size)
        fill(self.bias, rules.bias, size)
        if rules.forget_bias is not None:
            with torch.no_grad():
                self.bias[3 * size :] = rules.forget_bias
