"""Output layers: beside those that recipes build, in values, gradients and initial weights, by one protocol."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import weight_norm
from torch.utils._python_dispatch import TorchDispatchMode

from elman import config
from elman import nn as enn
from elman.config.parts import convert
from elman.errors import UserError
from elman.network.build import build_model

V, P, D, T, B = 23, 5, 6, 4, 3
SIZES = (D + 1, D + 2, D)
COUNTS = list(range(2 * V, V, -1))
MIXED = {"kind": "mixture", "heads": {2: 4}, "size": D}


def mos(weight=None, **keys):
    return enn.MixtureOfSoftmaxes(D, V, 4, D, weight=weight, **keys)


def doc(weight=None, **keys):
    return enn.DirectOutputConnection(SIZES, V, {0: 2, 2: 3}, D, weight=weight, **keys)


TIED = {
    "softmax": (lambda w: enn.Softmax(D, V, weight=w), {"kind": "flat"}, {}),
    "shifted taylor": (
        lambda w: enn.Softmax(D, V, weight=w, activation="taylor", bias=False, shift=True),
        {"kind": "flat", "bias": False, "shift": True},
        {"activation": "taylor"},
    ),
    "sigsoftmax": (lambda w: enn.Sigsoftmax(D, V, weight=w), {"kind": "flat"}, {"activation": "sigsoftmax"}),
    "mos": (mos, {"kind": "flat"}, {"contexts": MIXED}),
    "moss": (
        lambda w: mos(w, activation="sigsoftmax", prior="same", linear=True),
        {"kind": "flat"},
        {"contexts": MIXED | {"prior": "same", "linear": True}, "activation": "sigsoftmax"},
    ),
    "doc": (doc, {"kind": "flat"}, {"contexts": MIXED | {"heads": {0: 2, 2: 3}}}),
    "adaptive": (
        lambda w: enn.AdaptiveSoftmax(D, V, [5, 11], weight=w, bias=True),
        {"kind": "adaptive", "cutoffs": [5, 11], "bias": True},
        {},
    ),
    "hierarchical": (lambda w: enn.HierarchicalSoftmax(D, V, 4, weight=w), {"kind": "tree", "clusters": 4}, {}),
    "monotone": (lambda w: enn.MonotoneSoftmax(D, V, pieces=50, weight=w), {"kind": "monotone", "pieces": 50}, {}),
    "mixtape": (
        lambda w: enn.Mixtape(D, V, 4, frequent=9, gate_size=3, weight=w),
        {"kind": "mixtape", "components": 4, "frequent": 9, "gate_size": 3},
        {},
    ),
}
"""Outputs of symbols that can share a matrix, with the choice and the other keys of a recipe."""

SYMBOLS = TIED | {
    "rare class": (
        lambda w: enn.RareClassSoftmax(D, COUNTS, V + 9),
        {"kind": "rare-class", "threshold": V + 9},
        {},
    ),
    "mixture of adaptive": (
        lambda w: enn.Mixture(D, enn.AdaptiveSoftmax(D, V, [5, 11], weight=w), 4),
        {"kind": "adaptive", "cutoffs": [5, 11]},
        {"contexts": MIXED},
    ),
}
SYMBOLS["connection of adaptive"] = (
    lambda w: enn.Mixture(SIZES, enn.AdaptiveSoftmax(D, V, [5, 11], weight=w), {0: 2, 2: 3}, prior="same"),
    {"kind": "adaptive", "cutoffs": [5, 11]},
    {"contexts": MIXED | {"heads": {0: 2, 2: 3}, "prior": "same"}},
)
NOTES = {
    "bernoulli": (lambda w: enn.Bernoulli(D, P), {"kind": "bernoulli"}, {}),
    "nade": (lambda w: enn.NADE(D, P, 4), {"kind": "nade", "size": 4}, {}),
    "mixture of nade": (
        lambda w: enn.Mixture(D, enn.NADE(D, P, 4), 4),
        {"kind": "nade", "size": 4},
        {"contexts": MIXED},
    ),
}
VALUES = {
    "gaussian": (lambda w: enn.Gaussian(D, P), {"kind": "gaussian"}, {}),
    "unit gaussian": (
        lambda w: enn.Gaussian(D, P, variance="unit"),
        {"kind": "gaussian", "variance": "unit"},
        {},
    ),
    "gaussian mixture": (
        lambda w: enn.GaussianMixture(D, P, 3),
        {"kind": "gaussian-mixture", "components": 3},
        {},
    ),
}
BY_RECIPE = SYMBOLS | NOTES | VALUES
PEN = {"pen mixture": (lambda w: enn.PenMixture(D, 3, floor=0.1),)}
"""Outputs that no recipe has."""

EVERY = BY_RECIPE | PEN
NOT_FUSED = {"monotone", "mixtape", *NOTES, *VALUES, *PEN}
WEIGHT = torch.tensor([[0.5, 0, 2], [1, 0, 0.1], [3, 1, 1], [0, 0, 0]], dtype=torch.float64)


def made(name, *, tied=False, dtype=torch.float64):
    """An output with random weights, its levels and its targets."""
    torch.manual_seed(3)
    output = EVERY[name][0](enn.Embedding(V, D).weight if tied else None).to(dtype)
    with torch.no_grad():
        for parameter in output.parameters():
            parameter.normal_()
    levels = [torch.randn(T, B, width, dtype=dtype, requires_grad=True) for width in SIZES]
    return output, levels, targets(name, (T, B))


def targets(name, shape):
    """Random targets."""
    if name in SYMBOLS:
        return torch.randint(V, shape)
    if name in PEN:
        return torch.cat([torch.randn(*shape, 2), torch.randint(2, (*shape, 1))], -1).double()
    return torch.randint(2, (*shape, P)) if name in NOTES else torch.randn(*shape, P, dtype=torch.float64)


def of_recipe(name, **others):
    """The model of a recipe with this output."""
    kind = "lookup" if name in SYMBOLS else "frames" if name in NOTES else "values"
    record = {
        "encoder": {"kind": kind, "size": SIZES[0]},
        "core": {"kind": "stack", "sizes": SIZES[1:]},
        "output": {"choice": EVERY[name][1]} | EVERY[name][2],
    }
    return build_model(convert(record | others, config.Model), V if name in SYMBOLS else P, COUNTS)


@pytest.mark.parametrize("name", BY_RECIPE)
def test_values_are_those_of_a_recipe(name):
    """Bit for bit, for the same parameters, which have plain names; also after a step of training."""
    model = of_recipe(name).double()
    known = enn.Output(model.output, V if name in SYMBOLS else P)
    ours = EVERY[name][0](None).double()
    ours.load_state_dict(known.state_dict())
    assert [*known.state_dict()] == [*ours.state_dict()]
    assert not any("choice" in one or "contexts" in one for one in ours.state_dict())
    inputs, target = targets(name, (T, B)), targets(name, (T, B))
    trace, _ = model.trace(inputs, model.begin(B))
    total, each = model.output.nll(model.output.contexts(trace), target, WEIGHT)
    torch.testing.assert_close(ours.nll(trace, target, "sum", WEIGHT), total, rtol=0, atol=0)
    torch.testing.assert_close(ours.nll(trace, target, "none").detach(), each, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours.log_prob(trace, target), model.output.log_prob(trace, target))
    with torch.no_grad():
        torch.testing.assert_close(ours.log_prob(trace, target), model.output.log_prob(trace, target), rtol=0, atol=0)
    if name in SYMBOLS:
        torch.testing.assert_close(ours.log_probs(trace), model.output.log_probs(trace), rtol=0, atol=0)
    generator, again = (torch.Generator().manual_seed(5) for _ in range(2))
    if name not in SYMBOLS:
        drawn = model.output.sample(trace, 0.7, generator)
        torch.testing.assert_close(ours.sample(trace, 0.7, again), drawn, rtol=0, atol=0)
    known.nll(trace, target).backward()
    with torch.no_grad():
        for parameter in known.parameters():
            parameter -= 0.1 * parameter.grad
    changed = model.output.nll(model.output.contexts(trace), target, WEIGHT)[0]
    torch.testing.assert_close(known.nll(trace, target, "sum", WEIGHT), changed, rtol=0, atol=0)
    assert changed != total, "the arrays are those of the model"


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_by_hand_begins_as_that_of_a_recipe(tied):
    """Bit for bit, with the same seed and rules."""
    rules = config.Initialisation(embedding=config.Normal(std=0.2), output=config.Uniform(bound=0.3))
    encoder = {"kind": "lookup", "size": D}
    output = {"choice": {"kind": "flat", "tied": tied}}
    torch.manual_seed(11)
    model = of_recipe("softmax", encoder=encoder, output=output, initialisation=rules)
    torch.manual_seed(11)
    embedding = enn.Embedding(V, D, initialisation=rules)
    core = enn.LSTM(D, SIZES[1:], initialisation=rules)
    ours = enn.Softmax(D, V, weight=embedding.weight if tied else None, initialisation=rules)
    assert torch.equal(embedding.weight, model.encoder.weight)
    for number, layer in enumerate(model.core.layers):
        for one, array in layer.state_dict().items():
            assert torch.equal(core.get_parameter(f"{one}_l{number}"), array)
    known = enn.Output(model.output, V).state_dict()
    assert all(torch.equal(array, known[one]) for one, array in ours.state_dict().items())
    inputs, target = targets("softmax", (T, B)), targets("softmax", (T, B))
    trace, _ = core(embedding(inputs), levels=True)
    log_prob, _ = model.log_prob(inputs, target, model.begin(B))
    torch.testing.assert_close(ours.log_prob(trace, target), log_prob)


def test_arrays_begin_by_rules():
    torch.manual_seed(0)
    usual = enn.MixtureOfSoftmaxes(64, 500, 4, 64)
    assert usual.weight.abs().max() <= 0.1
    assert usual.weight.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.05)
    assert usual.latent.weight.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.05)
    assert not usual.bias.any()
    counts = torch.arange(500, 0, -1)
    rules = config.Initialisation(output_bias="unigram")
    known = enn.Sigsoftmax(64, 500, counts=counts.tolist(), initialisation=rules)
    frequencies = (counts + 1) / (counts + 1).sum()
    torch.testing.assert_close(known.log_probs(torch.zeros(64)).exp(), frequencies)
    with pytest.raises(ValueError, match='"unigram" is for symbols'):
        enn.Gaussian(D, P, initialisation=rules)
    rules = config.Initialisation(contexts=config.Orthogonal(), contexts_bias=config.Zeros())
    other = enn.MixtureOfSoftmaxes(64, 50, 1, 64, initialisation=rules)
    torch.testing.assert_close(other.latent.weight @ other.latent.weight.t(), torch.eye(64), rtol=0, atol=1e-5)
    assert not other.latent.bias.any()


@pytest.mark.parametrize("name", EVERY)
def test_gradients_of_every_reduction(name):
    """The fused form's are those of the plain form, and by differences of float64."""
    output, levels, target = made(name)
    parameters = [*output.parameters()]

    def loss(reduction, weight):
        found = output.nll(levels, target, reduction, weight)
        return found.sum() if reduction == "none" else found

    def results(fused):
        if name not in NOT_FUSED:
            output.fused = fused
        found = []
        for reduction in ("mean", "sum", "none"):
            for weight in (None, WEIGHT, WEIGHT > 0):
                value = loss(reduction, weight)
                gradients = torch.autograd.grad(3 * value, [*levels, *parameters], materialize_grads=True)
                found += [value.detach(), *gradients]
        return found

    assert output.fused == (name not in NOT_FUSED)
    fused, plain = results(True), results(False)
    for one, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)
    each = output.nll(levels, target, "none").detach()
    torch.testing.assert_close(loss("mean", WEIGHT).detach(), (WEIGHT * each).sum() / WEIGHT.sum())
    torch.testing.assert_close(loss("mean", None).detach(), each.mean())
    torch.testing.assert_close(loss("mean", WEIGHT > 0).detach(), each[WEIGHT > 0].mean())
    torch.testing.assert_close(output.nll(levels, target, "none", WEIGHT).detach(), WEIGHT * each)


