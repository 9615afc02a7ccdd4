"""Classic tasks of recurrent networks; a new one is a function under `task`, and its name in the order of `TASKS`."""

from elman.data.classic import bits, grammars, mackey_glass, memory, tracking  # noqa: F401 - they define the tasks
from elman.data.classic.task import DEFINED, ClassicTask
from elman.errors import UserError

_ORDER = (
    *("xor", "adding", "copying", "copying-10", "recall"),
    *("reber", "embedded-reber", "anbn", "anbncn", "mackey-glass", "generation", "forced-generation", "movement"),
    *("copy", "repeat-copy", "associative-recall", "priority-sort"),
    *("parity", "s5", "s5-swaps", "selective-copying", "key-recall"),
)
TASKS: dict[str, ClassicTask] = {name: DEFINED[name] for name in _ORDER}


def classic_task(name: str) -> ClassicTask:
    """The task of this name; raises UserError where there is none."""
    if name not in TASKS:
        raise UserError(f"there is no task {name}; `elman lab tasks` shows them: {', '.join(TASKS)}")
    return TASKS[name]
