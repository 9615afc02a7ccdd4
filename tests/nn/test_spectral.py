"""The bound on recurrent matrices: of elman's layers, torch's, and a recipe's."""

import numpy as np
import pytest
import torch

from elman import config
from elman import nn as enn
from elman.config.parts import convert
from elman.learning.constraint import build_constraint, recurrent_spectrum
from elman.nn.spectral import reflected, reflections_of
from reference import constraint as reference
from support.words import Words, pair


def svals(matrix):
    return torch.linalg.svdvals(matrix.detach())


@pytest.mark.parametrize("method", ["subspace", "eigh", "svd"])
@pytest.mark.parametrize("kind", [torch.nn.GRU, torch.nn.LSTM, enn.GRU, enn.LSTM])
def test_the_nearest_matrix_and_no_other(kind, method):
    """n of a GRU, g of an LSTM: rows 2H to 3H of both; its singular values are cut, its vectors stay."""
    core = kind(3, 5, num_layers=2, bidirectional=True, dtype=torch.float64)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.normal_(0, 1.5)
    before = {name: one.detach().clone() for name, one in core.named_parameters()}
    project = enn.SpectralBound(core, delta=0.5, method=method)
    project()
    for name, now in core.named_parameters():
        expected = before[name].clone()
        if name.startswith("weight_hh"):
            u, values, vh = torch.linalg.svd(expected[10:15])
            expected[10:15] = u @ values.clamp(max=1.5).diag() @ vh
            assert project.norms()[name] == pytest.approx(1.5, rel=1e-4)
            jacobian = now[10:15].detach() / 4 + torch.eye(5) / 2
            assert project.radii()[name] == pytest.approx(torch.linalg.eigvals(jacobian).abs().max().item())
            assert project.radii()[name] < 1
        torch.testing.assert_close(now, expected, rtol=1e-4, atol=1e-4)
    assert len(project.norms()) == 4