@pytest.mark.parametrize("name", EVERY)
def test_gradients_are_differences(name):
    output, levels, target = made(name)
    if name not in NOT_FUSED:
        output.fused = True
    inputs = [*levels, *output.parameters(), WEIGHT.clone().requires_grad_()]

    def mean(*_):
        return output.nll(levels, target)

    def weighed(*inputs):
        return output.nll(levels, target, "sum", inputs[-1])

    assert torch.autograd.gradcheck(mean, inputs, fast_mode=True)
    assert torch.autograd.gradcheck(weighed, inputs, fast_mode=True)


@pytest.mark.parametrize("name", ["softmax", "mos", "adaptive"])
def test_the_plain_form_has_second_derivatives(name):
    output, levels, target = made(name)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(output.nll(levels, target), levels, create_graph=True, materialize_grads=True)
    output.fused = False
    (first,) = torch.autograd.grad(output.nll(levels[-1], target), levels[-1:], create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), levels[-1:])
    assert second.abs().sum() > 0


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that is made."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else (found,):
            self.numel = max(self.numel, one.numel() if isinstance(one, torch.Tensor) else 0)
        return found


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_fused_form_never_has_all_scores(reduction):
    output, positions, words = enn.MixtureOfSoftmaxes(8, 5000, 8, 8), 256, 5000
    h, target = torch.randn(positions, 8), torch.randint(words, (positions,))
    sizes = {}
    for output.fused in (True, False):
        with Largest() as largest:
            output.nll(h, target, reduction).sum().backward()
            sizes[output.fused] = largest.numel
    assert sizes[True] < positions * 8 * words / 3
    assert sizes[False] == positions * 8 * words


