"""A backward pass that says no to second derivatives instead of leaving terms out of them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

Backward = Callable[..., tuple[Tensor | None, ...]]


def differentiable_once(backward: Backward) -> Backward:
    """Refuse `create_graph=True`.

    torch's own `once_differentiable` notices only what depends on the incoming gradient: where that is a
    constant, as for a loss, it takes the gradients for constants too.

    Raises:
        RuntimeError: from the decorated function, when a graph of the backward pass is asked for.
    """

    @wraps(backward)
    def checked(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("this fast form is differentiable once; use the plain form for second derivatives")
        return backward(ctx, *gradients)

    return checked
