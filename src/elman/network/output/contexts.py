"""From a trace to K context vectors and the weight of each."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.config import plugins
from elman.config.parts import Built
from elman.config.record import Positive, Rate
from elman.errors import UserError
from elman.network import dropout
from elman.network.cores.core import Trace
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill
from elman.network.output.activation import log_g

if TYPE_CHECKING:
    from elman.network.output.input_gate import InputGate


class Contexts(NamedTuple):
    """The components of a mixture: vectors [T, B, K, D] and the logarithm of their weights [T, B, K]."""

    vectors: Float[Tensor, "T B K D"]
    log_prior: Float[Tensor, "T B K"]


class ContextLayer(Built, nn.Module, ABC):
    """Reads contexts of width `size` = D from a trace, through an input-to-output gate where there is one."""

    size: int

    def __init__(self) -> None:
        super().__init__()
        self.gate: InputGate | None = None

    def forward(self, trace: Trace) -> Contexts:
        """The contexts of every position; before a gated choice they end with the vector that its gate reads."""
        if self.gate is None:
            return self.read(trace)
        contexts = self.read(self.gate.on_level(trace))
        return contexts._replace(vectors=self.gate.beside(contexts.vectors, trace))

    @abstractmethod
    def read(self, trace: Trace) -> Contexts:
        """The contexts of every position, without a gate."""

    def initialise(self, rules: config.Initialisation) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                fill(module.weight, rules.contexts, module.in_features)
                if module.bias is not None:
                    fill(module.bias, rules.contexts_bias or rules.contexts, module.in_features)
        if self.gate is not None:
            self.gate.initialise(rules)


def build_contexts(record: config.Output, dims: Sequence[int]) -> ContextLayer:
    """The contexts of a recipe, from levels of widths `dims`; raises UserError where a level or all are missing."""
    return plugins.built(record.contexts, ContextLayer, dims, record.activation)


class Single(config.Contexts, frozen=True, tag="single"):
    """The last level is the only context."""

    def build(self, dims: Sequence[int], activation: config.Activation) -> "SingleContexts":  # noqa: ARG002
        return SingleContexts(dims[-1])


@final
class SingleContexts(ContextLayer):
    """The last level itself, with weight one: the usual output layer, K = 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def read(self, trace: Trace) -> Contexts:
        vectors = trace.top.unsqueeze(-2)
        return Contexts(vectors, vectors.new_zeros(vectors.shape[:-1]))


class Mixture(config.Contexts, frozen=True, tag="mixture"):
    """Mixture of softmaxes and DOC: `heads` maps a level (0 is the encoder) to its number of components."""

    heads: dict[int, Positive]
    size: Positive
    linear: bool = False
    dropout: Rate = 0.0
    shared_mask: bool = False
    prior: Literal["softmax", "same"] = "softmax"


def projected(part: nn.Module, x: Tensor) -> Tensor:
    """The product of a layer, as fast as there is; one that has hooks or is parametrised is called."""
    if type(part) is nn.Linear and not (part._forward_pre_hooks or part._forward_hooks):
        return linear(x, part.weight, part.bias)
    found: Tensor = part(x)
    return found


@final
class MixtureContexts(ContextLayer, of=Mixture):
    """`heads[n]` contexts from level n, weighted by a prior read from the last level.

    All heads on the last level: mixture of softmaxes (Yang et al. 2018, section 3.2). Heads on several levels,
    the encoder's included: direct output connection (Takase et al. 2018, eqs 7-11), components ordered by level.

        k_s = tanh(W_s h^n + b_s),   pi = softmax(W_pi h^N)
    """

    def __init__(self, mixture: Mixture, dims: Sequence[int], activation: config.Activation) -> None:
        super().__init__()
        if not mixture.heads:
            raise UserError("model.output.contexts.heads is empty; set a level, such as heads = { 3 = 15 }")
        for level in mixture.heads:
            if not 0 <= level < len(dims):
                raise UserError(
                    f"model.output.contexts.heads names level {level}, but the levels are 0 (the encoder) to"
                    f" {len(dims) - 1} (the last layer)"
                )
        self.size, self.rate = mixture.size, mixture.dropout
        self.linear, self.shared_mask = mixture.linear, mixture.shared_mask
        self.heads = {level: count for level, count in sorted(mixture.heads.items()) if count}
        self.projections = nn.ModuleDict(
            {str(level): nn.Linear(dims[level], count * self.size) for level, count in self.heads.items()}
        )
        self.prior = nn.Linear(dims[-1], sum(self.heads.values()), bias=False)
        self.prior_activation: config.Activation = activation if mixture.prior == "same" else "softmax"

    def read(self, trace: Trace) -> Contexts:
        """Project every level that has heads, and weight the components by the last level."""
        parts = [
            projected(self.projections[str(level)], trace.levels[level]).unflatten(-1, (count, self.size))
            for level, count in self.heads.items()
        ]
        vectors = torch.cat(parts, dim=-2) if len(parts) > 1 else parts[0]
        if not self.linear:
            vectors = vectors.tanh_()
        rate = self.rate if self.training else 0.0
        if rate and self.shared_mask:
            vectors = vectors * dropout.elementwise(torch.ones_like(vectors[:1, :, :1]), rate)
        else:
            vectors = dropout.locked(vectors, rate)
        return Contexts(vectors, self.log_prior(trace.top))

    def log_prior(self, top: Tensor) -> Tensor:
        """The logarithms of the weights of the components [..., K], read from the last level [..., D]."""
        scores = log_g(self.prior(top), self.prior_activation)
        return scores - scores.logsumexp(-1, keepdim=True)
