"""Optimisers in their fused form, and what comes before their steps: clipping and L1."""

from collections.abc import Mapping, Sequence
from typing import assert_never

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from elman import config


class Optimiser:
    """Changes parameters by their gradients, by the rule of a recipe; parameters without a gradient are left alone.

    SGD has heavy-ball or Nesterov momentum; Adam (Kingma & Ba 2015) optionally has decoupled weight decay (AdamW,
    Loshchilov & Hutter 2019); RMSprop is that of Tieleman & Hinton 2012. Weight decay times the parameter is added to
    the gradient (L2), or to the step where Adam is decoupled. The arithmetic is torch's own, fused over all parameters.
    Its optimiser classes are not used because their first step imports torch's compiler, which costs 75 MB and a
    second.

    Attributes:
        lr: the learning rate of the next step.
        memory: a tensor for each name and parameter, which begins as zeros, and the counts of steps under "step".
    """

    def __init__(
        self,
        recipe: config.SGD | config.Adam | config.RMSprop,
        parameters: Sequence[nn.Parameter],
        weight_decay: float = 0.0,
    ) -> None:
        self.recipe, self.parameters, self.lr, self.weight_decay = recipe, list(parameters), recipe.lr, weight_decay
        match recipe:
            case config.SGD(momentum=momentum):
                names = ["momentum"] if momentum else []
            case config.Adam():
                names = ["mean", "square"]
            case config.RMSprop(momentum=momentum):
                names = ["square", "momentum"] if momentum else ["square"]
        self.memory = {name: [torch.zeros_like(p, requires_grad=False) for p in self.parameters] for name in names}
        if names:
            self.memory["step"] = [torch.zeros((), device=p.device) for p in self.parameters]

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters that have a gradient."""
        used = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        if not used:
            return
        parameters: list[Tensor] = [self.parameters[index] for index in used]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        memory = {name: [values[index] for index in used] for name, values in self.memory.items()}
        match self.recipe:
            case config.SGD(momentum=momentum, nesterov=nesterov):
                sgd(
                    parameters,
                    gradients,
                    [*memory.get("momentum", [None] * len(parameters))],
                    fused=True,
                    weight_decay=self.weight_decay,
                    momentum=momentum,
                    lr=self.lr,
                    dampening=0.0,
                    nesterov=nesterov,
                    maximize=False,
                )
            case config.Adam(betas=(beta1, beta2), eps=eps, decoupled=decoupled):
                if decoupled and self.weight_decay:
                    torch._foreach_mul_(parameters, 1 - self.lr * self.weight_decay)
                adam(
                    parameters,
                    gradients,
                    memory["mean"],
                    memory["square"],
                    [],
                    memory["step"],
                    fused=True,
                    amsgrad=False,
                    beta1=beta1,
                    beta2=beta2,
                    lr=self.lr,
                    weight_decay=0.0 if decoupled else self.weight_decay,
                    eps=eps,
                    maximize=False,
                )
            case config.RMSprop(alpha=alpha, eps=eps, momentum=momentum):
                rmsprop(
                    parameters,
                    gradients,
                    memory["square"],
                    [],
                    memory.get("momentum", []),
                    memory["step"],
                    foreach=True,
                    lr=self.lr,
                    alpha=alpha,
                    eps=eps,
                    weight_decay=self.weight_decay,
                    momentum=momentum,
                    centered=False,
                )
            case _:
                assert_never(self.recipe)
        increment_version(parameters)  # the fused kernels do not, and what is kept of parameters is kept by version

    def tensors(self) -> dict[str, Tensor]:
        """The memory, for a checkpoint; learning rates come from the recipe."""
        return {f"{name}/{index}": value for name, values in self.memory.items() for index, value in enumerate(values)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy back what `tensors` returned."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])


@torch.no_grad()
def clip_gradients(parameters: Sequence[nn.Parameter], limit: float | None, by: str = "global") -> Tensor:
    """Clip gradients at `limit` and return their global norm before that, without waiting for the device.

    `by` = "global": the norm of all of them together is scaled down (thesis, Algorithm 2.2); "tensor": that of each
    parameter; "value": every number is brought into [-limit, limit] (Graves 2013, section 2.1, there for the gradient
    with respect to the inputs of the LSTM layers).
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if limit is not None and by == "global":
        nn.utils.clip_grads_with_norm_(parameters, limit, norm)
    elif limit is not None and by == "value":
        for gradient in gradients:
            gradient.clamp_(-limit, limit)
    elif limit is not None:
        for parameter in parameters:
            nn.utils.clip_grad_norm_(parameter, limit)
    return norm


@torch.no_grad()
def add_l1(parameters: Sequence[nn.Parameter], weight: float) -> None:
    """Add the gradient of weight * sum |w|."""
    if weight:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.add_(parameter.sign(), alpha=weight)
