"""Every record of a part builds it, and every part that is built can be initialised and run."""

import inspect
import sys

import pytest
import torch

from elman import config
from elman.config.parts import members
from elman.errors import UserError
from elman.network import build
from elman.network.build import build_model
from elman.network.state import leaves
from support import networks

FAMILIES = config.Encoder, config.Core, config.Contexts, config.Choice, config.Composition


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_record_stands_beside_what_it_builds(family):
    """Each has a `build` of its own, whose module is in the same file, and is found by its name."""
    for kind in members(family).values():
        built = inspect.signature(vars(kind)["build"]).return_annotation
        assert issubclass(vars(sys.modules[kind.__module__])[built], torch.nn.Module)
        assert getattr(config, kind.__name__) is kind


MODELS = {f"cell-{name}": {"core": config.Stack(sizes=(4,), cell=cell)} for name, cell in networks.CELL_RECORDS.items()}
MODELS |= {f"choice-{name}": {"output": config.Output(choice=choice)} for name, choice in networks.CHOICES.items()}
MODELS |= {
    f"core-{networks.tag(kind)}": {"core": networks.example(kind)}
    for kind in members(config.Core).values()
    if kind not in (config.Attentive, config.Sentence)
}


@pytest.mark.parametrize("name", MODELS)
def test_a_recipe_is_built_and_initialised_from_the_seed(name):
    parts = {"core": config.Stack(sizes=(4,)), **MODELS[name]}
    recipe = config.Model(encoder=config.Lookup(size=4), **parts)
    states = []
    for _ in range(2):
        torch.manual_seed(1)
        model = build_model(recipe, len(networks.COUNTS), networks.COUNTS)
        states.append(model.state_dict())
    assert all(torch.equal(one, other) for one, other in zip(*(state.values() for state in states), strict=True))
    log_probs, state = model.step(torch.tensor([3, 5]), model.begin(2))
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(2), rtol=1e-4, atol=0)
    assert all(len(leaf) == 2 and leaf.isfinite().all() for leaf in leaves(state))


def test_a_network_that_just_fits_is_built_and_a_byte_less_is_refused(monkeypatch):
    recipe, counted = config.Model(encoder=config.Lookup(size=4), core=config.Stack(sizes=(4,))), []
    monkeypatch.setattr(build, "_memory", lambda: 0)
    with pytest.raises(UserError, match="bytes or more, and this machine has 0"):
        build.build_model(recipe, 7)
    monkeypatch.setattr(build, "_memory", lambda: 10**9)
    within = build._WithinMemory(recipe)
    with within:
        build.build_model(recipe, 7)
    for allowed in (within.total, within.total - 1):
        monkeypatch.setattr(build, "_memory", lambda allowed=allowed: allowed)
        try:
            counted.append(build.build_model(recipe, 7) is not None)
        except UserError:
            counted.append(False)
    assert counted == [True, False]


def test_the_distribution_of_vectors_is_not_fed_back():
    def model(feedback):
        core, choice = config.Jordan(size=4, feedback=feedback), config.Gaussian()
        return config.Model(encoder=config.Values(), core=core, output=config.Output(choice=choice))

    with pytest.raises(UserError, match=r'cannot be listed; set model\.core\.feedback = "target"'):
        build_model(model("output"), 2)
    build_model(model("target"), 2)