@pytest.mark.parametrize("name", TIED)
def test_a_shared_matrix_stays_shared(name):
    """After training, moves to another type, copies and loading; its gradient is the sum of both uses."""
    embedding = enn.Embedding(V, D)
    model = nn.ModuleDict({"encoder": embedding, "output": TIED[name][0](embedding.weight)})
    array = "tied" if name == "adaptive" else "weight"
    assert model["output"].get_parameter(array) is embedding.weight
    for changed in (model, copy.deepcopy(model), model.double()):
        changed.load_state_dict(changed.state_dict())
        assert changed["output"].get_parameter(array) is changed["encoder"].weight
        dtype = changed["encoder"].weight.dtype
        levels = [torch.randn(T, B, width, dtype=dtype) for width in SIZES[:2]]
        levels.append(changed["encoder"](torch.randint(V, (T, B))))
        changed["output"].nll(levels, torch.randint(V, (T, B))).backward()
        assert changed["encoder"].weight.grad.abs().sum() > 0
        before = changed["output"].log_probs(levels)
        with torch.no_grad():
            changed["encoder"].weight.mul_(2)
        assert not torch.equal(changed["output"].log_probs(levels), before)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("shape", [(), (5,), (3, 2), (2, 1, 3, 2), (0, 2)])
def test_any_leading_shape(name, shape):
    """Positions are independent of each other: those of a shape are those of a row."""
    output, _, _ = made(name)
    levels = [torch.randn(*shape, width, dtype=torch.float64) for width in SIZES]
    target = targets(name, shape)
    rows = [level.reshape(-1, 1, level.shape[-1]) for level in levels]
    event = target.shape[len(shape) :]
    expected = output.nll(rows, target.reshape(-1, 1, *event), "none")
    for output.batch_first in (False, True):
        found = output.nll(levels, target, "none")
        assert found.shape == shape
        torch.testing.assert_close(found.flatten(), expected.flatten())
        torch.testing.assert_close(output.log_prob(levels, target), -found)
        drawn = output.sample(levels, generator=torch.Generator().manual_seed(0))
        assert drawn.shape == (*shape, *event)
        if name in SYMBOLS:
            log_probs = output.log_probs(levels)
            torch.testing.assert_close(log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1), -found)
            torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(shape).double())
        if name not in ("doc", "connection of adaptive"):
            torch.testing.assert_close(output.nll(levels[-1], target, "none"), found)
        if len(shape) == 2:
            torch.testing.assert_close(output.nll(enn.Trace(tuple(levels), ()), target, "none"), found)


