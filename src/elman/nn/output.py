"""The protocol of output layers: one module for every distribution, after any core.

N positions in any leading shape [...], D the width of their vectors, L levels, K contexts per position, V symbols, P
notes or values of a vector. Whatever is predicted is a target: a symbol, [...] of int64, or a vector, [..., P].
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from elman.network.cores.core import Trace
from elman.network.fast.matmul import differentiable_once, keep, without_autocast
from elman.network.output.choice import Choice, Chord, Conditional, Drawn
from elman.network.output.contexts import MixtureContexts
from elman.network.output.layer import OutputLayer
from elman.network.state import as_type
from elman.nn.shared import Shared

Reduction: TypeAlias = Literal["mean", "sum", "none"]

LEFT_OUT = "leave positions out by weight, with any target there"

Levels: TypeAlias = Tensor | Sequence[Tensor] | Trace
"""What an output reads: the last level [..., D] of a core, or all its levels, the encoder's first."""


class Output(Shared):
    """p(target | h) by any output layer of elman.

    Args:
        layer: of a recipe's or a trained model (`model.output`), whose parameters this module then shares
        num_outputs: V or P
        batch_first: h is [B, T, ..., D]; only the dropout masks of contexts, which are held over time, depend on it
        last_alone: of several levels the last one is read, as if it were the only one

    Every method reads h: the last level [..., D] of a core, or all its levels (`core(x, state, levels=True)`), which a
    direct output connection needs. Where it has three axes or more the first one is time. All is computed in the type
    of the weights, under autocast too, and without the temperature that a trained model may have.

    The arrays are named `weight`, `bias` and so on, as in the choice, `latent.weight`, `latent.bias` (of several
    levels `latent.3.weight`) and `prior.weight`. `Output(model.output, V).state_dict()` has them of a trained model.

    Raises ValueError where shapes do not fit, or a target is out of its range.
    """

    def __init__(
        self, layer: OutputLayer, num_outputs: int, *, batch_first: bool = False, last_alone: bool = False
    ) -> None:
        super().__init__(layer, layer.choice)
        contexts = layer.contexts
        if contexts.gate is not None:
            raise ValueError("the layer has an input-to-output gate, which reads the words; use it within its model")
        self.num_outputs, self.batch_first = num_outputs, batch_first
        self._widths, self._last_alone = {-1: contexts.size}, last_alone
        if isinstance(contexts, MixtureContexts):
            parts = contexts.projections
            self._widths = {
                int(level): part.in_features for level, part in parts.items() if isinstance(part, nn.Linear)
            }
            self._widths[-1] = contexts.prior.in_features
            self.latent = parts if len(parts) > 1 else parts[str(max(contexts.heads))]
            self.prior = contexts.prior

    @property
    def layer(self) -> OutputLayer:
        """The layer that is called, with the arrays of this module."""
        layer: OutputLayer = self.called()
        contexts = layer.contexts
        if isinstance(contexts, MixtureContexts):
            known = {*contexts.projections.children(), contexts.projections, contexts.prior}
            if not known >= {self.latent, self.prior}:
                raise ValueError("latent or prior was replaced; change its arrays, or parametrise them")
        return layer

    @property
    def choice(self) -> Conditional:
        """The distribution given one context."""
        return self.layer.choice

    @property
    def width(self) -> int:
        """The width of what is read of the last level."""
        return self._widths[-1]

    @property
    def fused(self) -> bool:
        """Whether fused kernels are used, which hold nothing of the size [N, K, V] in training.

        They have first derivatives alone. `output.fused = False` chooses the plain form, for derivatives of any order,
        the transforms of `torch.func`, and `torch.compile(fullgraph=True)`. Some outputs have no fused form.
        """
        return bool(getattr(self.choice, "fast", False))

    @fused.setter
    def fused(self, value: bool) -> None:
        if hasattr(self.choice, "fast"):
            self.choice.fast = value  # type: ignore[assignment]
        elif value:
            raise ValueError(f"{type(self).__name__} has no fused form")

    def extra_repr(self) -> str:
        """What is read and predicted."""
        return f"{self.width}, {self.num_outputs}, choice={type(self._arrays[0]).__name__}"

    def forward(self, h: Levels) -> Tensor:
        """Log-probabilities [..., V] of all symbols (`log_probs`)."""
        return self.log_probs(h)

    def nll(self, h: Levels, target: Tensor, reduction: Reduction = "mean", weight: Tensor | None = None) -> Tensor:
        """The negative log-likelihood (nats) of the targets, by the fused kernels where there are any.

        Args:
            h: [..., D], or levels
            target: symbols [...], or vectors [..., P]
            reduction: "mean" is sum_n w_n nll_n / sum_n w_n, "sum" without the division, "none" w_n nll_n [...]
            weight: w [...] of the positions, or a mask of those that count; by default 1

        The mean is NaN where all weights are 0, or there is no position. In "mean" and "sum" the gradients are formed
        in the forward pass. In "none" a position's share of the loss is not known by then, and the backward pass
        computes the positions again.
        """
        require_reduction(reduction)
        trace, lead = self._trace(h)
        target = self._target(target, lead)
        like = trace.top
        if weight is not None and weight.shape != lead:
            raise ValueError(f"weight has shape {list(weight.shape)}, and the positions {list(lead)}")
        wide = torch.promote_types(like.dtype, torch.float32)  # the shares of many positions are below 16 bits
        each = torch.ones_like(like[..., 0], dtype=wide)
        if weight is not None:
            each = self._entered(weight.to(wide), len(lead))
        if reduction == "mean":
            each = each / each.sum()
        with without_autocast(like):
            contexts = self.layer.contexts(trace)
            if reduction == "none" or each.requires_grad:
                found = each * self._each(*(part.flatten(0, 1) for part in (*contexts, target))).view_as(each)
                found = self._left(found, lead) if reduction == "none" else found.sum()
            else:
                found = self.layer.nll(contexts, target, each)[0]
        return settled(found, each, reduction, like.dtype)

    def log_prob(self, h: Levels, target: Tensor) -> Tensor:
        """Log-probability, or log-density, [...] of the targets."""
        return -self.nll(h, target, "none")

    def log_probs(self, h: Levels) -> Tensor:
        """Log-probabilities [..., V] of all symbols; raises TypeError where vectors are predicted."""
        if not isinstance(self.choice, Choice):
            raise TypeError(f"{type(self).__name__} predicts vectors, which cannot be listed; use log_prob or sample")
        trace, lead = self._trace(h)
        with without_autocast(trace.top):
            return self._left(self.layer.untempered(trace), lead)

    def sample(self, h: Levels, temperature: float = 1.0, generator: Generator | None = None) -> Tensor:
        """Symbols [...] or vectors [..., P], drawn to follow each position.

        Symbols are drawn from p^(1 / temperature), normalised; at 0 the most probable one is taken.
        """
        if not temperature >= 0:
            raise ValueError(f"temperature is {temperature}; it is 0 or greater")
        with torch.no_grad():
            if isinstance(self.choice, Drawn):
                trace, lead = self._trace(h)
                with without_autocast(trace.top):
                    return self._left(self.layer.sample(trace, temperature, generator), lead)
            log_probs = self.log_probs(h)
            if temperature == 0:
                return log_probs.argmax(-1)
            p = (log_probs / temperature).softmax(-1)
            return torch.multinomial(p.reshape(-1, self.num_outputs), 1, generator=generator).view(p.shape[:-1])

    def _trace(self, h: Levels) -> tuple[Trace, torch.Size]:
        """The levels in the form [T, B, _], and the leading shape of the positions."""
        levels = h.levels if isinstance(h, Trace) else (h,) if isinstance(h, Tensor) else tuple(h)
        highest = max(self._widths)
        if self._last_alone or (len(levels) == 1 and len(self._widths) == 2):
            levels = levels[-1:] * (highest + 1)
        if highest >= len(levels):
            raise ValueError(f"level {highest} of a core is read, and {len(levels)} are given: core(x, levels=True)")
        lead = levels[-1].shape[:-1]
        for level, width in self._widths.items():
            if levels[level].shape != (*lead, width):
                raise ValueError(
                    f"level {level % len(levels)} has shape {list(levels[level].shape)}, but {[*lead, width]} is read"
                )
        dtype = next(self.parameters()).dtype
        return Trace(tuple(self._entered(as_type(level, dtype), len(lead)) for level in levels), ()), lead

    def _entered(self, x: Tensor, lead: int) -> Tensor:
        """A tensor with `lead` leading axes as [T, B, ...]."""
        if lead < 2:
            return x.reshape(*[1] * (2 - lead), *x.shape)
        return (x.transpose(0, 1) if self.batch_first else x).flatten(1, lead - 1)

    def _left(self, x: Tensor, lead: torch.Size) -> Tensor:
        """A tensor [T, B, ...] with the leading axes `lead` of the positions."""
        if self.batch_first and len(lead) > 1:
            return x.reshape((lead[1], lead[0], *lead[2:], *x.shape[2:])).transpose(0, 1)
        return x.reshape((*lead, *x.shape[2:]))

    def _target(self, target: Tensor, lead: torch.Size) -> Tensor:
        """Targets [T, B] or [T, B, P] that are in their range."""
        symbols = isinstance(self.choice, Choice)
        shape = lead if symbols else (*lead, self.num_outputs)
        if target.shape != shape:
            raise ValueError(f"targets have shape {list(target.shape)}, and {list(shape)} is predicted")
        if symbols:
            target = symbols_below(self.num_outputs, target)
        elif isinstance(self.choice, Chord):
            require((target == 0) | (target == 1), f"every target is 0 or 1; {LEFT_OUT}")
        return self._entered(target, len(lead))

    def _each(self, vectors: Tensor, log_prior: Tensor, target: Tensor) -> Tensor:
        """The NLL [N] of every position, differentiable."""
        choice = self.choice
        own = type(choice).mixture_nll is not Conditional.mixture_nll
        if not (own and self.fused and torch.is_grad_enabled()):
            return -choice.mixture_log_prob(vectors, log_prior, target)
        names, parameters = zip(*choice.named_parameters(), strict=True)

        def total(vectors: Tensor, log_prior: Tensor, *rest: Tensor) -> Tensor:
            *arrays, weight = rest
            named = {f"choice.{name}": one for name, one in zip(names, arrays, strict=True)}
            found: Tensor = functional_call(_Total(choice), named, (vectors, log_prior, target, weight))
            return found

        def each(vectors: Tensor, log_prior: Tensor, *_: Tensor) -> Tensor:
            return -choice.mixture_log_prob(vectors, log_prior, target)

        return Each.apply(each, total, vectors, log_prior, *parameters)  # type: ignore[no-untyped-call]


