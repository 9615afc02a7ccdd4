"""A language model: its ways of asking for a probability agree, and its state is the caller's."""

import pytest
import torch

from elman import config
from elman.network.encoders.encoder import build_encoder
from elman.network.model import LanguageModel
from elman.network.output.contexts import build_contexts
from elman.network.output.flat import FlatChoice
from elman.network.output.layer import OutputLayer
from elman.network.state import leaves
from support import networks

CELLS = {
    "elman": config.Elman(),
    "lstm": config.LSTM(),
    "lstm-1997": config.LSTM(forget_gate=False),
    "lstm-peephole": config.LSTM(peepholes=True),
    "gru-before": config.GRU(reset="before"),
    "gru-after": config.GRU(reset="after"),
}


@pytest.fixture(params=CELLS)
def model(request):
    return networks.model("doc", cell=CELLS[request.param]).eval()


def test_recipes_name_the_cells(model, request):
    name = request.node.callspec.params["model"]
    steps = {layer.cell.step.__qualname__ for layer in model.core.layers}
    assert steps == {networks.CELLS["elman-tanh" if name == "elman" else name].step.__qualname__}


def test_step_log_probs_and_log_prob_agree(model):
    symbols = torch.randint(7, (8, 3))
    log_probs, end = model.log_probs(symbols[:-1], model.begin(3))
    log_prob, _ = model.log_prob(symbols[:-1], symbols[1:], model.begin(3))
    torch.testing.assert_close(log_prob, log_probs.gather(-1, symbols[1:].unsqueeze(-1)).squeeze(-1))
    state = model.begin(3)
    for given, expected in zip(symbols[:-1], log_probs, strict=True):
        stepped, state = model.step(given, state)
        torch.testing.assert_close(stepped, expected)
    torch.testing.assert_close(list(leaves(state)), list(leaves(end)))


def test_a_window_without_steps_is_refused():
    for build in networks.CORES.values():
        require_steps(build())


def require_steps(core):
    encoder = build_encoder(config.Lookup(size=3), 5, locked=True)
    flat = FlatChoice(torch.nn.Parameter(torch.empty(5, core.dims[-1])), "softmax")
    output = OutputLayer(build_contexts(config.Output(), core.dims), flat)
    model = networks.randomise(LanguageModel(encoder, core, output))
    none = torch.zeros(0, 2, dtype=torch.long)
    for ask in (model.trace, model.log_probs, lambda inputs, state: model.log_prob(inputs, none, state)):
        with pytest.raises(ValueError, match=r"inputs of shape \[0, 2\]: a window must have one step or more"):
            ask(none, model.begin(2))


def test_nothing_is_remembered_between_calls(model):
    symbols = torch.randint(7, (8, 3))
    state = model.begin(3)
    before = [leaf.clone() for leaf in leaves(state)]
    one, _ = model.log_probs(symbols, state)
    again, _ = model.log_probs(symbols, state)
    assert torch.equal(one, again)
    assert all(torch.equal(*pair) for pair in zip(leaves(state), before, strict=True))


def test_gradients_do_not_change_the_values(model):
    """Evaluation takes other functions than training: they must say the same."""
    symbols = torch.randint(7, (8, 3))
    trained, _ = model.log_prob(symbols[:-1], symbols[1:], model.begin(3))
    with torch.inference_mode():
        evaluated, _ = model.log_prob(symbols[:-1], symbols[1:], model.begin(3))
    torch.testing.assert_close(trained.detach(), evaluated)