@pytest.mark.parametrize("name", EVERY)
def test_draws_follow_the_distribution(name):
    output, levels, _ = made(name)
    generator, number = torch.Generator().manual_seed(1), 4000
    one = [level[0, 0].detach() * 0.3 for level in levels]
    drawn = output.sample([level.expand(number, -1) for level in one], generator=generator)
    again = output.sample([level.expand(number, -1) for level in one], generator=generator.manual_seed(1))
    assert torch.equal(drawn, again)
    if name in SYMBOLS:
        assert drawn.dtype == torch.int64
        for temperature in (1.0, 0.5):
            p = (output.log_probs(one) / temperature).softmax(-1)
            rows = [level.expand(number, -1) for level in one]
            counts = output.sample(rows, temperature, generator).bincount(minlength=V)
            deviations = (counts - number * p) / (number * p * (1 - p)).sqrt().clamp(min=1)
            assert deviations.abs().max() < 4.5
        assert torch.equal(output.sample(one, 0), output.log_probs(one).argmax(-1))
    elif name in NOTES:
        frames = torch.cartesian_prod(*[torch.arange(2)] * P)
        p = output.log_prob([level.expand(len(frames), -1) for level in one], frames).exp()
        assert p.sum().item() == pytest.approx(1)
        counts = (drawn.long() @ (2 ** torch.arange(P).flip(0))).bincount(minlength=2**P)
        deviations = (counts - number * p) / (number * p * (1 - p)).sqrt().clamp(min=1)
        assert deviations.abs().max() < 4.5
    else:
        mean = output.choice.mean(one[-1])
        assert ((drawn.mean(0) - mean) / (drawn.std(0) / number**0.5)).abs().max() < 4.5


