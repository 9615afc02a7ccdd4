"""Variational dropout in the products of a layer: masks of each gate, and one for all of them."""

import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network import dropout
from elman.network.cells.cell import Gated
from elman.network.cores.layer import Layer
from elman.network.cores.stack import build_layer
from elman.network.seq2seq import require_plain
from support import networks

GATED = [name for name, cell in networks.CELLS.items() if isinstance(cell, Gated)]
INPUTS, SIZE = 7, 10


def layer_of(name, *, rows=1, **options):
    """A layer that trains, inputs and a state."""
    cell = networks.CELLS[name]
    layer = networks.randomise(Layer(cell, INPUTS, SIZE, **options), 0.4).train()
    return layer, torch.randn(5, rows, INPUTS, dtype=torch.float64), networks.state(cell, rows, SIZE)


def drawn(rows, count, width, rate):
    return dropout.elementwise(torch.ones(rows, count, width, dtype=torch.float64), rate)


def silenced(layer, of_x, of_h, row=0):
    """The layer with the columns of each gate's matrices multiplied by its masks [B, G, _] for one row of the batch."""
    copy = Layer(layer.cell, INPUTS, SIZE).double()
    copy.load_state_dict(layer.state_dict())
    with torch.no_grad():
        copy.weight_ih *= of_x[row].repeat_interleave(SIZE, 0)
        copy.weight_hh *= of_h[row].repeat_interleave(SIZE, 0)
    return copy.eval()


def test_the_cells_with_sums_of_products_have_masks_by_gate():
    assert {"elman-tanh", "elman-softplus", "lstm", "lstm-1997", "lstm-peephole", "lstm-coupled", "lstm-capped"} < {
        *GATED
    }
    assert {"rung-forget", "rung-input"} < {*GATED}


@pytest.mark.parametrize("name", GATED)
def test_every_gate_has_masks_of_its_own_held_over_time(name):
    """The definition, row by row: z_g = W_g (m_g * x) + U_g (n_g * h) + b_g."""
    layer, xs, state = layer_of(name, rows=2, input_dropout=0.4, recurrent_dropout=0.5, gate_masks=True)
    torch.manual_seed(5)
    outputs, _ = layer(xs, state)
    torch.manual_seed(5)
    count = len(layer.cell.gates)
    of_x, of_h = drawn(2, count, INPUTS, 0.4), drawn(2, count, SIZE, 0.5)
    for row in range(2):
        alone = tuple(part[row : row + 1] for part in state)
        expected, _ = silenced(layer, of_x, of_h, row)(xs[:, row : row + 1], alone)
        torch.testing.assert_close(outputs[:, row : row + 1], expected)
    if count > 1:
        assert not torch.equal(of_x[0, 0], of_x[0, 1])


def test_fresh_masks_of_gates_are_drawn_at_every_step():
    layer, xs, state = layer_of("lstm", input_dropout=0.4, recurrent_dropout=0.5, gate_masks=True, locked=False)
    torch.manual_seed(5)
    outputs, _ = layer(xs, state)
    torch.manual_seed(5)
    for x, output in zip(xs.split(1), outputs, strict=True):
        masks = drawn(1, 4, INPUTS, 0.4), drawn(1, 4, SIZE, 0.5)
        expected, state = silenced(layer, *masks)(x, state)
        torch.testing.assert_close(expected[0], output)


@pytest.mark.parametrize("recurrent", [0.0, 0.5])
@pytest.mark.parametrize("name", ["lstm", "gru-after", "highway-3"])
def test_without_masks_by_gate_all_gates_share_one(name, recurrent):
    """On the input of any cell; in the fast form over time too, which draws it once for the window."""
    if recurrent and networks.CELLS[name].masks is None:
        pytest.skip("a GRU has no recurrent dropout")
    layer, xs, state = layer_of(name, input_dropout=0.4, recurrent_dropout=recurrent)
    torch.manual_seed(5)
    outputs, _ = layer(xs, state)
    torch.manual_seed(5)
    of_x, of_h = drawn(1, 1, INPUTS, 0.4), drawn(1, 1, SIZE, recurrent)
    gates = len(layer.cell.gates)
    inputs = len(layer.cell.input_gates)
    expected, _ = silenced(layer, of_x.expand(1, inputs, -1), of_h.expand(1, gates, -1))(xs, state)
    torch.testing.assert_close(outputs, expected)


def test_nothing_is_masked_in_evaluation_and_gradients_pass():
    layer, xs, state = layer_of("lstm", input_dropout=0.4, recurrent_dropout=0.5, gate_masks=True)
    plain = silenced(layer, torch.ones(1, 4, INPUTS), torch.ones(1, 4, SIZE))
    torch.testing.assert_close(layer.eval()(xs, state), plain(xs, state))
    layer.train()(xs, state)[0].sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in layer.parameters())


def test_what_does_not_go_together_is_one_line():
    for cell in (config.GRU(), config.Highway(), config.Mogrifier()):
        with pytest.raises(UserError, match=r"model\.core\.gate_masks .* use the cell lstm, elman or ladder"):
            build_layer(config.Stack(sizes=(4,), cell=cell, gate_masks=True), 3, 4, locked=True)
    for record in ({"gate_masks": True}, {"input_dropout": 0.1}):
        with pytest.raises(UserError, match=rf"model\.core\.{next(iter(record))} masks .* with a source leave it out"):
            require_plain(config.Stack(sizes=(4,), **record), "model.core")
