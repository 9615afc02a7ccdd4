"""The objective: how it is reduced, and what a mask leaves out."""

import pytest
import torch

from elman import config
from elman.data.batches import Batch
from elman.learning.bptt import bptt
from elman.objective.criteria import Seen, Sum
from elman.objective.loss import Objective, build_objective
from elman.objective.penalties import Activation, Balance, TemporalActivation
from support import networks

STEPS, ROWS = 5, 6
PENALTIES = (Activation(weight=2.0), TemporalActivation(weight=1.0))


def window(masked=False):
    symbols = torch.randint(7, (STEPS + 1, ROWS))
    mask = torch.rand(STEPS, ROWS) < 0.6 if masked else None
    return Batch(symbols[:-1], symbols[1:], mask)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_is_reduced_as_asked(reduction, masked):
    """The mean over the counted positions, or the sum over the steps and mean over the columns."""
    model, batch = networks.model("doc", "sigsoftmax"), window(masked)
    loss, _ = Objective(PENALTIES, reduction)(model, batch, model.begin(ROWS))
    log_prob, _ = model.log_prob(batch.inputs, batch.targets, model.begin(ROWS))
    nll = -log_prob if batch.mask is None else -log_prob[batch.mask]
    torch.testing.assert_close(loss.nll_sum, nll.sum().detach())
    assert loss.num_counted == nll.numel()
    reduced = nll.mean() if reduction == "mean" else nll.sum() / ROWS
    torch.testing.assert_close(loss.objective, reduced + loss.penalty)
    assert not loss.nll_sum.requires_grad
    assert not loss.penalty.requires_grad


def test_penalties_add_and_are_not_in_the_reported_nll():
    model, batch = networks.model("mos"), window()
    trace, _ = model.trace(batch.inputs, model.begin(ROWS))
    contexts = model.output.contexts(trace)
    plain, _ = Objective()(model, batch, model.begin(ROWS))
    both = (*PENALTIES, Balance(weight=0.1))
    loss, _ = Objective(both)(model, batch, model.begin(ROWS))
    torch.testing.assert_close(
        loss.penalty, sum(penalise(Seen(model, trace, contexts, batch)) for penalise in both).detach()
    )
    torch.testing.assert_close(loss.nll_sum, plain.nll_sum)
    assert plain.penalty == 0


def test_the_recipe_names_the_penalties():
    recipe = config.Training(
        epochs=1,
        optimiser=config.SGD(lr=1.0),
        loss="sum",
        penalties=config.Penalties(ar=2.0, tar=1.0, balance=0.5, balance_form="minibatch"),
    )
    objective = build_objective(recipe)
    expected = (Activation(weight=2.0), TemporalActivation(weight=1.0), Balance(weight=0.5, form="minibatch"))
    assert objective.penalties == expected
    assert objective.criterion == Sum()
    assert build_objective(config.Training(epochs=1, optimiser=config.SGD(lr=1.0))).penalties == ()


def test_bptt_is_the_gradient_of_the_objective_and_adds_to_grad():
    model, batch = networks.model(), window()
    loss, _ = Objective(PENALTIES)(model, batch, model.begin(ROWS))
    expected = torch.autograd.grad(loss.objective, list(model.parameters()))
    for times in (1, 2):
        bptt(model, Objective(PENALTIES), batch, model.begin(ROWS))
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, times * gradient)