def test_masks_of_contexts_are_held_over_time():
    """The first axis, or the second of a batch first; in evaluation there are none."""
    for batch_first in (False, True):
        output = mos(dropout=0.5, batch_first=batch_first)
        with torch.no_grad():
            output.weight.normal_()
        rows = output.log_probs(torch.ones(6, 5, D))
        rows = rows.transpose(0, 1) if batch_first else rows
        torch.testing.assert_close(rows, rows[:1].expand_as(rows))
        assert not torch.allclose(rows[:, 0], rows[:, 1])
        output.eval()
        assert torch.equal(*[output.log_probs(torch.ones(6, 5, D)) for _ in range(2)])
        assert not output.choice.training
        copied = copy.deepcopy(output).train()
        assert not torch.allclose(*[copied.log_probs(torch.ones(6, 5, D)) for _ in range(2)])
        assert torch.equal(*[output.log_probs(torch.ones(6, 5, D)) for _ in range(2)])


@pytest.mark.parametrize("name", EVERY)
def test_copies_functional_calls_and_saved_arrays(name, tmp_path):
    output, levels, target = made(name)
    twin = copy.deepcopy(output)
    torch.save(output.state_dict(), tmp_path / "arrays.pt")
    other = EVERY[name][0](None).double()
    other.load_state_dict(torch.load(tmp_path / "arrays.pt", weights_only=True))
    assigned = EVERY[name][0](None).double()
    assigned.load_state_dict(output.state_dict(), assign=True)
    expected = output.nll(levels, target)
    for one in (twin, other, assigned):
        assert torch.equal(one.nll(levels, target), expected)
    changed = {key: value * 1.5 for key, value in output.named_parameters()}
    with torch.no_grad():
        for key, value in twin.named_parameters():
            value.copy_(changed[key])
    assert torch.equal(output.nll(levels, target), expected), "a copy has arrays of its own"
    arrays = {f"inner.{key}": value for key, value in changed.items()}
    for reduction in ("mean", "none"):
        found = torch.func.functional_call(Loss(output, reduction), arrays, (levels, target))
        torch.testing.assert_close(found, Loss(twin, reduction)(levels, target))
        ours = torch.autograd.grad(found, [*changed.values()], materialize_grads=True)
        theirs = torch.autograd.grad(
            Loss(twin, reduction)(levels, target), [*twin.parameters()], materialize_grads=True
        )
        torch.testing.assert_close(ours, theirs)
    assert torch.equal(output.nll(levels, target), expected)


class Loss(nn.Module):
    def __init__(self, inner, reduction="mean"):
        super().__init__()
        self.inner, self.reduction = inner, reduction

    def forward(self, levels, target):
        return self.inner.nll(levels, target, self.reduction).sum()