def require_reduction(reduction: str) -> None:
    """Raise ValueError where there is no such reduction."""
    if reduction not in get_args(Reduction):
        raise ValueError(f'reduction is {reduction!r}; choose "mean", "sum" or "none"')


def settled(loss: Tensor, weights: Tensor, reduction: Reduction, dtype: torch.dtype) -> Tensor:
    """A loss in a type; the mean over no positions, of which there are no weights, is NaN."""
    return (loss + math.nan if reduction == "mean" and not weights.numel() else loss).to(dtype)


def symbols_below(number: int, target: Tensor) -> Tensor:
    """Targets as int64; raises ValueError where they are no symbols below a number."""
    if target.is_floating_point() or target.dtype == torch.bool:
        raise ValueError(f"targets are symbols, of type torch.int64, and not {target.dtype}")
    require((target >= 0) & (target < number), f"every target is a symbol from 0 to {number - 1}; {LEFT_OUT}")
    return target.long()


def require(right: Tensor, line: str) -> None:
    """Raise ValueError where numbers are not right; on a GPU, which is not waited for, its own assertion fails."""
    if torch.compiler.is_compiling() or right.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(right):
        return
    if right.device.type == "cuda":
        torch._assert_async(right.all(), line)
    elif not right.all():
        raise ValueError(line)


class _Total(nn.Module):
    """The sum of weighted NLLs as a `forward`, for `functional_call`."""

    def __init__(self, choice: Conditional) -> None:
        super().__init__()
        self.choice = choice

    def forward(self, *parts: Tensor) -> Tensor:
        return self.choice.mixture_nll(*parts)[0]


class Each(torch.autograd.Function):
    """NLLs [N] by a function `each` of tensors, whose weights in a loss are known in the backward pass alone.

    There `total`, the sum of the NLLs by weights that follow the tensors, is computed, and its gradients are taken.
    """

    @staticmethod
    def forward(ctx: Any, each: Callable[..., Tensor], total: Callable[..., Tensor], *tensors: Tensor | None) -> Tensor:
        """The NLLs [N]."""
        ctx.total = total
        keep(ctx, *tensors)
        return each(*tensors)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the tensors, given the weights [N]."""
        inputs = [None if one is None else one.detach().requires_grad_() for one in ctx.saved_tensors]
        with torch.enable_grad():
            total = ctx.total(*inputs, weight)
        found = iter(torch.autograd.grad(total, [one for one in inputs if one is not None], allow_unused=True))
        return None, None, *(None if one is None else next(found) for one in inputs)
