"""The child-sum tree LSTM (Tai, Socher & Manning 2015, section 3.1): any number of children, in no order.

    h~ = sum_k h_k                                f_k = sigm(W_f x + U_f h_k + b_f) for each child
    i, o = sigm(W x + U h~ + b),  u = tanh(W x + U h~ + b)
    c = i u + sum_k f_k c_k                       h = o tanh(c)

Leaves have an input x and no children; inner nodes have no x. The gates are stacked in the order i, o, u, f.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.trees.composition import Composition, NodeState, Part


class ChildSumTreeLSTM(config.Composition, frozen=True, tag="child-sum-lstm"):
    """A tree LSTM over the sum of any number of children."""

    def build(self, input_size: int, size: int) -> "ChildSumTreeLSTMComposition":
        return ChildSumTreeLSTMComposition(input_size, size)


@final
class ChildSumTreeLSTMComposition(Composition):
    """The state of a node is (h, c), [*, H] each."""

    any_arity = True

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.weight_leaf = nn.Parameter(torch.empty(3 * size, input_size))
        self.weight = nn.Parameter(torch.empty(4 * size, size))
        self.bias = nn.Parameter(torch.empty(4 * size))

    def leaf(self, x: Float[Tensor, "*N E"]) -> NodeState:
        return self._gated(linear(x, self.weight_leaf, self.bias[: 3 * self.size]), 0.0)

    def left(self, child: NodeState) -> Part:
        """U h_k of i, o and u, and f_k c_k: the same for every child, since the sum has no order."""
        h, c = child
        drive = linear(h, self.weight)
        forget = (drive[..., 3 * self.size :] + self.bias[3 * self.size :]).sigmoid()
        return drive[..., : 3 * self.size], forget * c

    def right(self, child: NodeState) -> Part:
        return self.left(child)

    def join(self, left: Part, right: Part) -> NodeState:
        return self._gated(left[0] + right[0] + self.bias[: 3 * self.size], left[1] + right[1])

    def compose(self, children: NodeState, there: Tensor | None = None) -> NodeState:
        drives, kept = self.left(children)
        if there is not None:
            drives, kept = (part * there.unsqueeze(-1) for part in (drives, kept))
        return self._gated(drives.sum(1) + self.bias[: 3 * self.size], kept.sum(1))

    def _gated(self, drive: Tensor, kept: Tensor | float) -> NodeState:
        i, o, u = drive.chunk(3, -1)
        c = i.sigmoid() * u.tanh() + kept
        return o.sigmoid() * c.tanh(), c

    def initialise(self, rules: config.Initialisation) -> None:
        size = self.size
        for gate in self.weight_leaf.split(size):
            fill(gate, rules.input, self.weight_leaf.shape[1])
        for gate in self.weight.split(size):
            fill(gate, rules.hidden, size)
        fill(self.bias, rules.bias, size)
        if rules.forget_bias is not None:
            with torch.no_grad():
                self.bias[3 * size :] = rules.forget_bias
