"""Which task a recipe is about."""

from elman import config
from elman.data.cache import Progress
from elman.data.grammar.text import grammar_folder
from elman.tasks.music import Music
from elman.tasks.pairs import Transduce
from elman.tasks.task import Task
from elman.tasks.words import Words


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
