"""Small parts with random weights, for the tests of single parts."""

import torch

from elman import config
from elman.network.build import build_model
from elman.network.cells.cell import Weights
from elman.network.cells.elman import elman
from elman.network.cells.gru import GRU_RESET_AFTER, GRU_RESET_BEFORE
from elman.network.cells.highway import highway
from elman.network.cells.lstm import CAPPED_LSTM, COUPLED_LSTM, LSTM, LSTM_1997, PEEPHOLE_LSTM, step
from elman.network.cells.mogrifier import mogrifier
from elman.network.cells.partial_lstm import FORGET_RUNG, INPUT_RUNG
from elman.network.cores.jordan import Jordan
from elman.network.cores.reservoir import Reservoir
from elman.network.cores.stack import ConnectedStack, Layer, Stack, input_sizes
from elman.network.cores.window import FeedForwardWindow

CELLS = {
    "elman-tanh": elman("tanh"),
    "elman-sigmoid": elman("sigmoid"),
    "elman-relu": elman("relu"),
    "lstm": LSTM,
    "lstm-1997": LSTM_1997,
    "lstm-peephole": PEEPHOLE_LSTM,
    "gru-before": GRU_RESET_BEFORE,
    "gru-after": GRU_RESET_AFTER,
    "lstm-coupled": COUPLED_LSTM,
    "lstm-capped": CAPPED_LSTM,
    "rung-forget": FORGET_RUNG,
    "rung-input": INPUT_RUNG,
    "highway-1": highway(1),
    "highway-3": highway(3),
    "highway-2-carry": highway(2, coupled=False),
    "mogrifier-5": mogrifier(5, None, step),
    "mogrifier-4-low-rank": mogrifier(4, 2, CAPPED_LSTM.step),
}

CONTEXTS = {
    "single": config.Single(),
    "mos": config.Mixture(heads={2: 3}, size=4),
    "doc": config.Mixture(heads={0: 1, 1: 2, 2: 2}, size=4),
}

MONOTONE = ("softmax", "sigsoftmax", "sigmoid", "softplus", "relu")
ACTIVATIONS = (*MONOTONE, "spherical", "taylor")

OFFSETS = {
    "none": {"bias": False},
    "bias": {"bias": True},
    "shift": {"bias": False, "shift": True},
    "bias+shift": {"bias": True, "shift": True},
}


def randomise(module, scale=0.7):
    """Every parameter from N(0, scale^2), in float64."""
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, scale)
    return module


def weights(cell, inputs=3, size=4, biases=2, peepholes=False):
    """Leaves with gradients, float64."""

    def leaf(*shape):
        return (0.7 * torch.randn(*shape, dtype=torch.float64)).requires_grad_()

    rows, input_rows = cell.gates * size, (cell.input_gates or cell.gates) * size
    return Weights(
        leaf(input_rows, inputs),
        leaf(rows, size),
        leaf(input_rows) if biases >= 1 else None,
        leaf(rows) if biases == 2 else None,
        leaf(3, size) if peepholes else None,
        None if cell.extra is None else tuple(leaf(*shape) for shape in cell.extra(inputs, size)),
    )


def state(cell, rows=2, size=4):
    return tuple(torch.randn(rows, size, dtype=torch.float64, requires_grad=True) for _ in range(cell.slots))


def stack(name, sizes=(5, 4), inputs=3, **rates):
    cell = CELLS[name]
    layers = [
        Layer(cell, below, size, peepholes=name == "lstm-peephole")
        for below, size in zip((inputs, *sizes), sizes, strict=False)
    ]
    return randomise(Stack(layers, **rates))


def connected(name, connections, sizes=(4, 4), inputs=3, **rates):
    widths = input_sizes(connections, inputs, sizes)
    layers = [Layer(CELLS[name], below, size) for below, size in zip(widths, sizes, strict=True)]
    return randomise(ConnectedStack(layers, connections, **rates))


