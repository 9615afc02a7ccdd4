"""Opens the task and the run of a kind of data, which its record names."""

from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name

import msgspec
import torch

from elman.config import plugins
from elman.config.recipe import Recipe
from elman.config.text import TextData
from elman.config.toml import set_keys
from elman.data.catalog.known import is_known
from elman.data.kinds import look, name_of
from elman.data.text.block_reading import Progress
from elman.errors import UserError, command, notice
from elman.tasks.hub import fetched
from elman.tasks.run import Run, present, recipe_of
from elman.tasks.task import Task


def task_of(recipe: Recipe) -> type[Task]:
    """The task of a recipe's kind of data; raises UserError where a plug-in names no task."""
    what, place = plugins.name_of(recipe.data), recipe.data.task
    if what is None:
        own: type[Task] = resolve_name(place)
        return own
    found = plugins.calling(what, lambda: resolve_name(place))
    if not (isinstance(found, type) and issubclass(found, Task) and found.kind == found.run.kind == recipe.kind):
        raise UserError(
            f"{what}: {place} is no elman.tasks.task.Task of the kind {recipe.kind!r} with a run of this kind"
        )
    if missing := sorted({*found.__abstractmethods__, *found.run.__abstractmethods__}):
        raise UserError(f"{what}: {place} or its run lacks {', '.join(missing)}")
    return found


def open_task(recipe: Recipe, source: str, progress: Progress | None = None) -> Task:
    """Read the data of a recipe, which is believed: a notice reports where the data look like another kind.

    Raises UserError where they cannot be read so.
    """
    doubt = _doubt(recipe, source)
    try:
        task = task_of(recipe)(recipe, source, progress)
    except UserError as error:
        raise UserError(f"{doubt[0]}; {doubt[1]} ({error})") if doubt else error from None
    if doubt:
        notice(f"{doubt[0]}; it is read as the recipe says")
    return task


def entitled(recipe: Recipe, source: str | Path | None, settings: Sequence[str] = ()) -> Recipe:
    """The recipe with a title that names its data, where they are not the corpus for which it was written.

    A title among the settings is kept, and the title of a recipe without a corpus, unless it is for texts. Published
    figures are left out.
    """
    data = recipe.data
    if source is None or (data.corpus is None and not isinstance(data, TextData)):
        return recipe
    name = name_of(source)
    if data.corpus is not None and data.corpus.lower() in (name.lower(), str(Path(source).absolute()).lower()):
        return recipe
    tokens = data.tokenisation if isinstance(data, TextData) else recipe.kind
    unit = "words" if tokens == "raw" else tokens
    own = "title" in set_keys(settings)
    return msgspec.structs.replace(recipe, title=recipe.title if own else f"{name} ({unit})", expected=None)


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
    """Open a run folder, or `hf://USER/NAME` from the Hub of Hugging Face, as the run of its kind of data.

    Raises UserError where the folder is not a run, or cannot be fetched.
    """
    folder = fetched(path)
    return task_of(recipe_of(folder)).run(folder, device)


def _doubt(recipe: Recipe, source: str) -> tuple[str, str] | None:
    """What data look like that belong to another kind than the recipe, and what helps; bytes can be of any file.

    Raises UserError where they are in a format that nothing reads.
    """
    data = recipe.data
    if plugins.name_of(data) is not None:  # a plug-in reads what it knows
        return None
    found = None if is_known(source) else look(Path(source))
    if found is None or recipe.kind in found.possible or (isinstance(data, TextData) and data.tokenisation == "bytes"):
        return None
    start = f"{source}: the recipe is for {recipe.kind} ({data.needs}), but this looks like {found.what}"
    if found.kind is None:
        raise UserError(f"{start}; {found.advice}")
    if isinstance(data, TextData):  # every text can be read as one: these are bytes
        raise UserError(f"{start}; use a recipe for {found.kind}, or let one be chosen: {command('train', source)}")
    return start, f"use a recipe for {found.kind}, or let one be chosen: {command('train', source)}"
