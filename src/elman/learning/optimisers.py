"""Optimisers of a recipe, in their fused or multi-tensor form, and what is done to gradients before a step."""

from collections.abc import Sequence
from typing import assert_never

import torch
from torch import Tensor, nn

from elman import config


def build_optimiser(
    recipe: config.SGD | config.Adam | config.RMSprop, parameters: Sequence[nn.Parameter], weight_decay: float
) -> torch.optim.Optimizer:
    """The optimiser; `weight_decay` is added to the gradient (L2), or to the step where Adam is decoupled."""
    match recipe:
        case config.SGD(lr=lr, momentum=momentum, nesterov=nesterov):
            return torch.optim.SGD(parameters, lr, momentum, weight_decay=weight_decay, nesterov=nesterov, fused=True)
        case config.Adam(lr=lr, betas=betas, eps=eps, decoupled=decoupled):
            kind = torch.optim.AdamW if decoupled else torch.optim.Adam
            return kind(parameters, lr, betas, eps, weight_decay, fused=True)
        case config.RMSprop(lr=lr, alpha=alpha, eps=eps, momentum=momentum):
            return torch.optim.RMSprop(parameters, lr, alpha, eps, weight_decay, momentum, foreach=True)
        case _:
            assert_never(recipe)


def set_rate(optimiser: torch.optim.Optimizer, lr: float) -> None:
    """Use `lr` from the next step on."""
    for group in optimiser.param_groups:
        group["lr"] = lr


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
