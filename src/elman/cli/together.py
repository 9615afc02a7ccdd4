"""`elman train` in several processes, as torchrun starts them: the first one speaks, the others follow in silence."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from elman.errors import UserError
from elman.formats import read_json

if TYPE_CHECKING:
    import torch

    from elman.learning.team import Team
    from elman.tasks.experiment import Experiment


@contextlib.contextmanager
def joined(device: "torch.device") -> Iterator["Team"]:
    """The team of this process; within the block one that does not lead writes nothing to standard error."""
    from elman.learning.team import team_of

    with contextlib.ExitStack() as stack:
        team = stack.enter_context(team_of(device))
        if not team.leads:
            silent = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stderr(silent))
        yield team


def own_device(device: "torch.device") -> "torch.device":
    """The GPU of this process, where torchrun has started one for each; any other device is shared."""
    import torch

    from elman.learning.team import started_by_torchrun

    if device.type != "cuda" or device.index is not None or not started_by_torchrun():
        return device
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))


def continues(out: Path) -> bool:
    """Whether the run in `out` was begun by this call of torchrun, which has started the processes again."""
    from elman.learning.team import launch

    name = launch()
    if name is None or not (out / "recipe.toml").is_file():
        return False
    begun = read_json(out / "environment.json")
    return isinstance(begun, dict) and begun.get("torchrun") == name


def require_recipe() -> None:
    """Raise UserError where torchrun has started this process, since each would choose a recipe of its own."""
    from elman.learning.team import started_by_torchrun

    if started_by_torchrun():
        raise UserError("under torchrun a RECIPE is needed, such as recipes/ptb/small-awd-lstm.toml (`elman recipes`)")


def follow(experiment: "Experiment", max_minutes: float | None) -> int:
    """Train with the others; the first process evaluates and reports. The exit status."""
    from elman.errors import Diverged
    from elman.learning.trainer import StopReason

    try:
        return 130 if experiment.train((), max_minutes) is StopReason.INTERRUPTED else 0
    except Diverged:  # the first process reports it
        return 2
