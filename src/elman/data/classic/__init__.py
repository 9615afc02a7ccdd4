"""Classic tasks of recurrent networks; a new one is a file with its `ClassicTask`, and a line of `TASKS`."""

from elman.data.classic import bits, grammars, mackey_glass, memory, tracking
from elman.data.classic.task import ClassicTask
from elman.errors import UserError

TASKS: dict[str, ClassicTask] = {
    task.name: task
    for task in (
        memory.XOR,
        memory.ADDING,
        memory.COPYING,
        memory.LONG_COPYING,
        memory.RECALL,
        grammars.REBER,
        grammars.EMBEDDED_REBER,
        grammars.COUNTING_2,
        grammars.COUNTING_3,
        mackey_glass.MACKEY_GLASS,
        memory.GENERATION,
        memory.FORCED_GENERATION,
        memory.MOVEMENT,
        bits.COPY,
        bits.REPEAT_COPY,
        bits.ASSOCIATIVE_RECALL,
        bits.PRIORITY_SORT,
        tracking.PARITY,
        tracking.WORD_PROBLEM,
        tracking.SWAPPING,
        tracking.SELECTIVE_COPYING,
        tracking.KEY_RECALL,
    )
}


def classic_task(name: str) -> ClassicTask:
    """The task of this name; raises UserError where there is none."""
    if name not in TASKS:
        raise UserError(f"there is no task {name}; `elman lab tasks` shows them: {', '.join(TASKS)}")
    return TASKS[name]
