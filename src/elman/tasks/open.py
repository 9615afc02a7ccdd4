"""The tasks by their kind of data: the one place that lists them."""

from pathlib import Path

import torch

from elman.config.recipe import Recipe
from elman.data.text.cache import Progress
from elman.errors import UserError
from elman.tasks.music.task import MusicTask
from elman.tasks.pairs.task import PairTask
from elman.tasks.run import Run, present, recipe_of
from elman.tasks.series.task import SeriesTask
from elman.tasks.task import Task
from elman.tasks.text.task import TextTask

TASKS: dict[str, type[Task]] = {task.kind: task for task in (TextTask, MusicTask, PairTask, SeriesTask)}
"""By the kind of a recipe's data."""


def task_of(recipe: Recipe) -> type[Task]:
    """The task of a recipe's kind of data."""
    return TASKS[recipe.kind]


def open_task(recipe: Recipe, source: str, progress: Progress | None = None) -> Task:
    """Read the data of a recipe; raises UserError where it cannot be used."""
    return task_of(recipe)(recipe, source, progress)


def source_of(recipe: Recipe) -> str:
    """Where the recipe's own data is; raises UserError where it names none, or it is not there or cannot be made."""
    source = task_of(recipe).own_source(recipe)
    if source is None:
        raise UserError("no data: give --data, or a recipe with data.corpus or data.grammar")
    return present(source, f'the recipe has data.corpus = "{source}"')


def recorded_source(folder: Path, recipe: Recipe) -> str:
    """Where the data of a run is; raises UserError where that is not recorded, or it is not there any more."""
    return task_of(recipe).run.present_source(folder, recipe)


def open_run(path: Path | str, device: torch.device | str = "cpu") -> Run:
    """Open a run folder as the run of its kind of data; raises UserError where the folder is not a run."""
    return task_of(recipe_of(Path(path))).run(path, device)
