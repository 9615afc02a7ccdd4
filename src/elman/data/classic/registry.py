"""All classic tasks."""

import numpy as np

from elman.data.classic.grammars import COUNTING_2, COUNTING_3, EMBEDDED_REBER, REBER
from elman.data.classic.mackey_glass import MACKEY_GLASS
from elman.data.classic.memory import ADDING, COPYING, LONG_COPYING, RECALL, XOR
from elman.data.classic.task import ClassicTask, Sample, determined
from elman.errors import UserError

# FOLDED data/classic/plans.py: Sequences generated from a fixed context (Jordan 1986): a plan is given at every step, its sequence is due.
PLANS, LETTERS = 8, 4


def plan_sequences(span: int, plans: int = PLANS, letters: int = LETTERS) -> np.ndarray:
    """The sequences of all plans, [span, plans]: random, but always the same for a span."""
    return np.random.default_rng(span).integers(0, letters, (span, plans))


def plans(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Symbols: the letters, then the plans. The plan is all that is read, so the place must be kept in mind."""
    chosen = rng.integers(0, PLANS, columns)
    inputs = np.broadcast_to(LETTERS + chosen, (span, columns)).copy()
    targets = plan_sequences(span)[:, chosen]
    return determined(inputs, targets, np.ones(inputs.shape, dtype=bool), LETTERS + PLANS)


def spoken(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """The same with teacher forcing: the plan is read first, and then each true letter before the next is due."""
    sample = plans(rng, columns, span)
    sample.batch.inputs[1:] = sample.batch.targets[:-1]
    return sample


GENERATION = ClassicTask(
    "generation",
    f"the sequence, as long as the span, of a plan that is all that is read ({PLANS} plans, {LETTERS} letters)",
    "Jordan 1986",
    "symbols",
    LETTERS + PLANS,
    LETTERS + PLANS,
    plans,
    0.01,
    f"{1 - 1 / LETTERS:g}",
    8,
)
FORCED_GENERATION = GENERATION._replace(
    name="forced-generation",
    sentence="the sequence of a plan that is read first, and after it each true letter",
    source="Jordan 1986; Williams & Zipser 1989 (teacher forcing)",
    draw=spoken,
)


# TARGET
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
