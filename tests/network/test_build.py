"""Every record of a part names a builder, and every part that is built can be initialised and run."""

import inspect
from pkgutil import resolve_name

import pytest
import torch

from elman import config
from elman.config.parts import members
from elman.network.build import build_model
from elman.network.state import leaves
from support import networks

UNIONS = {"encoder": config.Encoder, "core": config.Core}
UNIONS |= {"contexts": config.Contexts, "choice": config.Choice}
RECORDS = {f"{union}-{networks.tag(kind)}": kind for union, kinds in UNIONS.items() for kind in members(kinds).values()}


def test_a_builder_takes_the_record_that_names_it():
    for name, kind in RECORDS.items():
        taken = next(iter(inspect.signature(resolve_name(kind.builder)).parameters.values()))
        assert taken.annotation in (kind, config.Output), name


def test_builders_are_named_once():
    builders = [kind.builder for kind in RECORDS.values()]
    assert len(builders) == len(set(builders))


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
