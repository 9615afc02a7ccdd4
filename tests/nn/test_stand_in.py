"""Recurrent layers where a program gives what torch's own refuse, or calls what only torch's own had."""

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from elman import nn as enn

EVERY = {one.__name__: one for one in enn.Recurrent.__subclasses__() if one.__module__ == "elman.nn"}
SHAPES = [
    ((4, 2, 6), None),  # the width
    ((0, 2, 5), None),  # no steps
    ((5,), None),
    ((4, 2, 1, 5), None),
    ((4, 1, 5), (1, 2, 7)),  # a state of other rows, layers and widths, and one with a batch where there is none
    ((4, 2, 5), (1, 1, 7)),
    ((4, 2, 5), (3, 2, 7)),
    ((4, 2, 5), (1, 2, 1)),
    ((4, 2, 5), (2, 7)),
    ((4, 5), (1, 1, 7)),
]


@pytest.mark.parametrize("name", ["LSTM", "GRU", "Elman", "MUT", "MinGRU", "SRU"])
@pytest.mark.parametrize(("given", "state"), SHAPES)
def test_other_shapes_are_refused(name, given, state):
    """The library's LSTM would read beyond the end of such arrays, and other cells would repeat their rows."""
    made, parts = EVERY[name](5, 7), 2 if name == "LSTM" else 1
    begun = None if state is None else [torch.zeros(state)] * parts
    with pytest.raises(ValueError, match="input has shape" if state is None else "the state has tensors of shapes"):
        made(torch.randn(given), begun)


def tensors(found):
    return [found] if isinstance(found, torch.Tensor) else [one for part in found for one in tensors(part)]


@pytest.mark.parametrize("name", EVERY)
def test_every_recurrence_in_every_type_and_for_no_sequences(name):
    xs = torch.randn(9, 2, 8)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        other, known = EVERY[name](8, 8, dtype=dtype), EVERY[name](8, 8)
        known.load_state_dict(other.state_dict())
        found = tensors(other(xs.to(dtype)))
        assert {part.dtype for part in found} == {dtype}
        torch.testing.assert_close(found[0].float(), known(xs.to(dtype).float())[0], rtol=0.02, atol=0.02)
        found[0].sum().backward()
    read = xs[:, :0].requires_grad_()
    outputs, state = known(read)
    assert outputs.shape == (9, 0, 8)
    assert all(len(part) == 0 or part.shape[1] == 0 for part in tensors(state))
    outputs.sum().backward()
    assert all(parameter.grad is not None for parameter in known.parameters())
    assert known.to("meta")(xs.to("meta"))[0].shape == xs.shape


@pytest.mark.parametrize("name", ["Softmax", "MixtureOfSoftmaxes", "AdaptiveSoftmax", "HierarchicalSoftmax"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_outputs_of_16_bits(name, dtype):
    further = {"MixtureOfSoftmaxes": (3, 8), "AdaptiveSoftmax": ([10, 20],), "HierarchicalSoftmax": (6,)}.get(name, ())
    made, known = (getattr(enn, name)(8, 30, *further, dtype=one) for one in (dtype, None))
    known.load_state_dict(made.state_dict())
    h, targets = torch.randn(6, 2, 8).to(dtype).requires_grad_(), torch.randint(30, (6, 2))
    loss = made.nll(h, targets)
    loss.backward()
    assert loss.dtype == h.grad.dtype == made.log_probs(h).dtype == dtype
    torch.testing.assert_close(loss.float(), known.nll(h.float(), targets), rtol=0.02, atol=0.02)
    with torch.no_grad():
        assert made.log_probs(h).dtype == dtype


def test_the_state_by_torchs_keyword_as_a_list_and_in_another_type():
    made, xs = enn.LSTM(3, 4, 2), torch.randn(5, 2, 3)
    _, state = made(xs)
    wanted = made(xs, state)[0]
    assert torch.equal(made(input=xs, hx=[*state])[0], wanted)
    assert torch.equal(made(xs, tuple(part.double() for part in state))[0], wanted)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "Elman"])
def test_methods_of_torchs(name):
    """`reset_parameters` also after `to_empty`, as programs that begin on the device meta call it."""
    torch.manual_seed(3)
    made = EVERY[name](3, 4, 2, bias=False, bidirectional=True, dtype=torch.float64)
    first = [parameter.clone() for parameter in made.parameters()]
    torch.manual_seed(3)
    known = getattr(torch.nn, name.replace("Elman", "RNN"))(
        3, 4, 2, bias=False, bidirectional=True, dtype=torch.float64
    )
    other = EVERY[name](3, 4, 2, bias=False, bidirectional=True, dtype=torch.float64, device="meta").to_empty(
        device="cpu"
    )
    torch.manual_seed(3)
    other.reset_parameters()
    for parameters in (known.parameters(), other.parameters()):
        assert all(torch.equal(*pair) for pair in zip(first, parameters, strict=True))
    assert [len(one) for one in other.all_weights] == [len(one) for one in known.all_weights] == [2] * 4
    assert repr(made).split("\n")[1].strip().startswith("3, 4, num_layers=2, bias=False, bidirectional=True, cell=")