def test_a_training_with_it_is_that_of_a_recipe():
    """Steps of torch's own optimiser: the same weights as the constraint of a recipe gives, at every step."""
    known, made = pair("gru")
    record = {"kind": "spectral", "delta": 1.2, "input": True}
    training = {"constraint": record, "epochs": 1, "batch_size": 4, "optimiser": {"kind": "sgd", "lr": 3.0}}
    constraint = build_constraint(convert(training, config.Training), known.core)
    project = enn.SpectralBound(made, delta=1.2, inputs=True)
    optimisers = [torch.optim.SGD(one.parameters(), lr=3.0) for one in (known, made)]
    for _ in range(12):
        ids = torch.randint(11, (6, 4))
        log_prob, _ = known.log_prob(ids[:-1], ids[1:], known.begin(4))
        for optimiser, loss in zip(
            optimisers, (-log_prob.mean(), made.output.nll(made(ids[:-1])[0], ids[1:])), strict=True
        ):
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        constraint.project()
        project()
        spectrum = recurrent_spectrum(known.core)
        assert [*project.norms().values()] == pytest.approx(spectrum["sigma_1"])
        assert max(project.radii().values()) == pytest.approx(spectrum["spectral_radius"])
    assert spectrum["sigma_1"][0] == pytest.approx(0.8, rel=1e-4)
    for mine, theirs in zip(made.core.parameters(), known.core.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_inputs_are_bounded_where_asked():
    core = torch.nn.GRUCell(4, 3)
    with torch.no_grad():
        core.weight_ih.mul_(20)
    enn.SpectralBound(core)()
    assert svals(core.weight_ih[6:]).max() > 2.1
    enn.SpectralBound(core, inputs=True)()
    assert svals(core.weight_ih[6:]).max().item() == pytest.approx(2, rel=1e-4)


def test_an_elman_network_has_a_bound_of_its_own():
    core = torch.nn.RNN(3, 4, nonlinearity="relu")
    with torch.no_grad():
        core.weight_hh_l0.mul_(9)
    with pytest.raises(ValueError, match="give an Elman network `bound`"):
        enn.SpectralBound(core)
    project = enn.SpectralBound(core, bound=0.9)
    project()
    assert project.norms()["weight_hh_l0"] == pytest.approx(0.9, rel=1e-4)
    assert project.radii()["weight_hh_l0"] == pytest.approx(torch.linalg.eigvals(core.weight_hh_l0).abs().max().item())


def test_a_state_continues_to_the_bit():
    def run(model, project, steps):
        for number in steps:
            torch.manual_seed(number)
            with torch.no_grad():
                model.core.weight_hh_l0.add_(torch.randn_like(model.core.weight_hh_l0), alpha=0.2)
            project()

    def made():
        torch.manual_seed(0)
        model = Words(recurrence=enn.GRU)
        return model, enn.SpectralBound(model)

    (whole, project), (one, first), (two, second) = made(), made(), made()
    run(whole, project, range(8))
    run(one, first, range(4))
    two.load_state_dict(one.state_dict())
    second.load_state_dict(first.state_dict())
    run(two, second, range(4, 8))
    assert torch.equal(two.core.weight_hh_l0, whole.core.weight_hh_l0)


def test_what_has_no_bound_is_refused():
    for module, message in (
        (torch.nn.Linear(2, 2), "Linear has no recurrent matrix"),
        (enn.Highway(3, 4), "Highway: its recurrent matrix alone"),
        (torch.nn.LSTM(3, 4, proj_size=2), "cannot be bounded"),
        (torch.nn.utils.parametrizations.weight_norm(torch.nn.GRU(3, 4), "weight_hh_l0"), "cannot be bounded"),
    ):
        with pytest.raises(ValueError, match=message):
            enn.SpectralBound(module)
    with pytest.raises(ValueError, match=r"SpectralBound: .*`float` > 0.0.*delta"):
        enn.SpectralBound(enn.GRU(3, 4), delta=0)
    with pytest.raises(ValueError, match=r"SpectralBound: .*'power'"):
        enn.SpectralBound(enn.GRU(3, 4), method="power")


def dense(layer, size):
    """The matrix of a convolution without its bias, from images that are 1 at one place."""
    ones = torch.eye(layer.in_channels * np.prod(size), dtype=torch.float64)
    with torch.no_grad():
        found = layer(ones.view(-1, layer.in_channels, *size)) - layer(
            torch.zeros(1, layer.in_channels, *size).double()
        )
    return found.flatten(1).t()


def test_circular_convolutions_are_bounded_as_printed():
    layer = torch.nn.Conv2d(3, 4, (3, 5), padding=(1, 2), padding_mode="circular", dtype=torch.float64)
    kernel = layer.weight.detach().numpy().copy()
    project = enn.ConvolutionBound(layer, (6, 7), bound=0.6)
    (norm,) = project.norms().values()
    assert norm == pytest.approx(np.linalg.norm(reference.circular_map(kernel, (6, 7)), 2))
    of_paper = kernel.transpose(2, 3, 1, 0)
    assert norm == pytest.approx(reference.singular_values_of_convolution(of_paper, (6, 7)).max())
    assert norm == pytest.approx(svals(dense(layer, (6, 7)))[0].item())
    project()
    clipped = reference.clipped_convolution(of_paper, (6, 7), 0.6)
    clipped *= min(1, 0.6 / reference.singular_values_of_convolution(clipped, (6, 7)).max())
    np.testing.assert_allclose(layer.weight.detach(), clipped.transpose(3, 2, 0, 1), atol=1e-12)


@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_the_norm_of_a_circular_convolution_is_exact(dilation):
    """Of a kernel whose largest gain is at a frequency of 5 / 24, which dilations 2 and 3 do not reach."""
    keys = {"padding": "same", "padding_mode": "circular", "dtype": torch.float64}
    layer = torch.nn.Conv1d(1, 1, 8, dilation=dilation, **keys)
    with torch.no_grad():
        layer.weight.copy_((torch.arange(8) * 2 * torch.pi * 5 / 24).cos())
    (norm,) = enn.ConvolutionBound(layer, 24).norms().values()
    assert norm == pytest.approx(svals(dense(layer, (24,)))[0].item())


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (torch.nn.Conv1d, {"kernel_size": 3, "padding": 1}),
        (torch.nn.Conv2d, {"kernel_size": 3, "padding": "same", "dilation": 2}),
        (torch.nn.Conv2d, {"kernel_size": (2, 3), "padding": 4, "stride": 2, "groups": 2}),
        (torch.nn.Conv2d, {"kernel_size": 3, "padding": 1, "padding_mode": "circular", "stride": 2}),
        (torch.nn.Conv3d, {"kernel_size": 2}),
    ],
)
def test_a_convolution_is_bounded_and_stays_close(kind, keys):
    """By the matrix of the layer itself; what is inside stays to the bit."""
    torch.manual_seed(0)
    layer = kind(4, 4, dtype=torch.float64, **keys)
    size = (6,) * len(layer.kernel_size)
    project = enn.ConvolutionBound(layer, 6, bound=0.7)
    norm = svals(dense(layer, size))[0].item()
    assert norm <= project.norms()[kind.__name__] * (1 + 1e-9)
    assert norm > 0.6 * project.norms()[kind.__name__]
    with torch.no_grad():
        layer.weight.mul_(2 / norm)
    before, scale = layer.weight.detach().clone(), 0.7 / project.norms()[kind.__name__]
    project()
    assert svals(dense(layer, size))[0].item() <= project.norms()[kind.__name__] <= 0.7 * (1 + 1e-9)
    assert (layer.weight - before).norm() < (scale * before - before).norm()
    inside = layer.weight.detach().clone()
    enn.ConvolutionBound(layer, 6, bound=0.8)()
    assert torch.equal(layer.weight, inside)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_the_norm_of_a_convolution_that_is_not_finite_is_unknown(value):
    layer = torch.nn.Conv1d(1, 1, 3, padding=1)
    with torch.no_grad():
        layer.weight[0, 0, 0] = value
    (norm,) = enn.ConvolutionBound(layer, 6).norms().values()
    assert norm != norm


