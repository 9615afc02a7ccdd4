"""A claim on two toy recipes."""

import pytest

from elman import config
from elman.study import claim as arms_module
from elman.study import claims as registry
from elman.study.claim import Arm, Claim, Source
from elman.study.comparison import lower
from elman.study.measures import PERPLEXITY
from support import text_runs


@pytest.fixture
def experiment(tmp_path, monkeypatch, corpus):
    """A claim on two toy recipes: that sigsoftmax is lower than softmax."""
    recipe = tmp_path / "text_runs.toml"
    recipe.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    monkeypatch.setattr(arms_module, "find", lambda name: tmp_path / name)
    arms = (
        Arm("softmax", Source("text_runs.toml")),
        Arm("sigsoftmax", Source("text_runs.toml", ("model.output.activation=sigsoftmax",))),
    )
    made = Claim(
        name="toy-claim",
        sentence="sigsoftmax is lower",
        source="nowhere",
        arms=arms,
        measure=PERPLEXITY,
        comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
        metric="test perplexity",
        published={"softmax": "57.0"},
        seeds=2,
    )
    monkeypatch.setitem(registry.CLAIMS, made.name, made)
    return made
