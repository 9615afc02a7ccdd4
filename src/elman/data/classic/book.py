"""All classic tasks."""

from elman.data.classic.adding import ADDING
from elman.data.classic.grammars import COUNTING_2, COUNTING_3, EMBEDDED_REBER, REBER
from elman.data.classic.mackey_glass import MACKEY_GLASS
from elman.data.classic.memory import COPYING, LONG_COPYING, RECALL, XOR
from elman.data.classic.plans import FORCED_GENERATION, GENERATION
from elman.data.classic.task import ClassicTask
from elman.errors import UserError

TASKS: dict[str, ClassicTask] = {
    task.name: task
    for task in (
        XOR,
        ADDING,
        COPYING,
        LONG_COPYING,
        RECALL,
        REBER,
        EMBEDDED_REBER,
        COUNTING_2,
        COUNTING_3,
        MACKEY_GLASS,
        GENERATION,
        FORCED_GENERATION,
    )
}


def classic_task(name: str) -> ClassicTask:
    """The task of a name.

    Raises:
        UserError: there is none.

    """
    if name not in TASKS:
        raise UserError(f"there is no task {name}; `elman lab tasks` shows them: {', '.join(TASKS)}")
    return TASKS[name]
