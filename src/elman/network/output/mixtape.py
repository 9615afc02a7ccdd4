"""Mixtape: several contexts mixed before the normalisation, with weights that depend on the word."""

from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.config.record import Positive
from elman.network.output.activation import log_g
from elman.network.output.choice import ScoredChoice, Surroundings, Vectors


class Mixtape(config.Choice, frozen=True, tag="mixtape"):
    """Logits mixed by gates; each of the first `frequent` words has its own, all others share one."""

    components: Literal[2, 4, 8, 16] = 4
    gate_size: Positive = 64
    frequent: Positive = 1000
    size: Positive | None = None
    tied: bool = False
    bias: bool = True


@final
class MixtapeChoice(ScoredChoice, of=Mixtape):
    """log p(y) = log g(z_y) - logsumexp_v log g(z_v), z_v = sum_m pi_mv h_m^T w_v + b_v (Yang et al. 2019).

        h_m = tanh(H_m context)
        l_jv = a_v^T tanh(U_j context) + u_j^T context + b_jv,    j = 1 .. M - 1
        pi_v = leaves of a binary tree that turns left at node j with probability sigmoid(l_jv)

    One normalisation serves all M components, unlike a mixture of softmaxes. Words beyond the first `frequent` share
    one gate (the gate sharing of the paper), so their contexts are mixed first and cost one product, not M.
    """

    def __init__(self, record: Mixtape, surroundings: Surroundings) -> None:
        super().__init__()
        encoder, size = surroundings.encoder, surroundings.size
        width = record.size or (encoder.size if record.tied and encoder is not None else size)
        self.weight = surroundings.matrix(record.tied, width, "model.output.choice.size is")
        self.activation, self.components = surroundings.activation, record.components
        num_words, nodes = len(self.weight), self.components - 1
        self.frequent = min(record.frequent, num_words)
        gates = self.frequent + (self.frequent < num_words)
        self.bias = nn.Parameter(torch.zeros(num_words)) if record.bias else None
        self.up = nn.Parameter(torch.empty(self.components * width, size))
        self.gate_hidden = nn.Parameter(torch.empty(nodes * record.gate_size, size))
        self.gate_direct = nn.Parameter(torch.empty(nodes, size))
        self.gate_word = nn.Parameter(torch.empty(gates, record.gate_size))
        self.gate_bias = nn.Parameter(torch.zeros(gates * nodes))

    def gates(self, context: Tensor) -> Tensor:
        """The weights pi [*, G, M] of contexts [*, D]: one per frequent word, and last one for all others."""
        nodes = self.components - 1
        hidden = linear(context, self.gate_hidden).tanh().unflatten(-1, (nodes, -1))
        logits = linear(hidden, self.gate_word) + linear(context, self.gate_direct).unsqueeze(-1)
        left = (logits + self.gate_bias.view(-1, nodes).t()).sigmoid()
        pi, node = torch.ones_like(left[..., :1, :]), 0
        while pi.shape[-2] < self.components:
            turn = left[..., node : node + pi.shape[-2], :]
            node += pi.shape[-2]
            pi = torch.stack([pi * turn, pi * (1 - turn)], dim=-2).flatten(-3, -2)
        return pi.transpose(-1, -2)

    def multiply_adds(self, frequency: Tensor) -> float:  # noqa: ARG002
        """Contexts and gates; M products per frequent word, one per other word."""
        gate = self.gate_hidden.numel() + self.gate_direct.numel() + (self.components - 1) * self.gate_word.numel()
        scores = self.components * self.weight[: self.frequent].numel() + self.weight[self.frequent :].numel()
        mixing = self.components * self.weight.shape[1] if self.frequent < len(self.weight) else 0
        return float(self.up.numel() + gate + mixing + scores)

    def scores(self, context: Vectors) -> Float[Tensor, "N K V"]:
        h = linear(context, self.up).tanh().unflatten(-1, (self.components, -1))
        pi = self.gates(context)
        own = pi[..., : self.frequent, :].transpose(-1, -2)
        z = (own * linear(h, self.weight[: self.frequent])).sum(-2)
        if self.frequent < len(self.weight):
            shared = (pi[..., -1:, :] @ h).squeeze(-2)
            z = torch.cat([z, linear(shared, self.weight[self.frequent :])], dim=-1)
        return log_g(z if self.bias is None else z + self.bias, self.activation)
