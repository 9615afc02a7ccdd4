"""elman train without a recipe: choose one for the data and the minutes, and print the choice as a command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elman.cli import progress
from elman.cli.groups import Common
from elman.config.recipe import Recipe
from elman.config.text import TextData
from elman.errors import UserError, command
from elman.tasks.hub import fetched

if TYPE_CHECKING:
    import torch

MINUTES = 10.0


def sources(positional: Path | None, data: str | None) -> tuple[Path | None, str | None]:
    """The recipe and the data of a command line, whose positional argument is data unless it is a .toml file.

    Raises UserError where data are given twice, or a run folder stands in the place of data.
    """
    if positional is None or positional.suffix == ".toml":
        return positional, data
    if (positional / "recipe.toml").is_file():
        again = command("train", positional / "recipe.toml", "--out", "NEW")
        raise UserError(
            f"{positional} is a run folder; to repeat it: `{again}`, to continue it:"
            f" {command('train', '--resume', '--out', positional)}"
        )
    if data is not None:
        raise UserError(
            f"{positional} is no recipe (a .toml file), and --data names data too; leave out one of them, or give a"
            " recipe that `elman recipes` lists"
        )
    return None, str(positional)


def options_of(common: Common, init: Path | None) -> list[str]:
    """The options of the command line that an equivalent command needs too."""
    words = [] if common.device == "auto" else ["--device", common.device]
    words += [] if common.threads is None else ["--threads", str(common.threads)]
    return words if init is None else [*words, "--init", str(init)]


def settings_of(init: Path) -> list[str]:
    """The settings by which a text is read by the network of another run: its words, and more.

    They are its sizes, cell, output, tokens, case and vocabulary. A run on other data than text has none, so that a
    recipe must be given.
    """
    from elman.tasks.run import recipe_of

    recipe = recipe_of(fetched(init))
    if not isinstance(recipe.data, TextData):
        return []
    keys = ("encoder.size", "core.kind", "core.sizes", "core.cell", "output.contexts", "output.choice")
    values = msgspec.to_builtins(recipe.model, str_keys=True)
    found = [] if recipe.data.spelt else ["data.vocabulary_from=init"]
    found += [f"data.tokenisation={recipe.data.tokenisation}", f"data.lowercase={_inline(recipe.data.lowercase)}"]
    for key in keys:
        table, name = key.split(".")
        if (value := values[table].get(name)) is not None:
            found.append(f"model.{key}={_inline(value)}")
    return found


def _inline(value: Any) -> str:
    """A value as TOML writes it in a line, keys without a value left out."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}={_inline(one)}" for key, one in value.items() if one is not None) + "}"
    return json.dumps(value, separators=(",", ":"))


def choose(
    data: str,
    out: Path,
    minutes: float | None,
    max_minutes: float | None,
    device: "torch.device",
    settings: Sequence[str],
    options: Sequence[str],
    *,
    init: Path | None = None,
    dry_run: bool = False,
) -> tuple[Recipe, float | None]:
    """A recipe and the minutes after which it is stopped, None where its own clock ends it.

    The reasons and the equivalent command are printed on standard error.

    `options` are what the equivalent command needs too of the command line, and `init` is the folder of the run
    from which training starts. Raises UserError where there is no place for a run, or no time.
    """
    from elman.data.text.vocabulary import words_of
    from elman.tasks.plan import require_free
    from elman.tasks.proposal.choose import propose

    if not dry_run:
        require_free(out)
    if minutes is None and max_minutes == 0:
        raise UserError("--max-minutes 0 leaves no time for which a size could be chosen; give --minutes too")
    if minutes is None:
        minutes = MINUTES if max_minutes is None else max_minutes
    with progress.preparing("looking at the data") as advance, words_of(init):
        proposal = propose(data, minutes, device, settings, advance)
    recipe = proposal.load()
    limit = minutes if max_minutes is None and recipe.training.minutes is None else max_minutes
    console = progress.log()
    console.print(f"chosen for {data} and {minutes:g} min: {proposal.shown_recipe}", markup=False)
    for reason in proposal.reasons:
        console.print(f"  {reason}", markup=False)
    if proposal.given:
        console.print(f"  as given: {', '.join(proposal.given)}", markup=False)
    console.print(f"the same as: {proposal.command(data, out, limit, options)}", markup=False)
    return recipe, limit