def test_transforms_of_functions():
    """`torch.func.grad` of the plain form, for every position by `vmap`."""
    output, levels, _ = made("mos")
    output.fused = False
    arrays = {key: value.detach() for key, value in output.named_parameters()}

    def loss(arrays, h):
        return torch.func.functional_call(output, arrays, (h,)).square().sum()

    h = levels[-1].detach()
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(arrays, h)
    for t in range(T):
        alone = torch.func.grad(loss)(arrays, h[t])
        torch.testing.assert_close({key: value[t] for key, value in each.items()}, alone)


@pytest.mark.parametrize("name", EVERY)
def test_autocast_changes_nothing(name):
    output, levels, target = made(name, dtype=torch.float32)
    target = target.float() if name in VALUES | PEN else target
    expected = output.nll(levels, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = output.nll(levels, target)
        assert torch.equal(output.nll([level.bfloat16() for level in levels], target).isfinite(), torch.tensor(True))
        if name in SYMBOLS:
            assert output.log_probs(levels).dtype == torch.float32
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["softmax", "doc", "adaptive", "hierarchical", "monotone", "mixtape"])
def test_log_probs_are_compiled_without_a_break_and_exported(name):
    output, levels, _ = made(name, dtype=torch.float32)
    levels = [level.detach() for level in levels]
    whole = output.eval()
    torch.compiler.reset()
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            found = torch.compile(whole, fullgraph=True, backend="eager")(levels)
            torch.testing.assert_close(found, output.log_probs(levels))
    axes = [{0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}] * 3
    program = torch.export.export(whole, (levels,), dynamic_shapes={"h": axes})
    other = [torch.randn(2, 5, width) for width in SIZES]
    torch.testing.assert_close(program.module()(other), output.log_probs(other))


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, False])
def test_the_loss_under_torch_compile(fused):
    """The plain form is one graph."""
    output, levels, target = made("doc", dtype=torch.float32)
    output.fused = fused
    torch.compiler.reset()
    found = torch.compile(Loss(output), fullgraph=not fused, backend="eager")(levels, target)
    expected = output.nll(levels, target)
    torch.testing.assert_close(found, expected)
    parameters = [*output.parameters()]
    torch.testing.assert_close(torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters))


@pytest.mark.parametrize("name", ["softmax", "mos", "adaptive"])
def test_arrays_that_torch_parametrises_are_read(name):
    output, levels, target = made(name)
    array = "head" if name == "adaptive" else "weight"
    known = copy.deepcopy(output)
    weight_norm(output, array)
    with torch.no_grad():
        output.parametrizations[array].original0.mul_(0.5)
        known.get_parameter(array).mul_(0.5)
    for reduction in ("mean", "none"):
        loss = output.nll(levels, target, reduction).sum()
        torch.testing.assert_close(loss, known.nll(levels, target, reduction).sum())
        loss.backward()
        assert output.parametrizations[array].original0.grad.abs().sum() > 0
    torch.testing.assert_close(output.log_probs(levels), known.log_probs(levels))
    copy.deepcopy(output)


