"""Recurrent layers as torch modules: beside torch's own, in values, gradients, weights and every form of input."""

import copy
import inspect

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elman import nn as enn
from elman.errors import UserError

SAME = {
    "lstm": (enn.LSTM, torch.nn.LSTM, {}),
    "gru": (enn.GRU, torch.nn.GRU, {}),
    "elman": (enn.Elman, torch.nn.RNN, {}),
    "elman-relu": (enn.Elman, torch.nn.RNN, {"nonlinearity": "relu"}),
}
SHAPES = {
    "one layer": {},
    "three layers, both directions": {"num_layers": 3, "bidirectional": True},
    "no bias": {"num_layers": 2, "bias": False},
    "batch first": {"num_layers": 2, "batch_first": True, "bidirectional": True},
}
LENGTHS = torch.tensor([4, 7, 1, 7, 5])


def pair(name, dtype=torch.float64, **shape):
    """Ours and torch's module with the same weights."""
    ours, theirs, keys = SAME[name]
    torch.manual_seed(1)
    made, known = ours(3, 5, dtype=dtype, **shape, **keys), theirs(3, 5, dtype=dtype, **shape, **keys)
    made.load_state_dict(known.state_dict())
    assert [*made.state_dict()] == [*known.state_dict()]
    known.load_state_dict(made.state_dict())
    return made, known


def flat(result):
    outputs, state = result
    outputs = outputs.data if hasattr(outputs, "data") and not isinstance(outputs, torch.Tensor) else outputs
    return [outputs, *(state if isinstance(state, tuple) else (state,))]


def compared(made, known, given, state=None):
    """Values, and the gradients of a sum of all of them, in the weights."""
    found = [flat(one(given) if state is None else one(given, state)) for one in (made, known)]
    gradients = []
    for one, parts in zip((made, known), found, strict=True):
        loss = sum((part * torch.linspace(-1, 1, part.numel()).view_as(part)).sum() for part in parts)
        gradients.append(torch.autograd.grad(loss, [*one.parameters()]))
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SAME)
def test_values_gradients_and_weights_are_torchs(name, shape):
    made, known = pair(name, **SHAPES[shape])
    xs = torch.randn(7, 5, 3, dtype=torch.float64)
    given = xs.transpose(0, 1) if made.batch_first else xs
    compared(made, known, given)
    state = enn.detach(known(given)[1])
    compared(made, known, given, tuple(2 * part for part in state) if name == "lstm" else 2 * state)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("shape", ["one layer", "three layers, both directions"])
@pytest.mark.parametrize("name", SAME)
def test_packed_sequences_are_torchs(name, shape, ordered):
    made, known = pair(name, **SHAPES[shape])
    lengths = LENGTHS.sort(descending=True).values if ordered else LENGTHS
    packed = pack_padded_sequence(torch.randn(7, 5, 3, dtype=torch.float64), lengths, enforce_sorted=ordered)
    compared(made, known, packed)
    outputs, theirs = made(packed)[0], known(packed)[0]
    torch.testing.assert_close(pad_packed_sequence(outputs), pad_packed_sequence(theirs))
    state = enn.detach(known(packed)[1])
    compared(made, known, packed, tuple(3 * part for part in state) if name == "lstm" else 3 * state)


@pytest.mark.parametrize("name", SAME)
def test_one_sequence_without_a_batch(name):
    made, known = pair(name, num_layers=2, bidirectional=True)
    x = torch.randn(4, 3, dtype=torch.float64)
    compared(made, known, x)
    state = enn.detach(known(x)[1])
    compared(made, known, x, state)


RECURRENCES = {one.__name__: one for one in enn.Recurrent.__subclasses__()}
EVERY = [one for one in enn.__all__ if one in RECURRENCES]


