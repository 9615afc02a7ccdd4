"""Recurrent layers where a program gives what torch's own refuse, or calls what only torch's own had."""

import pytest
import torch

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
    with pytest.raises(ValueError, match=r"1 or more|bias is|Expected `float`"):
        enn.Elman(**{"input_size": 3, "hidden_size": 4} | keys)
