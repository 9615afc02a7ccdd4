"""Optimisers of a recipe, in their fused or multi-tensor form, and what is done to gradients before a step."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import assert_never

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from elman import config


class Optimiser(ABC):
    """Changes parameters by their gradients.

    The arithmetic is torch's own, fused over all parameters. Its optimiser classes are not used because their first
    step imports torch's compiler, which costs 75 MB and a second.

    Args:
        parameters: what is changed; those without a gradient are left alone.
        lr: the rate of the next step.
        weight_decay: times the parameter, added to the gradient (L2).
        memory: what is remembered from step to step: names of tensors that begin as zeros, in the parameter's shape.

    Attributes:
        memory: a tensor for each name and parameter, and the parameter's count of steps under "step".

    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], lr: float, weight_decay: float, memory: Sequence[str]
    ) -> None:
        self.parameters, self.lr, self.weight_decay = list(parameters), lr, weight_decay
        self.memory = {name: [torch.zeros_like(p, requires_grad=False) for p in self.parameters] for name in memory}
        if memory:
            self.memory["step"] = [torch.zeros((), device=p.device) for p in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters that have a gradient."""
        used = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        gradients = [gradient for parameter in self.parameters if (gradient := parameter.grad) is not None]
        memory = {name: [values[index] for index in used] for name, values in self.memory.items()}
        if used:
            self.update([self.parameters[index] for index in used], gradients, memory)

    @abstractmethod
    def update(self, parameters: list[Tensor], gradients: list[Tensor], memory: Mapping[str, list[Tensor]]) -> None:
        """The rule."""


class SGD(Optimiser):
    """Stochastic gradient descent, with heavy-ball or Nesterov momentum."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], lr: float, weight_decay: float, momentum: float, nesterov: bool
    ) -> None:
        super().__init__(parameters, lr, weight_decay, ("momentum",) if momentum else ())
        self.momentum, self.nesterov = momentum, nesterov

    def update(self, parameters: list[Tensor], gradients: list[Tensor], memory: Mapping[str, list[Tensor]]) -> None:
        """As `torch.optim.SGD`."""
        sgd(
            parameters,
            gradients,
            [*memory.get("momentum", [None] * len(parameters))],
            fused=True,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.lr,
            dampening=0.0,
            nesterov=self.nesterov,
            maximize=False,
        )


class Adam(Optimiser):
    """Adam (Kingma & Ba 2015); `decoupled`: the decay is taken from the parameter (Loshchilov & Hutter 2019)."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        lr: float,
        weight_decay: float,
        betas: tuple[float, float],
        eps: float,
        decoupled: bool,
    ) -> None:
        super().__init__(parameters, lr, weight_decay, ("mean", "square"))
        self.betas, self.eps, self.decoupled = betas, eps, decoupled

    def update(self, parameters: list[Tensor], gradients: list[Tensor], memory: Mapping[str, list[Tensor]]) -> None:
        """As `torch.optim.Adam` and `AdamW`."""
        if self.decoupled and self.weight_decay:
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
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.lr,
            weight_decay=0.0 if self.decoupled else self.weight_decay,
            eps=self.eps,
            maximize=False,
        )


class RMSprop(Optimiser):
    """RMSprop (Tieleman & Hinton 2012)."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        lr: float,
        weight_decay: float,
        alpha: float,
        eps: float,
        momentum: float,
    ) -> None:
        super().__init__(parameters, lr, weight_decay, ("square", "momentum") if momentum else ("square",))
        self.alpha, self.eps, self.momentum = alpha, eps, momentum

    def update(self, parameters: list[Tensor], gradients: list[Tensor], memory: Mapping[str, list[Tensor]]) -> None:
        """As `torch.optim.RMSprop`."""
        rmsprop(
            parameters,
            gradients,
            memory["square"],
            [],
            memory.get("momentum", []),
            memory["step"],
            foreach=True,
            lr=self.lr,
            alpha=self.alpha,
            eps=self.eps,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            centered=False,
        )


def build_optimiser(
    recipe: config.SGD | config.Adam | config.RMSprop, parameters: Sequence[nn.Parameter], weight_decay: float
) -> Optimiser:
    """The optimiser of a recipe; `weight_decay` is added to the gradient, or to the step where Adam is decoupled."""
    match recipe:
        case config.SGD(lr=lr, momentum=momentum, nesterov=nesterov):
            return SGD(parameters, lr, weight_decay, momentum, nesterov)
        case config.Adam(lr=lr, betas=betas, eps=eps, decoupled=decoupled):
            return Adam(parameters, lr, weight_decay, betas, eps, decoupled)
        case config.RMSprop(lr=lr, alpha=alpha, eps=eps, momentum=momentum):
            return RMSprop(parameters, lr, weight_decay, alpha, eps, momentum)
        case _:
            assert_never(recipe)


@torch.no_grad()
def clip_gradients(parameters: Sequence[nn.Parameter], limit: float | None, by: str = "global") -> Tensor:
    """Scale gradients down to `limit` and return their global norm before that, without waiting for the device.

    `by` = "global": all of them together (thesis, Algorithm 2.2); "tensor": each parameter on its own.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if limit is not None and by == "global":
        nn.utils.clip_grads_with_norm_(parameters, limit, norm)
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
