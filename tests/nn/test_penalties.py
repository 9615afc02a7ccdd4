"""Penalties of parts: those that a recipe's training adds, in value and gradient."""

import pytest
import torch
from torch.nn.utils.parametrizations import orthogonal

from elman import config
from elman import nn as enn
from elman.config.parts import convert
from elman.data.batches import Batch
from elman.learning.bptt import WholeWindow
from elman.learning.gradient_norm import GradientNorm
from elman.nn import penalties
from elman.objective.loss import Objective, build_objective
from support.words import V, Words, arrays_of, mixture, pair

MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]).bool()


def window(mask=None):
    ids = torch.randint(V, (5, 3))
    return Batch(ids[:-1], ids[1:], mask)


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("columns", [True, False])
def test_all_penalties_are_those_of_a_recipe(mask, columns):
    known, made = pair(components=3)
    weights = {
        "ar": 0.7,
        "tar": 0.3,
        "norm_stabiliser": 0.4,
        "balance": 0.2,
        "balance_form": "columns" if columns else "minibatch",
    }
    training = convert(
        {"penalties": weights, "epochs": 1, "batch_size": 3, "optimiser": {"kind": "sgd", "lr": 1.0}}, config.Training
    )
    batch = window(mask)
    loss, _ = build_objective(training)(known, batch, known.begin(3))
    loss.objective.backward()
    levels, _ = made(batch.inputs, levels=True)
    added = [
        penalties.activation(levels, 0.7, mask),
        penalties.temporal(levels, 0.3, mask),
        penalties.norm_stabiliser(levels, 0.4, mask),
        penalties.balance(made.output, levels, 0.2, mask, columns=columns),
    ]
    torch.testing.assert_close(sum(added).detach(), loss.penalty)
    (made.output.nll(levels, batch.targets, weight=mask) + sum(added)).backward()
    for name, theirs in arrays_of(known).items():
        torch.testing.assert_close(made.get_parameter(name).grad, theirs.grad)


def test_activation_reads_what_is_dropped_and_temporal_what_is_not():
    core = enn.LSTM(4, [8], output_dropout=0.5)
    levels, _ = core(torch.randn(6, 2, 4), levels=True)
    assert penalties.activation(levels, 3.0).item() == pytest.approx(3 * levels.top.square().mean().item())
    differences = levels.raw[-1].diff(dim=0).square().mean().item()
    assert penalties.temporal(levels, 2.0).item() == pytest.approx(2 * differences)
    assert penalties.temporal(levels.raw[-1], 2.0).item() == pytest.approx(2 * differences), "torch's have no levels"


@pytest.mark.parametrize("cell", ["lstm", "gru", "elman"])
def test_gradient_norm_is_that_of_a_recipe(cell):
    known, made = pair(cell)
    batch, weight = window(), 0.6
    found = []
    for rule in (GradientNorm(WholeWindow(), weight), WholeWindow()):
        known.zero_grad()
        loss, _ = rule(known, Objective(), batch, known.begin(3))
        found.append((loss.penalty, [one.grad.clone() for one in known.core.parameters()]))
    (omega, with_it), (_, without) = found
    vectors = made.encoder(batch.inputs)
    mine = penalties.gradient_norm(made.core, vectors, lambda h: made.output.nll(h, batch.targets), weight)
    torch.testing.assert_close(mine.detach(), omega)
    gradients = torch.autograd.grad(mine, [*made.core.parameters()])
    expected = [a - b for a, b in zip(with_it, without, strict=True)]
    torch.testing.assert_close([*gradients], expected)
    assert max(one.abs().max() for one in gradients) > 1e-3


def test_what_has_no_such_penalty_is_refused():
    levels, _ = Words()(torch.zeros(3, 2, dtype=torch.long), levels=True)
    with pytest.raises(ValueError, match="Softmax has one component"):
        penalties.balance(Words().output, levels)
    xs = torch.randn(3, 2, 4)
    with pytest.raises(ValueError, match="in both"):
        penalties.gradient_norm(enn.GRU(4, 5, bidirectional=True), xs, torch.sum)
    for dropout in ({"weight_drop": 0.5}, {"output_dropout": 0.2}, {"input_dropout": 0.2}):
        core = enn.LSTM(4, 5, **dropout)
        with pytest.raises(ValueError, match="set the core's dropout to 0"):
            penalties.gradient_norm(core, xs, torch.sum)
        assert penalties.gradient_norm(core.eval(), xs, torch.sum) > 0
    assert penalties.balance(Words(mixture).output, levels) >= 0


def test_masks_of_other_shapes_are_refused():
    """One of [T, 1] would count each step once, and add up all columns."""
    levels, _ = Words()(torch.zeros(3, 2, dtype=torch.long), levels=True)
    for mask in (torch.ones(3, 1).bool(), torch.ones(2, 3).bool(), torch.ones(3, 2)):
        for penalty in (penalties.activation, penalties.temporal, penalties.norm_stabiliser):
            with pytest.raises(ValueError, match=r"the levels need \[3, 2\], bool"):
                penalty(levels, 1.0, mask)


def test_the_gradient_norm_reads_what_torch_parametrises():
    torch.manual_seed(0)
    core, xs = enn.Elman(4, 5), torch.randn(3, 2, 4)
    orthogonal(core, "weight_hh_l0")
    plain = enn.Elman(4, 5)
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            parameter.copy_(getattr(core, name))
    found = penalties.gradient_norm(core, xs, lambda h: h.square().sum())
    torch.testing.assert_close(found, penalties.gradient_norm(plain, xs, lambda h: h.square().sum()))
    found.backward()
    assert core.parametrizations.weight_hh_l0.original.grad.any()
