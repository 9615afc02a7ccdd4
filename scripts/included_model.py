"""Put a run into the package as the model of a name, in eight bits: `make model` does so with the demo's run.

    python scripts/included_model.py runs/demo shakespeare

The folder and the entry in the registry replace those that were there.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from elman import load
from elman.export.publishing import About, entry_text, publish
from elman.tasks.models import registry, store

ABOUT = About(
    licence="MIT, as elman itself",
    data="Shakespeare's plays and poems, 42 works: Project Gutenberg's texts, in the public domain, from the Python"
    " package shakespeare 0.6",
    notes="made by make model: recipes/shakespeare/demo.toml trained by elman demo, weights in eight bits",
)


def main(run: str, name: str) -> None:
    """Write the folder of the model and its entry."""
    with tempfile.TemporaryDirectory() as beside:
        made = publish(load(run), name, Path(beside) / "out", ABOUT, "int8")
        shutil.rmtree(store.included(name), ignore_errors=True)
        shutil.copytree(made.folder, store.included(name))
    models = registry.own() | {name: msgspec.structs.replace(made.model, archive=None)}
    text = "".join(entry_text(one, model) for one, model in models.items())
    registry.OWN.write_text(f"# Models that come with elman; written by scripts/included_model.py.\n\n{text}", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