def test_wrong_calls_are_one_line():
    output, levels, target = made("mos")
    for wrong in (target - V, target + V, torch.full_like(target, -100)):
        with pytest.raises(ValueError, match="every target is a symbol from 0 to 22; leave positions out by weight"):
            output.nll(levels, wrong)
    with pytest.raises(ValueError, match=r"targets have shape \[12\], and \[4, 3\] is predicted"):
        output.log_prob(levels, target.flatten())
    with pytest.raises(ValueError, match=r"targets are symbols, of type torch\.int64"):
        output.nll(levels, target.double())
    with pytest.raises(ValueError, match=r"level 0 has shape \[4, 3, 7\], but \[4, 3, 6\] is read"):
        output.nll(levels[0], target)
    with pytest.raises(ValueError, match='choose "mean", "sum" or "none"'):
        output.nll(levels, target, "average")
    with pytest.raises(ValueError, match=r"weight has shape \[4\], and the positions \[4, 3\]"):
        output.nll(levels, target, weight=WEIGHT[:, 0])
    with pytest.raises(ValueError, match="imaginary parts"):
        output.nll([level * 1j for level in levels], target)
    with pytest.raises(ValueError, match="temperature is -1"):
        output.sample(levels, -1)
    with pytest.raises(ValueError, match="level 2 of a core is read, and 1 are given"):
        made("doc")[0].nll(levels[-1], target)
    for name in ("nade", "gaussian"):
        vectors, levels, frames = made(name)
        with pytest.raises(TypeError, match="predicts vectors, which cannot be listed"):
            vectors.log_probs(levels)
        with pytest.raises(ValueError, match=r"targets have shape \[4, 3, 1\], and \[4, 3, 5\] is predicted"):
            vectors.nll(levels, frames[..., :1])
    with pytest.raises(ValueError, match="every target is 0 or 1"):
        made("bernoulli")[0].nll(levels, torch.full((T, B, P), 2))
    with pytest.raises(ValueError, match="Gaussian has no fused form"):
        vectors.fused = True


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: enn.Softmax(D, V, activation="softmin"), "flat: Invalid value 'softmin'"),
        (lambda: enn.Softmax(D, V, weight=enn.Embedding(V, D + 1).weight), r"weight has shape \[23, 7\]"),
        (lambda: mos(dropout=1.5), "Expected `float` < 1.0"),
        (lambda: enn.MixtureOfSoftmaxes(D, V, 0), "Expected `int` >= 1"),
        (lambda: enn.DirectOutputConnection(SIZES, V, {3: 2}), "names level 3; the levels of sizes are 0 to 2"),
        (lambda: enn.DirectOutputConnection(SIZES, V, {}), "components is empty"),
        (lambda: enn.Mixtape(D, V, 3), "mixtape: Invalid enum value 3"),
        (lambda: enn.RareClassSoftmax(D, [1, 2], 1), "counts do not fall"),
        (lambda: enn.AdaptiveSoftmax(D, V, [5, 5]), "cut-offs must rise"),
        (lambda: enn.AdaptiveSoftmax(D, V, weight=enn.Embedding(V, D).weight, div_value=4.0), "div_value"),
        (lambda: enn.HierarchicalSoftmax(D, V, 1), "Expected `int` >= 2"),
        (lambda: enn.NADE(D, P, 0), "Expected `int` >= 1"),
        (lambda: enn.Embedding(V, 0), "Expected `int` >= 1"),
        (lambda: enn.Embedding(V, D, word_dropout=1.0), "Expected `float` < 1.0"),
        (lambda: enn.Characters(["a"], widths=(1, 2), filters=(3,)), "2 widths and 1 filters"),
        (lambda: enn.Softmax(D, V, counts=[2, 1]), "counts has 2 numbers, and there are 23 symbols"),
        (lambda: enn.Mixture(D, mos(), 2), "MixtureOfSoftmaxes is a mixture itself"),
    ],
)
def test_wrong_arguments_are_one_line(make, line):
    with pytest.raises((ValueError, UserError), match=line) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_contexts_of_a_mixtape_are_as_wide_as_the_shared_matrix():
    weight = enn.Embedding(V, D + 2).weight
    for output in (enn.Mixtape(D, V, weight=weight), enn.Mixtape(D, V, 4, D + 2, weight=weight)):
        assert output.weight is weight
        torch.testing.assert_close(output.log_probs(torch.randn(3, D)).exp().sum(-1), torch.ones(3))
    with pytest.raises(ValueError, match=r"contexts of width 5 need \[23, 5\]"):
        enn.Mixtape(D, V, 4, 5, weight=weight)


def test_devices_and_types():
    assert enn.MixtureOfSoftmaxes(D, V, 2, D, dtype=torch.float64).prior.weight.dtype == torch.float64
    weight = enn.Embedding(V, D, dtype=torch.float64).weight
    tied = mos(weight)
    assert {one.dtype for one in tied.parameters()} == {torch.float64}
    assert enn.Softmax(D, V, device="meta").weight.is_meta
    assert tied.weight is weight
    assert mos(dropout=np.float64(0.25)).layer.contexts.rate == 0.25


@pytest.mark.parametrize("name", EVERY)
def test_no_positions_have_no_mean(name):
    """As in torch; parameters have gradients of zeros."""
    output, levels, target = made(name)
    loss = output.nll([level[:0] for level in levels], target[:0])
    assert loss.isnan()
    loss.backward()
    assert all(not one.grad.any() for one in output.parameters() if one.grad is not None)
    assert output.nll([level[:0] for level in levels], target[:0], "sum") == 0


