"""One normalisation over the whole vocabulary, under any of the activations."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.network.fast import matmul, mixture, policy
from elman.network.output.activation import log_g
from elman.network.output.choice import NLL, Each, PerContext, ScoredChoice, Surroundings, Targets, Vectors, biases_of


class Flat(config.Choice, frozen=True, tag="flat"):
    """One normalisation over the vocabulary."""

    gated = True
    tied: bool = False
    bias: bool = True
    shift: bool = False

    def build(self, surroundings: Surroundings) -> "FlatChoice":
        """The module; raises UserError where it cannot have the encoder's matrix."""
        return FlatChoice(
            surroundings.matrix(self.tied),
            surroundings.activation,
            bias=self.bias,
            shift=self.shift,
            gate_size=surroundings.gate_size,
        )


@final
class FlatChoice(ScoredChoice):
    """log p(y) = log g(z_y) - logsumexp_v log g(z_v), z = W context + b.

    W [V, D] may be the encoder's (Press & Wolf 2017; Inan et al. 2017). `shift` adds one learned scalar to every z
    (thesis, theorem 4.4), which changes every activation but softmax. `fast` uses the fused kernels; the plain form is
    their ground truth.

    With `gate_size` = E contexts are followed by E numbers x, and z is multiplied by sigm(W_g x + b_g), W_g [V, E]
    (`elman.network.output.input_gate`); the fused kernels then rest, and a tensor [N, K, V] is formed.
    """

    def __init__(
        self,
        weight: nn.Parameter,
        activation: config.Activation = "softmax",
        *,
        bias: bool = True,
        shift: bool = False,
        fast: bool = True,
        gate_size: int | None = None,
    ) -> None:
        super().__init__()
        self.weight, self.activation, self.fast = weight, activation, fast
        self.bias = nn.Parameter(torch.zeros(len(weight), device=weight.device)) if bias else None
        self.shift = nn.Parameter(torch.zeros((), device=weight.device)) if shift else None
        self.gate_weight: nn.Parameter | None = None
        self.gate_bias: nn.Parameter | None = None
        if gate_size is not None:
            self.gate_weight = nn.Parameter(torch.empty(len(weight), gate_size, device=weight.device))
            self.gate_bias = nn.Parameter(torch.zeros(len(weight), device=weight.device))

    def offset(self) -> Tensor | None:
        """The sum of bias and shift, [V] or None."""
        if self.shift is None:
            return self.bias
        return self.shift.expand(len(self.weight)) if self.bias is None else self.bias + self.shift

    @property
    def fused(self) -> bool:
        return self.fast and self.gate_weight is None and not policy.plain(self.weight)

    def mixture_log_prob(self, context: Vectors, log_prior: PerContext, target: Targets) -> Each:
        """As in `Choice`; without gradients no [N, K, V] tensor is formed."""
        if not self.fused or torch.is_grad_enabled():
            return super().mixture_log_prob(context, log_prior, target)
        return mixture.log_prob(context, log_prior, self.weight, self.offset(), target, self.activation)

    def mixture_nll(self, context: Vectors, log_prior: PerContext, target: Targets, position_weight: Each) -> NLL:
        """As in `Choice`; the gradients are formed in the forward pass, so no [N, K, V] tensor is kept."""
        if not self.fused:
            return super().mixture_nll(context, log_prior, target, position_weight)
        return mixture.nll(context, log_prior, self.weight, self.offset(), target, position_weight, self.activation)

    def scores(self, context: Vectors) -> Float[Tensor, "N K V"]:
        if self.gate_weight is None:
            multiply = matmul.linear if self.fast and not torch.is_grad_enabled() else linear
            return log_g(multiply(context, self.weight, self.offset()), self.activation)
        # One gate per position: what it reads stands behind every context.
        vector, x = context.split((self.weight.shape[1], self.gate_weight.shape[1]), dim=-1)
        gate = linear(x[:, :1], self.gate_weight, self.gate_bias).sigmoid()
        return log_g(gate * linear(vector, self.weight, self.offset()), self.activation)

    @torch.no_grad()
    def begin_at(self, log_p: Float[Tensor, " V"]) -> None:
        if self.bias is None or self.gate_weight is not None:
            super().begin_at(log_p)
        else:
            self.bias.copy_(biases_of(log_p, self.activation))

    def multiply_adds(self, frequency: Tensor) -> float:
        """V D, and V E of a gate."""
        return super().multiply_adds(frequency) + (0 if self.gate_weight is None else self.gate_weight.numel())