@pytest.mark.parametrize("name", EVERY)
def test_every_recurrence_reads_sequences_of_several_lengths_as_if_alone(name):
    """Two layers of different widths in both directions; windows that continue give the whole sequence."""
    torch.manual_seed(0)
    made = getattr(enn, name)(4, [8, 4], bidirectional=True, dtype=torch.float64)
    xs = torch.randn(7, 5, 4, dtype=torch.float64)
    outputs, state = made(pack_padded_sequence(xs, LENGTHS, enforce_sorted=False))
    padded, _ = pad_packed_sequence(outputs)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, last = made(xs[:length, row : row + 1])
        torch.testing.assert_close(padded[:length, row : row + 1], alone)
        for ours, theirs in zip(state, last, strict=True):
            torch.testing.assert_close([part[row : row + 1] for part in ours], list(theirs))
    forward = getattr(enn, name)(4, [8, 4], dtype=torch.float64)
    whole, end = forward(xs)
    first, between = forward(xs[:3])
    second, after = forward(xs[3:], enn.detach(between))
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(after, end)


@pytest.mark.parametrize("name", EVERY)
def test_copies_saved_weights_and_names(name, tmp_path):
    made = getattr(enn, name)(4, 8, num_layers=2)
    twin = copy.deepcopy(made)
    other = getattr(enn, name)(4, 8, num_layers=2)
    torch.save(made.state_dict(), tmp_path / "weights.pt")
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    xs = torch.randn(3, 2, 4)
    torch.testing.assert_close(twin(xs)[0], made(xs)[0], rtol=0, atol=0)
    torch.testing.assert_close(other(xs)[0], made(xs)[0], rtol=0, atol=0)
    with torch.no_grad():
        twin.weight_ih_l0.zero_()
    assert not torch.equal(twin(xs)[0], made(xs)[0]), "a copy has weights of its own"
    swapped = torch.func.functional_call(made, {"weight_ih_l0": torch.zeros_like(made.weight_ih_l0)}, (xs,))
    torch.testing.assert_close(swapped[0], twin(xs)[0])


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_weights_that_torch_parametrises_are_read(name):
    made, known = pair(name)
    torch.nn.utils.parametrizations.weight_norm(made, "weight_hh_l0")
    with torch.no_grad():
        made.parametrizations.weight_hh_l0.original0.mul_(0.5)
        known.weight_hh_l0.mul_(0.5)
    xs = torch.randn(7, 5, 3, dtype=torch.float64)
    torch.testing.assert_close(flat(made(xs)), flat(known(xs)))
    assert not torch.equal(made(xs)[0], pair(name)[0](xs)[0])


def test_weights_begin_as_torchs():
    """U(-1/sqrt(H), 1/sqrt(H)), the biases too; another rule by `initialisation`."""
    from elman.config.initialisation import Initialisation, Orthogonal, Zeros

    made = enn.LSTM(30, 64)
    for parameter in made.parameters():
        assert parameter.abs().max() <= 1 / 8
        assert parameter.std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.1)
    other = enn.LSTM(30, 64, initialisation=Initialisation(hidden=Orthogonal(), bias=Zeros(), forget_bias=1.0))
    block = other.weight_hh_l0[:64]
    torch.testing.assert_close(block @ block.t(), torch.eye(64), rtol=0, atol=1e-5)
    assert other.bias_ih_l0[64:128].eq(1).all()


def test_dropout_is_of_training_alone():
    torch.manual_seed(0)
    made = enn.LSTM(4, [16, 16], weight_drop=0.5, between_dropout=0.3, output_dropout=0.3, recurrent_dropout=0.2)
    xs = torch.randn(6, 3, 4)
    assert not torch.equal(made(xs)[0], made(xs)[0])
    outputs = made(xs)[0]
    dropped = outputs == 0
    assert dropped.any()
    assert torch.equal(dropped, dropped[:1].expand_as(dropped)), "one mask is held over time"
    made.eval()
    assert torch.equal(made(xs)[0], made(xs)[0])
    assert not (made(xs)[0] == 0).any()
    made.train()
    held = enn.LSTM(4, 8, recurrent_dropout=0.5).double()
    packed = pack_padded_sequence(torch.ones(7, 5, 4).double(), LENGTHS, enforce_sorted=False)
    padded, _ = pad_packed_sequence(held(packed)[0])
    assert not padded[4:, 0].any(), "nothing behind the end of a sequence"
    with pytest.raises(UserError, match="masks the output in products"):
        enn.GRU(4, 8, recurrent_dropout=0.5)