def test_convolutions_without_such_a_bound_are_refused():
    for layer, size, message in (
        (torch.nn.Linear(2, 2), 6, "Linear has no convolution"),
        (torch.nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"), 6, "has no such bound"),
        (torch.nn.Conv1d(1, 1, 2, padding=1, padding_mode="circular"), 6, "has no such bound"),
        (torch.nn.Conv2d(1, 1, 3), (6, 6, 6), "its images have 2 axes, and size has 3"),
        (torch.nn.Conv1d(1, 1, 7), 6, "spans 7 places, and the image has 6"),
    ):
        with pytest.raises(ValueError, match=message):
            enn.ConvolutionBound(layer, size)
    with pytest.raises(ValueError, match="bound is 0"):
        enn.ConvolutionBound(torch.nn.Conv1d(1, 1, 3), 6, bound=0)


@pytest.mark.parametrize("m", [5, 2])
def test_reflections_and_singular_values_are_as_printed(m):
    core = enn.svd_weight(torch.nn.RNNCell(3, 5, dtype=torch.float64), "weight_hh", 0.3, m)
    parts = core.parametrizations.weight_hh
    u, s, v = (torch.randn_like(one, requires_grad=True) for one in (parts.original0, parts.original1, parts.original2))
    expected = reference.zhang(u.detach().numpy()[0], s.detach().numpy()[0], v.detach().numpy()[0], 0.3)
    np.testing.assert_allclose(parts[0](u, s, v).detach(), expected, atol=1e-13)
    assert torch.autograd.gradcheck(parts[0], (u, s, v))


def test_every_orthogonal_matrix_is_a_product_of_reflections():
    q = torch.linalg.qr(torch.randn(7, 6, 6, dtype=torch.float64)).Q
    given = torch.cat([q, torch.eye(6).double()[None], -torch.eye(6).double()[None]])
    torch.testing.assert_close(reflected(reflections_of(given)), given)


@pytest.mark.parametrize("kind", [enn.Elman, enn.GRU, torch.nn.RNN, torch.nn.LSTM])
def test_singular_values_stay_inside_while_it_learns(kind):
    """Of every block; given weights keep their singular vectors, and it is the parametrised weights that are read."""
    torch.manual_seed(0)
    core = enn.svd_weight(kind(3, 8), radius=0.2)
    given = torch.nn.init.orthogonal_(torch.empty(8, 8)).repeat(core.weight_hh_l0.shape[0] // 8, 1)
    core.weight_hh_l0 = given
    torch.testing.assert_close(core.weight_hh_l0, given, atol=1e-5, rtol=0)
    core.weight_hh_l0 = 3 * given
    torch.testing.assert_close(core.weight_hh_l0, 1.18 * given, atol=1e-5, rtol=0)
    core.weight_hh_l0 = given
    optimiser, x = torch.optim.Adam(core.parameters(), 0.3), torch.randn(6, 4, 3)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        losses.append((core(x)[0] - 0.7).square().mean())
        losses[-1].backward()
        optimiser.step()
    values = svals(core.weight_hh_l0.unflatten(0, (-1, 8)))
    assert 0.8 - 1e-5 <= values.min() < values.max() <= 1.2 + 1e-5
    assert (values - 1).abs().max() > 0.15
    assert losses[-1] < losses[0] / 2
    assert (core.weight_hh_l0 - given).abs().max() > 0.1


def test_weights_that_cannot_be_parametrised_are_refused():
    for keys in ({"radius": 0.0}, {"radius": 1.5}, {"reflections": 0}, {"reflections": 5}):
        with pytest.raises(ValueError, match="the radius is above 0"):
            enn.svd_weight(enn.Elman(3, 4), **keys)
    with pytest.raises(ValueError, match="weight_ih_l0 is 4 x 3"):
        enn.svd_weight(enn.Elman(3, 4), "weight_ih_l0")


def test_weights_of_16_bits():
    """A bound would not survive their rounding; a parametrised matrix has it up to theirs."""
    with pytest.raises(ValueError, match=r"GRU: weights of torch\.bfloat16 are rounded beyond a bound"):
        enn.SpectralBound(enn.GRU(3, 4, dtype=torch.bfloat16))
    core = enn.svd_weight(enn.Elman(3, 4, dtype=torch.bfloat16), radius=0.1)
    assert core(torch.randn(5, 2, 3))[0].dtype == torch.bfloat16
    assert ((svals(core.weight_hh_l0.float()) - 1).abs() < 0.12).all()
