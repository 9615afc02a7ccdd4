"""Parts of training that plug-ins add: how a recipe names them, and what they change."""

import pytest
import torch

from elman import config
from elman.config.parts import register, unregister
from elman.config.remembered import recorded, used
from elman.config.toml import decisive, dump_recipe, parse_recipe
from elman.data.batches import Batch
from elman.errors import UserError
from elman.objective.loss import build_objective
from support import networks


class Sparse(config.Penalty, frozen=True, tag="sparse-units"):
    power: int = 1

    def __call__(self, seen):
        return self.weight * seen.mean(seen.trace.top.abs().pow(self.power).mean(-1))


class Twice(config.Criterion, frozen=True, tag="twice"):
    def __call__(self, seen):
        nll = -seen.log_probs.gather(-1, seen.batch.targets.unsqueeze(-1)).squeeze(-1)
        return 2 * seen.mean(nll), nll.detach()


class Focal(config.Criterion, frozen=True, tag="focal"):
    gamma: float


ADDED = [(Sparse, config.Penalty), (Twice, config.Criterion), (Focal, config.Criterion)]


@pytest.fixture
def added():
    for member, family in ADDED:
        register(member, family)
    yield
    for member, family in ADDED:
        unregister(member, family)


def tables(**training):
    return {
        "title": "parts",
        "model": {"encoder": {"kind": "lookup", "size": 4}, "core": {"kind": "stack", "sizes": [4]}},
        "training": {"epochs": 1, "optimiser": {"kind": "sgd", "lr": 0.1}, **training},
    }


def test_a_recipe_without_them_is_the_same_whether_there_are_plug_ins_or_not(added):
    there = parse_recipe(tables(penalties={"ar": 2.0}), "here")
    for member, family in ADDED:
        unregister(member, family)
    without = parse_recipe(tables(penalties={"ar": 2.0}), "here")
    for member, family in ADDED:
        register(member, family)
    assert there == without
    assert type(there.training.penalties) is config.Penalties
    assert dump_recipe(there) == dump_recipe(without)
    assert decisive(there)["training"]["penalties"].keys() == set(config.Penalties.__struct_fields__)


def test_a_penalty_is_a_key_and_is_counted(added):
    found = parse_recipe(tables(penalties={"ar": 2.0, "sparse-units": {"weight": 0.5, "power": 2}}), "here").training
    assert decisive(parse_recipe(tables(penalties={"sparse-units": {"weight": 0.5}}), "here"))["training"]["penalties"][
        "sparse-units"
    ] == {"kind": "sparse-units", "weight": 0.5, "power": 1}
    objective = build_objective(found)
    assert objective.penalties[1:] == (Sparse(weight=0.5, power=2),)
    model, symbols = networks.model(), torch.randint(7, (5, 3))
    loss, _ = objective(model, Batch(symbols, symbols), model.begin(3))
    trace, _ = model.trace(symbols, model.begin(3))
    torch.testing.assert_close(loss.penalty, 2.5 * trace.top.square().mean().detach())


def test_a_penalty_without_weight_is_left_out(added):
    recipe = parse_recipe(tables(penalties={"sparse-units": {"weight": 0}}), "here")
    assert build_objective(recipe.training).penalties == ()


@pytest.mark.parametrize("loss", ["twice", {"kind": "twice"}])
def test_a_loss_is_named_or_a_table(loss, added):
    recipe = parse_recipe(tables(loss=loss), "here")
    assert decisive(recipe)["training"]["loss"] == loss
    model, symbols = networks.model(), torch.randint(7, (5, 3))
    batch = Batch(symbols, symbols)
    ours, _ = build_objective(recipe.training)(model, batch, model.begin(3))
    mean, _ = build_objective(parse_recipe(tables(), "here").training)(model, batch, model.begin(3))
    torch.testing.assert_close(ours.objective, 2 * mean.objective)
    torch.testing.assert_close(ours.nll_sum, mean.nll_sum)


@pytest.mark.parametrize(
    ("training", "line"),
    [
        ({"loss": "max"}, 'training.loss = "max"; write one of "mean", "sum", "twice" or a table with kind = "focal"'),
        ({"loss": 3}, 'training.loss = 3; write one of "mean", "sum", "twice" or a table with kind = "focal"'),
        ({"loss": "focal"}, 'training.loss = "focal"; write one of "mean", "sum", "twice" or a table'),
        ({"loss": {"kind": "focal"}}, "the key training.loss.gamma is missing; write a number"),
        ({"loss": {"kind": "mix"}}, 'training.loss.kind = "mix"; write one of "mean", "sum", "twice", "focal"'),
        ({"penalties": {"sparse": 1}}, "unknown key training.penalties.sparse (did you mean sparse-units?)"),
        ({"penalties": {"sparse-units": 1}}, 'training.penalties.sparse-units = 1; write a table with kind = "sparse'),
        ({"penalties": {"sparse-units": {}}}, "the key training.penalties.sparse-units.weight is missing"),
        (
            {"penalties": {"sparse-units": {"weight": -1}}},
            "training.penalties.sparse-units.weight = -1; write a number of 0 or more",
        ),
        ({"penalties": 3}, "training.penalties = 3; write a table"),
        ({"rule": "bptt"}, 'training.rule = "bptt"; write a table with kind = "bptt" or "rtrl"'),
        ({"constraint": {"kind": "none"}}, 'training.constraint.kind = "none"; write one of "spectral", "orthogonal"'),
    ],
)
def test_what_is_wrong_is_named(training, line, added):
    with pytest.raises(UserError) as caught:
        parse_recipe(tables(**training), "here")
    assert line in str(caught.value)


def test_without_plug_ins_a_loss_is_one_of_the_names():
    with pytest.raises(UserError, match=r'training\.loss = "max"; write one of "mean", "sum"$'):
        parse_recipe(tables(loss="max"), "here")


def test_a_recipe_of_own_parts_needs_no_plug_in(added):
    recipe = parse_recipe(tables(), "here")
    assert recorded(used(recipe)) == []
    assert "plugins" not in dump_recipe(recipe)