def test_masks_of_products_are_held_where_other_sequences_end():
    """Without recurrent weights and with a constant input every step of a sequence has the same output."""
    torch.manual_seed(0)
    made = enn.Elman(64, 8, bias=False, input_dropout=0.5, dtype=torch.float64)
    with torch.no_grad():
        made.weight_hh_l0.zero_()
    packed = pack_padded_sequence(torch.ones(7, 5, 64, dtype=torch.float64), LENGTHS, enforce_sorted=False)
    padded, _ = pad_packed_sequence(made(packed)[0])
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.equal(padded[:length, row], padded[:1, row].expand(length, 8))
    assert not torch.equal(padded[0, 0], padded[0, 1]), "sequences have masks of their own"


@pytest.mark.parametrize("name", EVERY)
def test_levels_are_what_layers_read_and_return(name):
    """In every form of the input; `raw` before dropout, `levels` after it, the input first."""
    torch.manual_seed(0)
    made = getattr(enn, name)(4, [16, 8], bidirectional=True, between_dropout=0.5, output_dropout=0.5)
    xs = torch.randn(7, 5, 4)
    torch.manual_seed(1)
    outputs, state = made(xs)
    torch.manual_seed(1)
    trace, after = made(xs, levels=True)
    assert torch.equal(trace.top, outputs)
    torch.testing.assert_close(after, state, rtol=0, atol=0)
    assert trace.levels[0] is trace.raw[0] is xs
    assert [level.shape[-1] for level in trace.levels] == [4, 32, 16]
    for level, raw in zip(trace.levels[1:], trace.raw[1:], strict=True):
        kept = level != 0
        assert 0 < kept.float().mean() < 1
        torch.testing.assert_close(level, 2 * raw * kept)
    made.eval()
    below, _ = made(xs, levels=True)
    assert all(torch.equal(*pair) for pair in zip(below.levels, below.raw, strict=True))
    alone, _ = made(xs[:, 0], levels=True)
    torch.testing.assert_close([one[:, 0] for one in below.levels], list(alone.levels))
    made.batch_first = True
    turned, _ = made(xs.transpose(0, 1), levels=True)
    torch.testing.assert_close([one.transpose(0, 1) for one in below.raw], list(turned.raw))
    with pytest.raises(ValueError, match="call with a padded tensor"):
        made(pack_padded_sequence(xs, LENGTHS, enforce_sorted=False), levels=True)


def test_wrong_arguments_are_one_line():
    with pytest.raises(
        ValueError, match=r"LSTM: .*proj_size.*; further arguments are forget_gate, peepholes, input_gate"
    ):
        enn.LSTM(3, 4, proj_size=2)
    with pytest.raises(ValueError, match="num_layers is 3, but hidden_size lists 2 widths"):
        enn.GRU(3, [4, 4], num_layers=3)
    with pytest.raises(ValueError, match="two kinds of masks between layers"):
        enn.GRU(3, 4, num_layers=2, dropout=0.1, between_dropout=0.1)
    assert "peepholes" in inspect.signature(enn.LSTM).parameters
    assert "cell=LSTM(" in repr(enn.LSTM(3, 4))


def test_under_autocast_and_in_another_type():
    made = enn.GRU(3, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, _ = made(torch.randn(2, 1, 3))
    assert outputs.dtype == torch.float32
    assert enn.GRU(3, 4, dtype=torch.float64)(torch.randn(2, 1, 3, dtype=torch.float64))[0].dtype == torch.float64
    assert made.double()(torch.randn(2, 1, 3, dtype=torch.float64))[0].dtype == torch.float64
