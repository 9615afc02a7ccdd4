"""What a run that is passed on states of its data: names, without the places of files on this machine."""

from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

from elman.config.text import TextData
from elman.config.toml import dump_recipe
from elman.files import json_text, write_atomic
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL
from elman.tasks.run import Run


def source_name(run: Run) -> str:
    """Where the data of a run is, without the place on this machine."""
    return Path(str(run.facts["source"])).name


def write_origin(run: Run, folder: Path) -> None:
    """Write recipe.toml and data.json of a run into a folder, with names in the place of paths."""
    source, data = source_name(run), run.recipe.data
    if data.corpus is not None:
        data = data.changed(corpus=source)
    if isinstance(data, TextData) and data.grammar is not None:
        rules = Path(data.grammar.rules).name
        data = msgspec.structs.replace(data, grammar=msgspec.structs.replace(data.grammar, rules=rules))
    write_atomic(folder / "recipe.toml", dump_recipe(msgspec.structs.replace(run.recipe, data=data), places=False))
    write_atomic(folder / "data.json", json_text({**run.facts, "source": source}, indent=1) + "\n")


def load_model(run: Run) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a run's best model; the recipe among the facts has names in the place of paths too."""
    tensors, facts = checkpoint.load(run.path / MODEL)
    match facts:
        case {"recipe": {"data": {"grammar": {"rules": str(rules)} as grammar}}}:
            grammar["rules"] = Path(rules).name
    return tensors, facts
