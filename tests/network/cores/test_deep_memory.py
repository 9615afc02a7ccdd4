"""Layers of memory: by the equations in NumPy, a recurrent layer as a special case, gradients, padding, recipes."""

import itertools

import pytest
import torch

from elman import config
from elman.data.batches import Source
from elman.network.cores.deep_memory import DeepMemory
from elman.network.cores.layer import Layer, Padding
from reference import deep_memory as paper
from support import pair_networks

HEADS = list(itertools.product(["location", "content"], repeat=2))
SOURCES = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 1, 2], [9], [3, 3, 3, 3]]
TARGETS = [[1, 2], [3], [4, 5, 6, 7, 1], []]
BELOW, SIZE, LENGTH = 3, 4, 5


def layer_of(read, write, cell=None):
    torch.manual_seed(0)
    record = config.MemoryLayer(size=SIZE, read=read, write=write, score_size=6)
    layer = DeepMemory(record, cell or config.LSTM(), BELOW, locked=True).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer


def read(layer, below, mask=None):
    mask = torch.ones(below.shape[:2], dtype=torch.bool) if mask is None else mask
    return layer(below, mask, Padding(mask))


def array(tensor):
    return tensor.detach().numpy()


def controller(layer):
    """A step of the controller for one source; cells have tests of their own."""

    def step(r, state):
        state = layer.layer.begin(1) if state is None else state
        state = layer.layer.cell.step(layer.layer.weights(), torch.from_numpy(r).unsqueeze(0), state)
        return array(state[0][0]), state

    return step


def score(head):
    return None if head is None else [array(one) for one in (head.query.weight, head.memory.weight, head.vector)]


@pytest.mark.parametrize(("reads", "writes"), HEADS)
@pytest.mark.parametrize("cell", [config.LSTM(), config.GRU()], ids=["lstm", "gru"])
def test_a_memory_by_the_equations(reads, writes, cell):
    layer = layer_of(reads, writes, cell)
    below = torch.randn(LENGTH, 2, BELOW, dtype=torch.float64)
    memory, state = read(layer, below)
    changes = []
    if layer.change is not None:
        (w_e, w_v), (b_e, b_v) = (array(one).reshape(2, SIZE, -1) for one in layer.change.parameters())
        changes = [w_e, b_e.ravel(), w_v, b_v.ravel()]
    writing = None if layer.writing is None else [*score(layer.writing), *changes]
    for b in range(2):
        new, h = paper.transformed(array(below[:, b]), controller(layer), SIZE, score(layer.reading), writing)
        assert array(memory[:, b]) == pytest.approx(new, abs=1e-12)
        assert array(state[0][b]) == pytest.approx(h, abs=1e-12)


def test_with_both_heads_by_location_it_is_a_recurrent_layer():
    layer = layer_of("location", "location")
    assert {name.split(".")[0] for name, _ in layer.named_parameters()} == {"layer"}
    below = torch.randn(LENGTH, 2, BELOW, dtype=torch.float64)
    assert isinstance(layer.layer, Layer)
    torch.testing.assert_close(read(layer, below)[0], layer.layer(below, layer.layer.begin(2))[0], rtol=0, atol=0)


@pytest.mark.parametrize(("reads", "writes"), HEADS)
def test_gradients(reads, writes):
    layer = layer_of(reads, writes)
    mask = torch.tensor([[True, True], [True, True], [True, False]])
    below = torch.randn(3, 2, BELOW, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def of(x, *parameters):
        named = dict(zip(names, parameters, strict=True))
        memory, state = torch.func.functional_call(layer, named, (x, mask, Padding(mask)))
        return memory * mask.unsqueeze(-1), *state

    assert torch.autograd.gradcheck(of, (below, *layer.parameters()), fast_mode=True)


@pytest.mark.parametrize(("reads", "writes"), HEADS)
def test_padding_never_changes_a_probability(reads, writes):
    """Alone, beside longer pairs, and with symbols in place of the padding; two layers of memory over a reader."""
    memories = [{"size": 6, "read": reads, "write": writes}, {"size": 8, "read": reads, "write": writes}]
    model = pair_networks.model(source={"memories": memories, "start": "bridge"}).eval()
    assert model.reader.sizes == (8, 6, 8)
    batch = pair_networks.batch(SOURCES, TARGETS)
    together = model.log_prob_given(batch.source, batch.inputs, batch.targets)
    symbols = torch.where(batch.source.mask, batch.source.symbols, torch.randint(10, batch.source.symbols.shape))
    other = model.log_prob_given(Source(symbols, batch.source.mask), batch.inputs, batch.targets)
    torch.testing.assert_close(other, together, rtol=0, atol=0)
    for column, (one, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = pair_networks.batch([one], [target])
        found = model.log_prob_given(alone.source, alone.inputs, alone.targets)[:, 0]
        torch.testing.assert_close(together[: len(found), column], found, rtol=0, atol=2e-6)


def test_dropout_acts_on_the_memory_alone():
    layer = DeepMemory(config.MemoryLayer(size=SIZE, output_dropout=0.5), config.LSTM(), BELOW, locked=True).train()
    layer.initialise(config.Initialisation())
    memory, state = read(layer, torch.randn(LENGTH, 2, BELOW))
    assert memory.eq(0).all(0).any()
    assert state[0].ne(0).all()
