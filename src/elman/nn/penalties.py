"""Penalties that are added to a loss, as functions of what a core returns with `levels=True`; weights are included.

    levels, state = model.core(vectors, state, levels=True)
    loss = model.output.nll(levels, targets) + penalties.activation(levels, 2.0) + penalties.temporal(levels, 1.0)

T steps, B columns. A `mask`, bool [T, B], is true at the positions that count; None: all do. Of a core that has no
levels, such as torch's, a tensor [T, B, D] may be given. A mask of another shape raises ValueError.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from elman.data.batches import Batch
from elman.learning.gradient_norm import errors_of, preservation
from elman.network.cores.core import Trace
from elman.network.cores.layer import Layer, take_plain_steps
from elman.network.cores.stack import StackCore
from elman.network.dropout import Dropout
from elman.network.output.contexts import Contexts, MixtureContexts
from elman.network.state import State as CoreState
from elman.nn.output import Output
from elman.nn.recurrent import Recurrent, State
from elman.objective import penalties as terms
from elman.objective.criteria import Seen


def activation(levels: Trace | Tensor, weight: float = 2.0, mask: Tensor | None = None) -> Tensor:
    """AR: weight * mean(h^2) of the last level after dropout (Merity et al. 2017)."""
    return terms.Activation(weight=weight)(_seen(levels, mask))


def temporal(levels: Trace | Tensor, weight: float = 1.0, mask: Tensor | None = None) -> Tensor:
    """TAR: weight * mean((h_{t+1} - h_t)^2) of the last level before dropout (Merity et al. 2017); 0 of one step."""
    return terms.TemporalActivation(weight=weight)(_seen(levels, mask))


def norm_stabiliser(levels: Trace | Tensor, weight: float = 1.0, mask: Tensor | None = None) -> Tensor:
    """Weight * mean((|h_{t+1}| - |h_t|)^2) of the last level before dropout (Krueger & Memisevic 2016).

    0 of one step; |h| is the Euclidean norm.
    """
    return terms.NormStabiliser(weight=weight)(_seen(levels, mask))


def balance(
    output: Output, levels: Trace | Tensor, weight: float = 0.001, mask: Tensor | None = None, *, columns: bool = True
) -> Tensor:
    """Evens out the components of a mixture: the squared coefficient of variation of their weights, times `weight`.

    With `columns` in the form of the published code, for which a weight of 0.001 was tuned; without it over the
    whole batch, as printed (Takase et al. 2018, eqs 12 and 13).

    Raises ValueError where the output is no mixture.
    """
    contexts = output.layer.contexts
    if not isinstance(contexts, MixtureContexts):
        raise ValueError(f"{type(output).__name__} has one component, and nothing to balance")
    top = levels if isinstance(levels, Tensor) else levels.top
    form = terms.Balance(weight=weight, form="columns" if columns else "minibatch")
    return form(_seen(levels, mask, contexts.log_prior(top)))


def coverage(weights: Tensor, weight: float = 1.0, mask: Tensor | None = None) -> Tensor:
    """Each position of a memory is read once in all: weight * sum_s (1 - sum_t a_ts)^2, a mean over the sequences.

    The regulariser of doubly stochastic attention (Xu et al. 2015, eq. 14).

    Args:
        weights: a [B, T, S], of attention, such as the second result of `AdditiveAttention`
        weight: of the penalty
        mask: bool [B, T], true at the steps that count; None: all do
    """
    seen = weights if mask is None else weights * mask.unsqueeze(-1)
    return weight * (1 - seen.sum(1)).square().sum(1).mean()


def gradient_norm(
    core: Recurrent, vectors: Tensor, loss: Callable[[Tensor], Tensor], weight: float = 1.0, state: State | None = None
) -> Tensor:
    """Errors keep their norm back in time: the regulariser of vanishing gradients (Pascanu et al. 2013, eq. 9).

        Omega = sum_k ( ||dE/dx_{k+1} dx_{k+1}/dx_k|| / ||dE/dx_{k+1}|| - 1 )^2

    with x the state, summed over steps, averaged over columns. As in the paper x and dE/dx_{k+1} are constants of the
    gradient of Omega. The window is run twice, step by step: about four times the work.

    Args:
        core: of one direction; in training without dropout
        vectors: [T, B, I], which it reads
        loss: E, from the outputs [T, B, H] to a scalar
        weight: of Omega
        state: before the window, as the core returned it

    Raises ValueError where the core has both directions, or dropout.
    """
    if core.bidirectional:
        raise ValueError("errors go back in time in one direction; the core reads in both")
    before = core._entered(state, vectors.shape[1])
    stack = take_plain_steps(StackCore(_own_layers(core)))
    if core.training and any(map(_drops, [*stack.modules(), core._between, core._output])):
        raise ValueError("single steps have no dropout masks that are held over time; set the core's dropout to 0")

    def step(x: Tensor, state: CoreState) -> tuple[tuple[Tensor, ...], CoreState]:
        trace, after = stack(x.unsqueeze(0), state)
        return tuple(level.squeeze(0) for level in trace.levels), after

    begun = stack.begin(vectors.shape[1]) if before is None else tuple(before)
    states, errors = errors_of(step, vectors.detach(), begun, lambda levels: loss(levels[-1]))
    return weight * preservation(step, vectors.detach(), states[:-1], errors[1:])


def _own_layers(core: Recurrent) -> list[Layer]:
    """The layers of a core, with its weights as their own."""
    made = []
    for place, layer in enumerate(core._layers):
        one, suffix = copy.deepcopy(layer), core._suffix(place)
        for name in one._parameters:
            one._parameters[name] = getattr(core, name + suffix, None)
        made.append(one)
    return made


def _seen(levels: Trace | Tensor, mask: Tensor | None, log_prior: Tensor | None = None) -> Seen:
    """What a penalty of a recipe is given; of contexts it reads the prior, of a batch which positions count."""
    trace = Trace((levels,), (levels,)) if isinstance(levels, Tensor) else levels
    symbols = trace.top.new_zeros(trace.top.shape[:2], dtype=torch.long)
    if mask is not None and (mask.shape != symbols.shape or mask.dtype != torch.bool):
        raise ValueError(f"mask is {list(mask.shape)}, {mask.dtype}, and the levels need {list(symbols.shape)}, bool")
    contexts = Contexts(trace.top, trace.top if log_prior is None else log_prior)
    return Seen(None, trace, contexts, Batch(symbols, symbols, mask))  # type: ignore[arg-type] # these read no model


def _drops(part: nn.Module) -> bool:
    if isinstance(part, Layer):
        return bool(part.weight_drop or part.input_dropout or part.recurrent_dropout)
    return isinstance(part, Dropout) and bool(part.rate)
