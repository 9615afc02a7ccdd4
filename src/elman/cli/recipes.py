"""elman recipes: the recipes that come with elman, with their published figures and what they cost."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.options import AboveZero, AsJson, Positive
from elman.config.data import Data
from elman.config.parts import OneOf, convert, tag_of
from elman.config.recipe import Expected
from elman.config.text import TextData
from elman.config.toml import FOLDER, load_recipe, read_tables
from elman.errors import UserError


class _Listed(msgspec.Struct, frozen=True):
    """What a list of recipes shows of one; without the network, whose parts import torch."""

    title: str
    data: OneOf[Data] = TextData()
    expected: Expected | None = None


def recipes(
    *filters: Annotated[str, Parameter(metavar="WORD")],
    minutes: AboveZero | None = None,
    size: Positive | None = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes that come with elman, with the published test figures where there are some.

    Args:
        filters: only recipes with all of these words in their path, title, corpus or kind of data, such as: ptb lstm
        minutes: only recipes that train in at most this many minutes on one thread, estimated within a factor of three
        size: only recipes with at most this many parameters
    """
    listed = list[tuple[Path, _Listed]]()
    for file in sorted(FOLDER.rglob("*.toml")):
        recipe = convert(read_tables(file), _Listed)
        own = (_path(file), recipe.title, tag_of(recipe.data), getattr(recipe.data, "corpus", None) or "")
        if all(word.lower() in " ".join(own).lower() for word in filters):
            listed.append((file, recipe))
    costs = minutes is not None or size is not None
    taken = _costs([file for file, _ in listed]) if costs else {}
    rows, cells = [], []
    for file, recipe in listed:
        cost = taken.get(file)
        if costs and (cost is None or cost[0] > (size or math.inf) or cost[1] > (minutes or math.inf)):
            continue
        found = recipe.expected
        best = None if found is None else found.of("test", fine_tuned=True)
        figure, measure = (None, "") if best is None else _published(recipe, best)
        path = _path(file)
        rows.append({"path": path, "title": recipe.title, "expected": best, "figure": figure, "measure": measure})
        cells.append([path, recipe.title, "" if figure is None else f"{figure:.4g}", measure])
        if cost is not None:
            from elman.report.tables import duration

            rows[-1] |= {"parameters": cost[0], "minutes": cost[1], "gpu_minutes": cost[2]}
            cells[-1] += [f"{cost[0]:,}", *(duration(60 * minutes) for minutes in cost[1:])]
    if not rows:
        words = f" has {' and '.join(filters)} in its path, title, corpus or kind of data" if filters else ""
        limits = " is within --minutes and --size" if costs else ""
        raise UserError(f"no recipe{words}{' and' if words and limits else ''}{limits}")
    header = ["recipe", "title", "published test", "measure", *(["parameters", "one thread", "a GPU"] if costs else [])]
    show.print_result(as_json, rows, ("recipes", header, cells))


def _path(file: Path) -> str:
    return str(Path("recipes") / file.relative_to(FOLDER))


def _costs(files: Sequence[Path]) -> dict[Path, tuple[int, float, float]]:
    """The parameters of each recipe's network, minutes on one thread and on a GPU, where it names data of its own."""
    from elman.study.conduct import parameters_of, training_minutes

    found = dict[Path, tuple[int, float, float]]()
    with progress.counting("estimating what recipes cost") as advance:
        for done, file in enumerate(files, start=1):
            recipe = load_recipe(file)
            with contextlib.suppress(UserError):
                alone, gpu = (round(training_minutes(recipe, gpu=gpu), 1) for gpu in (False, True))
                found[file] = parameters_of(recipe), alone, gpu
            advance(done, len(files))
    return found


def _published(recipe: _Listed, loss: float) -> tuple[float, str]:
    """A published loss as the field states it, and its measure: of characters and bytes bits, otherwise as reported."""
    reporting, options = recipe.data.reporting, recipe.data
    if not reporting.in_perplexity:
        return loss, reporting.measure
    if isinstance(options, TextData) and options.tokenisation in ("characters", "bytes"):
        return math.log2(loss), f"bits per {options.tokenisation.removesuffix('s')}"
    return loss, reporting.measure
