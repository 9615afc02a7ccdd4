"""The documented list of cells and cores: each learns through one recipe when one key of it is changed."""

import re
import shlex
from pathlib import Path

import pytest
import torch

from elman import config
from elman.config.parts import members
from elman.data.batches import Batch
from elman.learning.update import build_learner
from elman.network.build import build_model
from elman.objective.loss import Objective

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "recipes" / "shakespeare" / "cells.toml"
WORDS = 12


def documented():
    """Settings by the name of the run."""
    page = (ROOT / "results" / "cells-commands.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^elman train recipes/shakespeare/cells\.toml (.*)--out runs/cells/(\S+)(.*)$", page, re.MULTILINE
    )
    words = {name: shlex.split(f"{before} {after}") for before, name, after in lines}
    return {
        name: [value for key, value in zip(line[::2], line[1::2], strict=True) if key == "--set"]
        for name, line in words.items()
    }


NETWORKS = documented()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_learns_when_one_key_is_changed(name):
    settings = NETWORKS[name]
    assert len(settings) == (name != "lstm"), "one key and no more"
    recipe = config.load_recipe(RECIPE, settings)
    changed = config.changed_keys(recipe, config.load_recipe(RECIPE))
    assert all(key.startswith("model.core") for key in changed)
    torch.manual_seed(0)
    model, learner = build_model(recipe.model, WORDS), build_learner(recipe.training, recipe.model)
    words = torch.randint(WORDS, (9, 4))
    batch, optimiser = Batch(words[:-1], words[1:]), torch.optim.Adam(model.parameters(), lr=4e-3)
    losses = []
    for _ in range(9):
        optimiser.zero_grad()
        loss, _ = learner(model, Objective(), batch, learner.begin(model, 4))
        losses.append(loss.objective.item())
        optimiser.step()
    assert losses[-1] < 0.9 * losses[0]
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert idle == ({"encoder.weight"} if name == "reservoir" else set())


def test_every_cell_and_every_causal_core_is_in_the_list():
    recipes = [config.load_recipe(RECIPE, settings).model.core for settings in NETWORKS.values()]
    cores = set(members(config.Core).values()) - {config.Attentive, config.Recursive, config.Sentence}
    assert {type(core) for core in recipes} == cores
    stacks = [core for core in recipes if isinstance(core, config.Stack)]
    assert {type(core.cell) for core in stacks} == set(members(config.Cell).values())
    assert {core.connections for core in stacks} == {"chain", "graves", "melis"}
    for tagged in ("nonlinearity", "rung", "reset", "input_gate"):
        kinds = [cell for cell in members(config.Cell).values() if tagged in cell.__struct_fields__]
        for kind in kinds:
            values = {getattr(core.cell, tagged) for core in stacks if isinstance(core.cell, kind)}
            assert len(values) > 1, f"{kind.__name__} with another {tagged}"
