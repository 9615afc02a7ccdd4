"""The recipes that come with elman."""

from collections.abc import Iterator
from pathlib import Path

from elman.config.recipe import Recipe
from elman.config.toml import load_recipe
from elman.errors import UserError

FOLDER = Path(__file__).parents[1] / "recipes"


def shipped() -> Iterator[tuple[Path, Recipe]]:
    """Every recipe, with its path relative to the folder of recipes' parent (`recipes/ptb/awd-lstm.toml`)."""
    for path in sorted(FOLDER.rglob("*.toml")):
        yield Path("recipes") / path.relative_to(FOLDER), load_recipe(path)


def find(name: str) -> Path:
    """The path of a shipped recipe, such as `shakespeare/demo.toml`.

    Raises:
        UserError: there is no such recipe.

    """
    path = FOLDER / name
    if not path.is_file():
        raise UserError(f"no recipe {name} comes with elman; `elman recipes` lists them")
    return path


def resolve(path: Path) -> Path:
    """The path itself, or the shipped recipe that `elman recipes` lists under it where no such file exists."""
    ours = FOLDER.parent / path
    return ours if not path.exists() and ours.is_file() else path