def jordan(**options):
    """Jordan's network; the free-running form listens to five outputs of weights that stay as they are."""
    core = randomise(Jordan(3, 4, 5, **options))
    outputs = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    core.listen(lambda trace: (trace.top @ outputs.t()).log_softmax(-1))
    return core


CORES = {name: lambda name=name: stack(name) for name in CELLS} | {
    "graves": lambda: connected("lstm", "graves", (4, 5)),
    "melis": lambda: connected("lstm-capped", "melis"),
    "jordan": jordan,
    "jordan-decay": lambda: jordan(decay=0.5, nonlinearity="sigmoid"),
    "jordan-target": lambda: jordan(feedback="target"),
    "jordan-target-decay": lambda: jordan(feedback="target", decay=0.7),
    "reservoir": lambda: Reservoir(3, 30, bias_scale=0.2).double().draw(),
    "reservoir-leaky": lambda: Reservoir(3, 30, leak=0.3, density=0.5).double().draw(),
    "window-1": lambda: randomise(FeedForwardWindow(3, 1, 4)),
    "window-3": lambda: randomise(FeedForwardWindow(3, 3, 4)),
    "window-4-direct": lambda: randomise(FeedForwardWindow(3, 4, 4, direct=True)),
}


COUNTS = (40, 31, 17, 9, 9, 7, 5, 4, 3, 2, 1, 1, 0)

CHOICES = {
    "flat": config.Flat(),
    "adaptive": config.Adaptive(cutoffs=(4, 9), div_value=2.0),
    "adaptive-bias": config.Adaptive(cutoffs=(3,), div_value=1.0, bias=True),
    "tree": config.Tree(),
    "tree-random-tied": config.Tree(assignment="random", clusters=5, tied=True, bias=False),
    "rare-class": config.RareClass(threshold=3),
    "rare-class-none": config.RareClass(threshold=1, bias=False),
    "monotone": config.Monotone(pieces=9, range=3.0),
    "monotone-tied": config.Monotone(pieces=4, range=0.5, tied=True, bias=False),
    "mixtape": config.Mixtape(gate_size=3, frequent=5),
    "mixtape-8-tied": config.Mixtape(components=8, gate_size=2, frequent=13, tied=True, bias=False),
    "mixtape-2-wide": config.Mixtape(components=2, gate_size=2, frequent=1, size=6),
}


def choice_model(choice, contexts="single", activation="softmax", size=4):
    """A model of the words of `COUNTS` with random weights, float64."""
    recipe = config.Model(
        encoder=config.Lookup(size=size),
        core=config.Stack(sizes=(5, size)),
        output=config.Output(contexts=CONTEXTS[contexts], choice=CHOICES[choice], activation=activation),
    )
    return randomise(build_model(recipe, len(COUNTS), COUNTS))


def model(contexts="single", activation="softmax", words=7, size=4, offset="bias", tied=False, cell=None, **core):
    """Two layers over an embedding, random weights, float64; `core` as in `config.Stack`."""
    recipe = config.Model(
        encoder=config.Lookup(size=size),
        core=config.Stack(sizes=(5, size), cell=config.LSTM() if cell is None else cell, **core),
        output=config.Output(
            contexts=CONTEXTS[contexts],
            choice=config.Flat(tied=tied, **OFFSETS[offset]),
            activation=activation,
        ),
    )
    return randomise(build_model(recipe, words))


def music_model(contexts="single", choice="bernoulli", pitches=88, size=4):
    """Two layers over frames of notes, random weights, float64."""
    recipe = config.Model(
        encoder=config.Frames(size=size, bias=True),
        core=config.Stack(sizes=(5, size)),
        output=config.Output(
            contexts=CONTEXTS[contexts], choice={"bernoulli": config.Bernoulli(), "nade": config.NADE(size=3)}[choice]
        ),
    )
    return randomise(build_model(recipe, pitches))
