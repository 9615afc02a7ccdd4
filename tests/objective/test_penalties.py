"""Penalties against loops in NumPy."""

import numpy as np
import pytest
import torch

from elman import config
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.update import build_update
from elman.network.build import build_model
from elman.network.cores.core import Trace
from elman.network.output.contexts import Contexts
from elman.objective.criteria import Seen
from elman.objective.penalties import Activation, Balance, NormStabiliser, TemporalActivation
from reference import penalties as reference

STEPS, ROWS = 5, 3
MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]]).bool()
"""Of columns that end early, and one with a gap, whose neighbours are no pair."""


def given(steps=STEPS, uniform=False):
    levels = tuple(torch.randn(steps, ROWS, width, dtype=torch.float64, requires_grad=True) for width in (2, 4))
    raw = tuple(torch.randn(steps, ROWS, width, dtype=torch.float64, requires_grad=True) for width in (2, 4))
    scores = torch.zeros(steps, ROWS, 6) if uniform else 2 * torch.randn(steps, ROWS, 6)
    prior = scores.double().requires_grad_().log_softmax(-1)
    return Trace(levels, raw), Contexts(torch.randn(steps, ROWS, 6, 4), prior)


def window(steps=STEPS, mask=None):
    symbols = torch.zeros(steps, ROWS, dtype=torch.long)
    return Batch(symbols, symbols, mask)


@pytest.mark.parametrize("mask", [None, MASK])
def test_activation_penalty_reads_the_dropped_top(mask):
    trace, contexts = given()
    expected = reference.activation(trace.levels[-1].detach().numpy(), 2.0, mask)
    np.testing.assert_allclose(Activation(weight=2.0)(Seen(None, trace, contexts, window(mask=mask))).item(), expected)


@pytest.mark.parametrize("mask", [None, MASK])
def test_temporal_penalty_reads_the_top_before_dropout(mask):
    trace, contexts = given()
    expected = reference.temporal_activation(trace.raw[-1].detach().numpy(), 1.5, mask)
    np.testing.assert_allclose(
        TemporalActivation(weight=1.5)(Seen(None, trace, contexts, window(mask=mask))).item(), expected
    )


@pytest.mark.parametrize("mask", [None, MASK])
def test_norm_stabiliser_reads_the_norms_of_the_top_before_dropout(mask):
    trace, contexts = given()
    expected = reference.norm_stabiliser(trace.raw[-1].detach().numpy(), 1.5, mask)
    penalty = NormStabiliser(weight=1.5)
    np.testing.assert_allclose(penalty(Seen(None, trace, contexts, window(mask=mask))).item(), expected)

    def of(raw):
        return penalty(Seen(None, Trace(trace.levels, (trace.raw[0], raw)), contexts, window(mask=mask)))

    assert torch.autograd.gradcheck(of, trace.raw[-1])
    (gradient,) = torch.autograd.grad(of(still := torch.zeros_like(trace.raw[-1], requires_grad=True)), still)
    assert (gradient == 0).all(), "of states of zeros, whose norms have no derivative"


@pytest.mark.parametrize("penalty", [TemporalActivation(weight=1.0), NormStabiliser(weight=1.0)])
def test_penalties_on_changes_cost_nothing_in_one_step(penalty):
    assert penalty(Seen(None, *given(steps=1), window(1))).item() == 0.0


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("form", ["columns", "minibatch"])
def test_balance_penalty_in_both_forms(form, mask):
    trace, contexts = given()
    prior = contexts.log_prior.exp().detach().numpy()
    expected = reference.balance_columns if form == "columns" else reference.balance_minibatch
    counts = None if mask is None else mask.numpy()
    found = Balance(weight=0.3, form=form)(Seen(None, trace, contexts, window(mask=mask)))
    np.testing.assert_allclose(found.item(), expected(prior, 0.3, counts))


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("form", ["columns", "minibatch"])
def test_equal_use_of_the_components_costs_nothing(form, mask):
    assert abs(Balance(weight=1.0, form=form)(Seen(None, *given(uniform=True), window(mask=mask))).item()) < 1e-15


@pytest.mark.parametrize("form", ["columns", "minibatch"])
def test_one_component_of_one_column_costs_nothing(form):
    trace, _ = given()
    contexts = Contexts(torch.zeros(5, 1, 1, 4), torch.zeros(5, 1, 1))
    assert Balance(weight=1.0, form=form)(Seen(None, trace, contexts, window().columns(slice(1)))).item() == 0.0


@pytest.mark.parametrize(
    "penalty",
    [
        Activation(weight=1.0),
        TemporalActivation(weight=1.0),
        NormStabiliser(weight=1.0),
        Balance(weight=1.0),
        Balance(weight=1.0, form="minibatch"),
    ],
)
def test_padding_costs_nothing_and_has_no_gradient(penalty):
    """Where no step counts at all, too."""
    trace, contexts = given()
    for mask in (MASK, torch.zeros_like(MASK)):
        found = penalty(Seen(None, trace, contexts, window(mask=mask)))
        read = (trace.top, trace.raw[-1], contexts.log_prior)
        gradients = torch.autograd.grad(found, read, allow_unused=True) if found.requires_grad else []
        assert all((gradient[~mask] == 0).all() for gradient in gradients if gradient is not None)
        assert mask.any() or found == 0


STACK = config.Stack(sizes=(4,))
SPELT = config.Characters(widths=(1,), filters=(3,))


@pytest.mark.parametrize(
    ("weights", "core", "encoder", "reason"),
    [
        ({"balance": 0.1}, STACK, None, "balance evens out the components of a mixture"),
        ({"stability": 0.1}, config.FeedForward(width=2, size=4), None, "stability needs layers in a chain"),
        ({"stability": 0.1, "stability_tier": 1}, config.Stack(sizes=(4,), cell=config.MLSTM()), None, "cell mlstm"),
        ({"stability": 0.1, "stability_tier": 2}, STACK, SPELT, "stability_tier = 2 needs"),
    ],
)
def test_penalties_that_are_not_for_a_network_are_refused_before_training(weights, core, encoder, reason):
    model = config.Model(encoder=encoder or config.Lookup(size=3), core=core)
    training = config.Training(epochs=1, optimiser=config.SGD(lr=1.0), penalties=config.Penalties(**weights))
    recipe = config.Recipe(title="", model=model, training=training)
    with pytest.raises(UserError, match=rf"training\.penalties\.{reason}" if "=" in reason else reason):
        build_update(recipe, build_model(model, 5))


@pytest.mark.parametrize("form", ["columns", "minibatch"])
def test_a_step_along_the_balance_gradient_evens_the_components(form):
    scores = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    trace, _ = given()

    def cost(scores):
        return Balance(weight=1.0, form=form)(Seen(None, trace, Contexts(scores, scores.log_softmax(-1)), window()))

    (gradient,) = torch.autograd.grad(cost(scores), scores)
    assert cost(scores - 0.01 * gradient) < cost(scores)
