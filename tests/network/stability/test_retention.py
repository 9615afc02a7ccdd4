"""The largest factor of a state, against the factors that inputs give, and against what two states do."""

import math

import pytest
import torch

from elman import config
from elman.analysis.dynamics import state_decay
from elman.analysis.stability import certify
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.cores.core import build_core
from elman.network.stability.certificate import largest_exponent
from elman.network.stability.incremental import largest_of, retained, stream_of
from support import networks

WORDS = 9
LINEAR = [name for name, cell in networks.CELLS.items() if cell.linear]


def model(cell, core=None, scale=0.5):
    core = core or config.Stack(sizes=(4,), cell=cell)
    return networks.randomise(build_model(config.Model(encoder=config.Lookup(size=3), core=core), WORDS), scale)


def test_these_cells_are_linear_in_their_state():
    kinds = {type(networks.CELL_RECORDS[name]) for name in LINEAR}
    assert kinds == {
        config.MinGRU, config.MinLSTM, config.QRNN, config.LRU, config.RGLRU, config.MLSTM, config.Mamba2,
        config.DeltaNet,
    }  # fmt: skip


def memory(name, state):
    """The tensors that enter linearly, those of the mLSTM as they are without a stabiliser; one row each."""
    if name.startswith("mlstm"):
        _, C, n, m = state[:4]
        size = m.exp().unsqueeze(-1)
        return torch.cat([(C * size.unsqueeze(-1)).flatten(1), (n * size).flatten(1)], 1)
    places = {"min": [0], "qrnn": [1], "lru": [1, 2], "rg": [1], "mamba2": [1], "deltanet": [1]}[name.split("-")[0]]
    return torch.cat([state[place].flatten(1) for place in places], 1)


@pytest.mark.parametrize("name", LINEAR)
def test_two_states_come_together_at_least_at_the_rate(name):
    """On random words; and the rate is reached to within a factor, by words that are repeated."""
    made = model(networks.CELL_RECORDS[name])
    (line,) = certify(made, WORDS)
    assert line.tier == 2
    assert line.holds
    layer, words = made.core.layers[0], made.encoder(torch.arange(WORDS).unsqueeze(0))[0].detach()
    begun = list(layer.begin(WORDS))
    other = [part.clone() for part in begun]
    changed = {"min": [0], "qrnn": [1], "lru": [1, 2], "rg": [1], "mlstm": [1, 2], "mamba2": [1], "deltanet": [1]}
    for place in changed[name.split("-")[0]]:
        other[place] = other[place] + torch.rand_like(other[place])
    one, other, weights = tuple(begun), tuple(other), layer.weights()
    slowest = 0.0
    for _ in range(12):
        before = (memory(name, one) - memory(name, other)).norm(dim=1)
        one, other = (layer.cell.step(weights, words, state) for state in (one, other))
        after = (memory(name, one) - memory(name, other)).norm(dim=1)
        slowest = max(slowest, (after / before).max().item())
    assert slowest <= line.value * (1 + 1e-9)
    assert slowest >= 0.5 * line.value


def test_the_values_are_those_of_the_formulas():
    """One word and one unit of each."""
    made = model(config.MinGRU())
    words, layer = made.encoder.weight.detach(), made.core.layers[0]
    z = words @ layer.weight_ih[:4].detach().t() + layer.bias_ih[:4].detach()
    if layer.bias_hh is not None:
        z = z + layer.bias_hh[:4].detach()
    assert certify(made, WORDS)[0].value == pytest.approx((1 - z.sigmoid()).max().item(), rel=1e-12)
    made = model(config.LRU())
    nu = made.core.layers[0].eigenvalues[0].detach()
    assert certify(made, WORDS)[0].value == pytest.approx((-nu.exp()).exp().max().item(), rel=1e-12)


