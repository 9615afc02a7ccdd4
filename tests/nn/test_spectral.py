"""The bound on recurrent matrices: of elman's layers, torch's, and a recipe's."""

import pytest
import torch

from elman import config
from elman import nn as enn
from elman.config.parts import convert
from elman.learning.constraint import build_constraint, recurrent_spectrum
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
