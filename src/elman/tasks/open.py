"""Which task a recipe is about."""

from pathlib import Path

import torch

from elman import config
from elman.data.grammar.sample import grammar_folder
from elman.data.text.cache import Progress
from elman.tasks.music.run import MusicRun
from elman.tasks.music.task import Music
from elman.tasks.pairs.run import PairRun
from elman.tasks.pairs.task import Transduce
from elman.tasks.run import recipe_of
from elman.tasks.task import Task
from elman.tasks.text.run import Run
from elman.tasks.text.task import Words


def open_task(recipe: config.Recipe, source: str, progress: Progress | None = None) -> Task:
    """Read the data of a recipe: music if its model reads frames of notes, pairs if it reads a source, else text.

    Raises:
        UserError: the data cannot be used.

    """
    if recipe.of_pairs:
        return Transduce(recipe, source)
    return Music(recipe, source) if recipe.of_music else Words(recipe, source, progress)


def source_of(recipe: config.Recipe) -> str | None:
    """Where the recipe's own data is: a known corpus, or the folder of the text its grammar makes; None: nowhere.

    Raises:
        UserError: the grammar cannot be read.

    """
    return recipe.data.corpus if recipe.data.grammar is None else str(grammar_folder(recipe.data.grammar))


def open_run(path: Path | str, device: torch.device | str = "cpu") -> Run | MusicRun | PairRun:
    """Open a run folder, of text, of music or of pairs."""
    return PairRun(path, device) if recipe_of(Path(path)).of_pairs else open_stream_run(path, device)


def open_stream_run(path: Path | str, device: torch.device | str = "cpu") -> Run | MusicRun:
    """Open a run folder of text or of music, whose model reads one stream; raises UserError for one of pairs."""
    return MusicRun(path, device) if recipe_of(Path(path)).of_music else Run(path, device)
