"""The state of a recurrent model is a value: nested tuples of tensors, each with the batch as its first axis.

The data marks where a sequence begins (`fresh`), the model provides its first state (`begin`), and the trainer decides
where gradients stop (`detach`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    State: TypeAlias = Tensor | tuple["State", ...]
    """Every tensor is [B, ...]."""
else:
    State = Tensor | tuple  # checkers of types at run time have no recursive types


def as_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in a type; raises ValueError where its imaginary parts would be lost."""
    if x.is_complex() and not dtype.is_complex:
        raise ValueError(f"a tensor is {x.dtype}, whose imaginary parts weights of {dtype} do not read")
    return x.to(dtype)


def map_state(function: Callable[..., Tensor], *states: State) -> State:
    """Apply `function` to the corresponding tensors of states of one structure."""
    if isinstance(states[0], Tensor):
        return function(*states)
    return tuple(map_state(function, *parts) for parts in zip(*states, strict=True))


def leaves(state: State) -> Iterator[Tensor]:
    """The tensors of a state, in a fixed order."""
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from leaves(part)


def rebuild(template: State, tensors: Iterator[Tensor]) -> State:
    """The inverse of `leaves`: a state of the structure of `template` holding `tensors`."""
    return map_state(lambda _: next(tensors), template)


def numbered(tensors: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """The `leaves` of a state among the tensors of a file, where their names are 0, 1, ..."""
    return (tensors[str(index)] for index in range(sum(name.isdigit() for name in tensors)))


def detach(state: State) -> State:
    """Cut the gradient history and keep the values: the truncation of truncated BPTT."""
    return map_state(Tensor.detach, state)


def restart(state: State, fresh: Tensor, beginning: State) -> State:
    """Replace the rows whose sequence begins here; `fresh` is a boolean [B]."""
    return map_state(lambda old, new: torch.where(fresh.view(-1, *[1] * (old.ndim - 1)), new, old), state, beginning)


def select(state: State, rows: Tensor | slice) -> State:
    """Take, reorder or repeat rows; `rows` indexes the batch axis."""
    return map_state(lambda leaf: leaf[rows], state)


def concatenate(states: list[State]) -> State:
    """Join states along the batch axis."""
    return map_state(lambda *parts: torch.cat(parts), *states)