@pytest.mark.parametrize("name", ["softmax", "monotone", "adaptive", "hierarchical"])
def test_the_mean_of_many_positions_in_16_bits(name):
    """More than the greatest number of 16 bits, 65504."""
    output = EVERY[name][0](None)
    h, target = torch.randn(70_000, D).half(), torch.randint(V, (70_000,))
    known = output.nll([h] * 3, target)
    narrow = copy.deepcopy(output).half()
    found = narrow.nll([h] * 3, target)
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.float(), known, rtol=2e-3, atol=0)
    found.backward()
    gradients = [next(one.parameters()) for one in (narrow, output)]
    known.backward()
    torch.testing.assert_close(gradients[0].grad.float(), gradients[1].grad, rtol=0.1, atol=1e-4)


@pytest.mark.parametrize("name", ["softmax", "mos", "mixtape", "bernoulli", "gaussian"])
def test_shapes_alone_on_the_device_meta(name):
    output, levels, target = made(name)
    levels = [level.to("meta") for level in levels]
    assert output.to("meta").nll(levels, target.to("meta"), "none").shape == (T, B)
    if name in SYMBOLS:
        assert output.log_probs(levels).shape == (T, B, V)


@pytest.mark.parametrize("name", ["nade", "mixture of nade"])
def test_notes_one_after_another_for_each_sequence_by_vmap(name):
    output, levels, target = made(name)

    def loss(h, one):
        return output.nll([level.unsqueeze(1) for level in h], one.unsqueeze(1), "sum")

    levels = [level.detach() for level in levels]
    found = torch.func.vmap(torch.func.grad(loss), in_dims=1, out_dims=1)(levels, target)
    known = [level.requires_grad_() for level in levels]
    output.nll(known, target, "sum").backward()
    torch.testing.assert_close(found[-1], known[-1].grad)


def test_parts_that_are_replaced_or_parametrised_are_read():
    """As tools replace linear layers, in `_modules`; the matrices of a mixture as torch parametrises them."""
    h, target = torch.randn(4, D), torch.randn(4, P)
    output, other = enn.Gaussian(D, P), nn.Linear(D, P)
    output._modules["readout"] = other
    known = enn.Gaussian(D, P)
    known.load_state_dict(output.state_dict())
    torch.testing.assert_close(output.nll(h, target), known.nll(h, target))
    output.nll(h, target).backward()
    assert other.weight.grad.any()
    assert copy.deepcopy(output).nll(h, target) == output.nll(h, target)
    for name in ("mos", "doc"):
        output, levels, _ = made(name)
        before = output.log_probs(levels)
        part = output.latent if name == "mos" else output.latent["2"]
        weight_norm(part, "weight")
        torch.testing.assert_close(output.log_probs(levels), before)
        with torch.no_grad():
            part.parametrizations.weight.original0.mul_(2)
        assert not torch.equal(output.log_probs(levels), before)
    output.prior = nn.Linear(D, 5, bias=False)
    with pytest.raises(ValueError, match="latent or prior was replaced"):
        output.log_probs(levels)


def test_arrays_that_hooks_of_forward_compute_are_refused():
    """They would be those of the last call of `forward`, which the other methods do not make."""
    output = enn.Softmax(D, V)
    prune.l1_unstructured(output, "weight", amount=0.5)
    assert "Softmax" in repr(output)
    with pytest.raises(ValueError, match="weight is computed by a hook of forward"):
        output.nll(torch.randn(3, D), torch.zeros(3, dtype=torch.long))
    prune.remove(output, "weight")
    assert (output.weight == 0).float().mean().item() == pytest.approx(0.5, abs=0.01)
    output.nll(torch.randn(3, D), torch.zeros(3, dtype=torch.long)).backward()


def test_the_mode_as_an_attribute():
    h, target, ids = torch.ones(3, 2, D), torch.zeros(3, 2, dtype=torch.long), torch.zeros(3, 2, dtype=torch.long)
    output, encoder = mos(dropout=0.5), enn.Embedding(V, 64, dropout=0.5)
    for mode in (False, True):
        output.training = encoder.training = mode
        assert torch.equal(output.nll(h, target), output.nll(h, target)) is not mode
        assert torch.equal(encoder(ids), encoder(ids)) is not mode
