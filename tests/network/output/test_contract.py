"""The contract of an output layer, over pairs of contexts, activations, tying and offsets, fast and plain."""

from itertools import product

import numpy as np
import pytest
import torch

from reference import outputs as reference
from support import networks
from support.pairwise import every_pair
from support.parameters import OUTPUT_FUNCTIONS

STEPS, ROWS, WORDS = 3, 2, 7


combinations = every_pair(
    contexts=networks.CONTEXTS, activation=OUTPUT_FUNCTIONS, tied=(False, True), offset=networks.OFFSETS
)


def given(contexts, activation, tied, offset):
    """A model, its trace of random symbols, and targets."""
    model = networks.model(contexts, activation, WORDS, offset=offset, tied=tied)
    trace, _ = model.trace(torch.randint(WORDS, (STEPS, ROWS)), model.begin(ROWS))
    return model, trace, torch.randint(WORDS, (STEPS, ROWS))


@combinations
def test_sums_to_one_and_log_prob_is_the_gathered_log_probs(contexts, activation, tied, offset):
    model, trace, target = given(contexts, activation, tied, offset)
    log_probs = model.output.log_probs(trace)
    assert log_probs.shape == (STEPS, ROWS, WORDS)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(STEPS, ROWS).double())
    gathered = log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    for fast, gradients in product((True, False), repeat=2):
        model.output.choice.fast = fast
        with torch.set_grad_enabled(gradients):
            torch.testing.assert_close(model.output.log_prob(trace, target), gathered)
            _, nll = model.output.nll(model.output.contexts(trace), target, torch.ones(STEPS, ROWS).double())
            torch.testing.assert_close(nll, -gathered)


@combinations
def test_fast_outputs_are_the_plain_ones(contexts, activation, tied, offset):
    """The value and the gradient of every parameter; positions weigh differently, some of them nothing."""
    model, _, target = given(contexts, activation, tied, offset)
    inputs, weight = torch.randint(WORDS, (STEPS, ROWS)), torch.tensor([[0.5, 0], [2, 1], [0, 0.1]]).double()

    def results(fast):
        model.output.choice.fast = fast
        trace, _ = model.trace(inputs, model.begin(ROWS))
        total, each = model.output.nll(model.output.contexts(trace), target, weight)
        assert not each.requires_grad
        gradients = torch.autograd.grad(3 * total, list(model.parameters()), materialize_grads=True)
        return [total, each, *gradients]

    for fast, plain in zip(results(True), results(False), strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-8, atol=1e-10)


@combinations
def test_every_output_is_the_papers_distribution(contexts, activation, tied, offset):
    """Position by position and component by component, in NumPy."""
    model, trace, _ = given(contexts, activation, tied, offset)
    values = {name: parameter.detach().numpy() for name, parameter in model.output.named_parameters()}
    W = model.encoder.weight.detach().numpy() if tied else values["choice.weight"]
    b = np.zeros(WORDS) + values.get("choice.bias", 0) + values.get("choice.shift", 0)
    ours = model.output.log_probs(trace).exp().detach().numpy()
    for t, row in np.ndindex(STEPS, ROWS):
        levels = [level[t, row].detach().numpy() for level in trace.levels]
        prior, vectors = [1.0], [levels[-1]]
        if contexts != "single":
            prior, vectors = reference.components(values, networks.CONTEXTS[contexts].heads, levels)
        expected = reference.mixture(prior, vectors, W, b, activation)
        np.testing.assert_allclose(ours[t, row], expected, rtol=1e-9)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("offset", networks.OFFSETS)
def test_tying_shares_the_encoders_matrix(tied, offset):
    model = networks.model("doc", "softmax", WORDS, offset=offset, tied=tied)
    assert (model.output.choice.weight is model.encoder.weight) == tied
    names = {name.removeprefix("output.choice.") for name, _ in model.named_parameters() if "choice" in name}
    offsets = {name for name in ("bias", "shift") if networks.OFFSETS[offset].get(name)}
    assert names == offsets | (set() if tied else {"weight"})


@pytest.mark.slow
@every_pair(fast=(False, True), activation=OUTPUT_FUNCTIONS, contexts=networks.CONTEXTS)
def test_gradients_are_those_of_finite_differences(contexts, activation, fast):
    """With respect to every level of the trace and every parameter of the layer."""
    model, trace, target = given(contexts, activation, False, "bias+shift")
    model.output.choice.fast = fast
    levels = [level.detach().requires_grad_() for level in trace.levels]
    weight = torch.rand(STEPS, ROWS).double()
    inputs = [*(levels[2:] if contexts != "doc" else levels), *model.output.parameters()]

    trace = trace._replace(levels=tuple(levels))

    def total(*_):
        return model.output.nll(model.output.contexts(trace), target, weight)[0]

    def plain(*_):
        return model.output.log_prob(trace, target)

    assert torch.autograd.gradcheck(total, inputs, fast_mode=True)
    assert fast or torch.autograd.gradcheck(plain, inputs, fast_mode=True)


@every_pair(
    dtype=(torch.float32, torch.float64),
    fast=(False, True),
    activation=OUTPUT_FUNCTIONS,
    contexts=("single", "doc"),
    size=(1e2, 1e4),
)
def test_extreme_logits_stay_finite(contexts, activation, fast, dtype, size):
    model, trace, target = given(contexts, activation, False, "bias")
    output = model.output.to(dtype)
    output.choice.fast = fast
    with torch.no_grad():
        output.choice.weight.mul_(size)
    trace = trace._replace(levels=tuple(level.detach().to(dtype) for level in trace.levels))
    log_probs = output.log_probs(trace)
    gathered = log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    ones = torch.ones_like(gathered)
    assert torch.isfinite(log_probs).all()
    torch.testing.assert_close(log_probs.exp().sum(-1), ones, rtol=1e-4, atol=0)
    total, nll = output.nll(output.contexts(trace), target, ones)
    total.backward()
    torch.testing.assert_close(nll, -gathered, rtol=1e-4, atol=1e-3)
    assert all(torch.isfinite(parameter.grad).all() for parameter in output.parameters())
