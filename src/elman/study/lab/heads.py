"""Where the heads of a trained neural Turing machine look: heat maps over the steps of one sequence, as in its paper.

Graves, Wayne & Danihelka 2014, Fig. 6: the vectors that are read and due, and the weights of every head.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.classic.task import ClassicTask
from elman.drawing.heat_map import draw_over_time
from elman.drawing.page import Figure, Section, write_page
from elman.errors import UserError
from elman.network.cores.ntm import TuringMachineCore, weights_over_time
from elman.network.model import LanguageModel
from elman.study.lab.trial import CHECKED, error_of

STEP, TALLEST = 9, 384  # CSS pixels of a step's width, and the most of a memory's height
LEAST = 0.05  # of a weight that is drawn wherever it is


class Looks(NamedTuple):
    """One sequence of a task, and where the heads looked.

    Attributes:
        inputs: what was read, [T, _]; for symbols [T].
        targets: what was due, as `inputs`; zero where nothing was.
        answers: the likelier bits where they were due, [T, _]; None for other kinds of tasks.
        weights: of every head over the N rows of the memory, those that read first, [T, H, N].
        readers: how many heads read.
        due: at which steps something was due, bool [T].
        error: of the network at this length, over many sequences.
    """

    inputs: Tensor
    targets: Tensor
    answers: Tensor | None
    weights: Tensor
    readers: int
    due: Tensor
    error: float

    @property
    def largest(self) -> float:
        """The mean over steps and heads of the largest weight: 1 where every head looks at one row."""
        return self.weights.amax(-1).mean().item()

    @property
    def found(self) -> float:
        """Of the steps at which something was due, the share whose most read row was the most written one before.

        Over the first heads of both kinds; "before" is any earlier step at which nothing was due.
        """
        read, wrote = self.weights[:, 0].argmax(-1), self.weights[:, self.readers].argmax(-1)
        return torch.isin(read[self.due], wrote[~self.due]).float().mean().item()


def machine_of(model: LanguageModel, name: str) -> TuringMachineCore:
    """The core of a network called `name`; raises UserError where it has no heads."""
    if not isinstance(model.core, TuringMachineCore):
        raise UserError(f"the cell {name} has no heads; use ntm or ntm-feed-forward")
    return model.core


@torch.no_grad()
def look(model: LanguageModel, core: TuringMachineCore, task: ClassicTask, span: int, seed: int) -> Looks:
    """Read a sequence of the full span that training has not drawn, and measure the error on others of it."""
    model.eval()
    draw = np.random.default_rng([seed, span, 2])
    batch = task.measured(draw, 1, span).batch
    assert batch.mask is not None
    weights = weights_over_time(core, model.encoder(batch.inputs), model.begin(1))
    trace, _ = model.trace(batch.inputs, model.begin(1))
    answers = model.output.sample(trace, temperature=0.0)[:, 0] if task.kind == "bits" else None
    due = batch.mask[:, 0]
    return Looks(
        inputs=batch.inputs[:, 0],
        targets=batch.targets[:, 0],
        answers=None if answers is None else answers * due.unsqueeze(1),
        weights=weights[:, 0],
        readers=core.heads[0],
        due=due,
        error=error_of(model, task, task.measured(draw, CHECKED, span)),
    )


def write_heads(out: Path, looks: Looks, *, title: str, text: list[str]) -> Path:
    shown = [
        Figure(name, draw_over_time(values.t().tolist(), f"the vectors that were {name}, by step", STEP))
        for name, values in (("read", looks.inputs), ("due", looks.targets), ("answered", looks.answers))
        if values is not None and values.ndim == 2
    ]
    used, heads = used_rows(looks.weights), list[Figure]()
    height = min(float(STEP), TALLEST / len(used))
    for number, weights in enumerate(looks.weights[..., used].unbind(1)):
        kind, place = ("reads", number) if number < looks.readers else ("writes", number - looks.readers)
        name = f"head {place + 1} that {kind}"
        drawing = draw_over_time(weights.t().tolist(), f"the weights of {name}, by step", STEP, height)
        heads.append(Figure(name, drawing))
    note = (
        f"Time runs from left to right, and from top to bottom rows {used[0]} to {used[-1]} of the memory, which is a"
        f" ring of {looks.weights.shape[-1]}; others have no weight above {LEAST:.0%}. The darker a cell, the larger"
        " the weight of the row at the step."
    )
    sections = [Section("Where the heads look", [note], figures=heads)]
    if shown:
        about = "A column is one step; channels go from top to bottom, the bits first, then marks and numbers."
        sections.insert(0, Section("The sequence", [about], figures=shown))
    return write_page(out, kind="Laboratory", title=title, verdict=verdict(looks), sections=sections, text=text)


def used_rows(weights: Tensor) -> list[int]:
    """The rows of the memory, a ring, without the longest stretch in which no weight [T, H, N] is above `LEAST`."""
    rows, used = weights.shape[-1], (weights > LEAST).any(0).any(0).nonzero().flatten().tolist()
    gaps = [(following - row) % rows or rows for row, following in zip(used, used[1:] + used[:1], strict=True)]
    if not used or max(gaps) == 1:
        return list(range(rows))
    longest = gaps.index(max(gaps))
    first = used[(longest + 1) % len(used)]
    return [(first + step) % rows for step in range(rows - gaps[longest] + 1)]


def verdict(looks: Looks) -> str:
    return (
        f"Error {looks.error:.3g} over {len(looks.due)} steps. The largest weight of a head is {looks.largest:.2f} in"
        f" the mean; in {100 * looks.found:.0f} % of the steps at which something is due, the row that is read most is"
        " one that had been written most."
    )
