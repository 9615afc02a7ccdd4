"""A toy recipe on a toy corpus, and runs that are written instead of trained."""

import json
import os

import pytest

from elman import config
from elman.files import write_atomic
from elman.study import runs
from support import inline, text_runs
from support.claims import row


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "toy.toml"
    path.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    return path


class Written:
    """Runs are written by `nll` of their recipe, or fail; `trained` are the recipes of those that were begun."""

    def __init__(self, launcher):
        self.launcher, self.trained, self.failing = launcher, [], {}

    def nll(self, recipe):
        return recipe.training.optimiser.lr + recipe.seed / 1000

    def __call__(self, run, machine):
        self.trained.append(run.recipe)
        if self.failing.get(run.recipe.seed, 0) > 0:
            self.failing[run.recipe.seed] -= 1
            raise OSError("the disk was away")
        run.folder.mkdir(parents=True)
        rows = [
            row("test", 9.0 - self.nll(run.recipe)),  # the worst setting is best here
            row("valid", self.nll(run.recipe)),
        ]
        write_atomic(run.folder / "recipe.toml", config.dump_recipe(run.recipe))
        write_atomic(run.folder / "data.json", json.dumps({"source": "", "digest": os.urandom(4).hex()}))
        write_atomic(run.folder / "results.json", json.dumps(rows))


@pytest.fixture
def written(monkeypatch):
    found = Written(inline.use(monkeypatch))
    monkeypatch.setattr(runs, "_train", found)
    return found