def test_layers_above_the_lowest():
    """Those of a stack have no rate; those of residual blocks that of all vectors which a norm can give."""
    stack = model(None, config.Stack(sizes=(4, 4), cell=config.MinGRU()))
    assert [line.value for line in certify(stack, WORDS)][1] == 1.0
    blocks = model(None, config.Residual(size=4, depth=2, cell=config.MinGRU(), norm="layer"))
    first, second = certify(blocks, WORDS)
    assert first.value < 1
    assert second.value < 1
    layer, norm = blocks.core.layers[1], blocks.core.norms[1]
    assert (norm(100 * torch.randn(1000, 4).double()).abs() <= largest_of(norm)).all()
    x = largest_of(norm) * torch.where(layer.weight_ih[:4] > 0, -1.0, 1.0).double()
    z = (x * layer.weight_ih[:4]).sum(1) + layer.bias_ih[:4]
    assert second.value == pytest.approx((1 - z.sigmoid()).max().item(), rel=1e-12)
    vectors = torch.randn(5, 3).double()
    trace = []
    blocks.core.norms[0].register_forward_hook(lambda module, given, result: trace.append(result))
    blocks.core(vectors.unsqueeze(1), blocks.core.begin(1))
    torch.testing.assert_close(stream_of(blocks.core, vectors), trace[0].squeeze(1))
    assert retained(blocks.core, None)[0].value >= first.value


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_behind_a_convolution_a_layer_reads_up_to_the_sum_of_its_kernel(norm):
    """Of what the norm can give: the factor by hand, and no word reaches it."""
    blocks = model(None, config.Residual(size=4, depth=2, cell=config.MinGRU(), norm=norm, convolution=3))
    core = blocks.core
    for line, layer, convolution, before in zip(
        certify(blocks, WORDS), core.layers, core.convolutions, core.norms, strict=True
    ):
        scale, *shift = (parameter.detach().abs() for parameter in before.parameters())
        largest = 2 * scale + sum(shift)
        largest = convolution.kernel.detach().abs().sum(1) * largest + convolution.bias.detach().abs()
        x = largest * torch.where(layer.weight_ih[:4] > 0, -1.0, 1.0).double()
        z = (x * layer.weight_ih[:4]).sum(1) + layer.bias_ih[:4]
        assert line.value == pytest.approx((1 - z.sigmoid()).max().item(), rel=1e-12)


def test_a_core_with_other_cells_has_none():
    with pytest.raises(UserError, match="stability certificates are for the cells"):
        certify(model(config.SLSTM(heads=2)), WORDS)
    (line,) = certify(model(config.SLSTM(heads=2)), WORDS, torch.randint(WORDS, (60, 1)))
    assert line.tier == 3


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["lru", "slstm", "rwkv7", "mamba2"])
def test_exponent_and_decay_of_any_cell(cell):
    """Also in residual blocks; a linear recurrence without input decays at its largest modulus."""
    core = networks.randomise(
        build_core(config.Residual(size=4, depth=1, cell=networks.CELL_RECORDS[cell]), 3, locked=True), 0.4
    )
    assert math.isfinite(largest_exponent(core, torch.randn(24, 2, 3).double(), warm_up=8))
    assert state_decay(core, trials=2, steps=8).isfinite().all()
    if cell == "lru":
        modulus = (-core.layers[0].eigenvalues[0].exp()).exp().max().item()
        found = largest_exponent(core, torch.randn(240, 2, 3).double(), warm_up=120)
        assert found == pytest.approx(math.log(modulus), abs=0.02)


def test_the_first_step_has_no_input_before_it():
    """A window of two whose earlier input always closes the gate: the first step keeps the most."""
    made = model(config.QRNN(), scale=0.0)
    layer = made.core.layers[0]
    with torch.no_grad():
        made.encoder.weight.fill_(1.0)
        layer.weight_before.fill_(-1.0)
    assert certify(made, WORDS)[0].value == pytest.approx(0.5)


@pytest.mark.parametrize("inputs", [6, 3])
def test_the_gate_of_griffin_reads_the_last_inputs_through_its_kernel(inputs):
    """The sum of r before its sigmoid, from products with each of the last inputs and their biases."""
    cell = networks.CELLS["rg-lru"]
    w = networks.weights(cell, inputs=inputs)
    xs = torch.randn(cell.convolution, inputs, dtype=torch.float64)
    found = sum(gate.weight @ x + gate.bias for gate, x in zip(cell.retention(w).gates, xs.flip(0), strict=True))
    u = (xs @ w.weight_ih[:4].t() + w.bias_ih[:4]).t()
    convolved = (w.conv_weight * u).sum(1) + w.conv_bias
    wanted = torch.block_diag(*w.gate_weight[0]) @ convolved + w.gate_bias[0]
    torch.testing.assert_close(found, wanted)
