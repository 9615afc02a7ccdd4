"""A trainer's whole state as named tensors and facts, and back: what makes a resumed run the same run."""

from collections.abc import Mapping
from itertools import chain

import torch
from torch import Tensor, nn

from elman.learning.averaging import Average
from elman.learning.optimisers import Optimiser
from elman.state import State, leaves, rebuild


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once, tied ones under their first name, and every buffer: what training decided once."""
    return {name: tensor.detach() for name, tensor in chain(model.named_parameters(), model.named_buffers())}


@torch.no_grad()
def load_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into the parameters and buffers of the same names; shapes must agree."""
    own = model_tensors(model)
    assert own.keys() == tensors.keys(), sorted(own.keys() ^ tensors.keys())
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def gather(
    model: nn.Module,
    optimiser: Optimiser,
    average: Average | None,
    state: State | None,
    constraint: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """All tensors of a training run, prefixed by what they belong to."""
    tensors = {f"model/{name}": tensor for name, tensor in model_tensors(model).items()}
    for name, values in optimiser.memory.items():
        tensors |= {f"optimiser/{name}/{index}": value for index, value in enumerate(values)}
    if average is not None:
        tensors |= {f"average/{index}": value for index, value in enumerate(average.values)}
    if state is not None:
        tensors |= {f"state/{index}": leaf for index, leaf in enumerate(leaves(state))}
    tensors |= {f"constraint/{name}": tensor for name, tensor in (constraint or {}).items()}
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    return tensors


def restore_optimiser(optimiser: Optimiser, tensors: Mapping[str, Tensor]) -> None:
    """Momenta, squared averages and step counts; rates come from the recipe."""
    for name, values in optimiser.memory.items():
        saved = _under(f"optimiser/{name}/", tensors)
        for index, value in enumerate(values):
            value.copy_(saved[str(index)])


def restore_average(average: Average, tensors: Mapping[str, Tensor], count: int) -> None:
    """The averaged weights and how many steps they hold."""
    saved = _under("average/", tensors)
    average.count = count
    average.values = [saved[str(index)].to(value.device) for index, value in enumerate(average.values)]


def restore_state(beginning: State, tensors: Mapping[str, Tensor]) -> State | None:
    """The recurrent state, or None where the checkpoint has none."""
    saved = _under("state/", tensors)
    if not saved:
        return None
    device = next(leaves(beginning)).device
    return rebuild(beginning, iter(saved[str(index)].to(device) for index in range(len(saved))))


def restore_random(tensors: Mapping[str, Tensor]) -> None:
    """The random states of the CPU and, where both sides have one, of the GPU."""
    torch.set_rng_state(tensors["random/cpu"])
    if "random/cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random/cuda"])


def of_model(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The model's part of a snapshot."""
    return _under("model/", tensors)


def of_constraint(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a constraint remembers."""
    return _under("constraint/", tensors)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