@pytest.mark.parametrize(
    "keys",
    [
        {"num_layers": 0},
        {"input_size": 0},
        {"hidden_size": -1},
        {"bias": "relu"},  # torch.nn.RNN has the nonlinearity in this place
        {"num_layers": 2, "dropout": 1.5},
        {"num_layers": 2, "between_dropout": -0.1},
        {"output_dropout": 1.5},
        {"weight_drop": float("nan")},
    ],
)
def test_arguments_out_of_their_range(keys):
    with pytest.raises(ValueError, match=r"1 or more|bias is|dropout is|Expected `float`"):
        enn.Elman(**{"input_size": 3, "hidden_size": 4} | keys)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "Elman"])
def test_dropout_may_be_set_later(name):
    """As programs set `rnn.dropout`, which torch's read at every call."""
    made, xs = EVERY[name](3, 64, 2, dropout=0.5), torch.randn(5, 4, 3)
    assert made.dropout == 0.5
    made.dropout = 0.0
    torch.testing.assert_close(made(xs)[0], made.eval()(xs)[0], rtol=0, atol=0)
    made.train().dropout = np.float64(0.25)
    trace, _ = made(xs, levels=True)
    kept = trace.levels[1] != 0
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.05)
    assert not torch.equal(kept[0], kept[1])
    with pytest.raises(ValueError, match="dropout is 1; it is 0 or more and below 1"):
        made.dropout = 1


def test_dropout_of_one_layer_drops_nothing_and_says_so():
    for key in ("dropout", "between_dropout"):
        with pytest.warns(UserWarning, match="there is one: nothing is dropped"):
            enn.LSTM(3, 4, **{key: 0.5})


def test_the_mode_as_an_attribute_is_that_of_all_masks():
    made, xs = enn.LSTM(3, 16, 2, dropout=0.5, weight_drop=0.5, output_dropout=0.5), torch.randn(5, 4, 3)
    made.training = False
    assert torch.equal(made(xs)[0], made(xs)[0])
    made.training = True
    assert not torch.equal(made(xs)[0], made(xs)[0])


@pytest.mark.parametrize(
    "keys", [{"hidden_size": 4.0}, {"input_size": "3"}, {"num_layers": 2.0}, {"hidden_size": [4, 5.0]}]
)
def test_sizes_that_are_no_whole_numbers(keys):
    with pytest.raises(TypeError, match="they are whole numbers"):
        enn.GRU(**{"input_size": 3, "hidden_size": 4} | keys)
    assert enn.GRU(np.int64(3), np.int64(4), np.int64(2), between_dropout=np.float64(0.5))(torch.randn(2, 1, 3))


def test_complex_numbers_are_not_cut():
    made, xs = enn.GRU(3, 4), torch.randn(5, 2, 3)
    for given in ((xs * 1j, None), (xs, torch.zeros(1, 2, 4) * 1j)):
        with pytest.raises(ValueError, match="imaginary parts"):
            made(*given)
    assert enn.GRU(3, 4, dtype=torch.complex64)(xs * 1j)[0].is_complex()


@pytest.mark.parametrize("name", ["LSTM", "GRU", "Elman", "SLSTM", "Mogrifier", "QRNN"])
def test_forward_mode_is_the_plain_step(name):
    made = EVERY[name](4, 4, dtype=torch.float64)
    xs, along = torch.randn(2, 5, 2, 4, dtype=torch.float64)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(made(forward_ad.make_dual(xs, along))[0]).tangent
    step = 1e-6 * along
    torch.testing.assert_close(found, (made(xs + step)[0] - made(xs - step)[0]) / 2e-6, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["LSTM", "GRU", "Elman"])
def test_a_traced_layer_reads_other_numbers_of_sequences(name):
    """As writers of graphs for TensorBoard trace a model."""
    made, xs = EVERY[name](3, 4, 2, bidirectional=True), torch.randn(5, 2, 3)
    traced = torch.jit.trace(made, xs)
    other = torch.randn(5, 6, 3)
    torch.testing.assert_close(tensors(traced(other)), tensors(made(other)))


@pytest.mark.parametrize("name", ["LSTM", "Softmax"])
def test_a_part_is_refused_by_torchscript_in_one_line(name):
    part = EVERY[name](3, 4) if name in EVERY else enn.Softmax(3, 4)
    for model in (part, torch.nn.Sequential(part)):
        with pytest.raises(TypeError, match=f"^{name} of elman has no form in TorchScript; use torch.export"):
            torch.jit.script(model)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "Elman"])
def test_an_argument_of_torch_that_is_missing_here_is_named(name):
    with pytest.raises(ValueError, match=f"^{name}: there is no argument `proj_size`; further arguments are "):
        EVERY[name](3, 4, proj_size=2)
