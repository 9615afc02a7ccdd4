"""The team that trains one model: this process alone, or the processes that torchrun has started (`processes.py`)."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from elman.formats import read_json


class Team:
    """One process alone; the first of its interface's two forms.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of processes.
    """

    rank, size = 0, 1

    @property
    def leads(self) -> bool:
        """Whether this process decides, writes the run folder and speaks."""
        return self.rank == 0

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all processes, neighbours first."""

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Whether each flag is set in any process."""
        return flags

    def from_first(self, number: float) -> float:
        """The number of the first process."""
        return number

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, of one shape, in the order of their ranks."""
        return [tensor]

    def require_same(self, digest: str, what: str) -> None:
        """Raise UserError where `digest` differs between processes."""

    def wait(self) -> None:
        """Return when all processes have come here."""


ALONE = Team()


def started_by_torchrun() -> bool:
    """Whether this process is one of several, or of one, that torchrun has started."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def launch() -> str | None:
    """The name of a call of torchrun, which stays when it starts the processes again; None without a name.

    On one machine the folder of its logs, ID_RANDOM/attempt_N/RANK/error.json, since the ids of many calls are the
    same; on several machines its --rdzv-id, or None where that was not given.
    """
    if not started_by_torchrun():
        return None
    logs, given = Path(os.environ.get("TORCHELASTIC_ERROR_FILE", "")).parts, os.environ["TORCHELASTIC_RUN_ID"]
    return logs[-4] if machines() == 1 and len(logs) > 4 else given if given != "none" else None


def continues(out: Path) -> bool:
    """Whether the run in `out` was begun by this call of torchrun, which has started the processes again."""
    name = launch()
    if name is None or not (out / "recipe.toml").is_file():
        return False
    begun = read_json(out / "environment.json")
    return isinstance(begun, dict) and begun.get("torchrun") == name


def own_device(device: torch.device) -> torch.device:
    """The GPU of this process, where torchrun has started one for each; any other device is shared."""
    if device.type != "cuda" or device.index is not None or not started_by_torchrun():
        return device
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def machines() -> int:
    """The number of machines of torchrun."""
    return int(os.environ.get("GROUP_WORLD_SIZE", "1"))


@contextlib.contextmanager
def team_of(device: torch.device) -> Iterator[Team]:
    """The processes of torchrun within the block, by NCCL on GPUs and gloo on CPUs; else this process alone.

    Raises UserError where their number is not a power of two, or torchrun would start them again in vain.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if not started_by_torchrun() or size == 1:
        yield ALONE
        return
    from elman.learning.processes import started

    with started(device, size) as team:
        yield team
