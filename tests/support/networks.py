"""Small parts with random weights, for the tests of single parts.

CELLS, CORES and CHOICES hold named variants of the records of each union of `elman.config`; a record without a variant
is added with default values, so that a new part is tested without an entry.
"""

import msgspec
import torch

from elman import config
from elman.config.parts import convert, members
from elman.network.build import build_model
from elman.network.cells.cell import Cell, Weights, unroll
from elman.network.cores.core import Surroundings, build_core
from elman.network.cores.jordan import JordanCore
from elman.network.cores.layer import Layer
from elman.network.cores.ntm import TuringMachineCore
from elman.network.cores.reservoir import ReservoirCore
from elman.network.cores.stack import StackCore
from elman.network.cores.window import FeedForwardCore


def tag(kind):
    """The kind of a record as a recipe writes it."""
    return msgspec.inspect.type_info(kind).tag


def example(kind):
    """A record with small numbers where it has no defaults."""
    for number in (4, (4,), (4, 9), {"0": 2}):
        required = {field.name: number for field in msgspec.structs.fields(kind) if field.required}
        try:
            return convert({"kind": tag(kind), **required}, kind)
        except msgspec.ValidationError:
            continue
    raise AssertionError(f"no example of {kind.__name__}")


OF_VECTORS = (config.Bernoulli, config.NADE, config.Gaussian, config.GaussianMixture)
"""Choices of frames and of values, not of symbols."""


def with_examples(union, variants, without=()):
    """The variants, and an example of every other record of the union."""
    missing = set(members(union).values()) - {type(record) for record in variants.values()} - set(without)
    return variants | {tag(kind): example(kind) for kind in sorted(missing, key=tag)}


CELL_RECORDS = with_examples(
    config.Cell,
    {
        "elman-tanh": config.Elman(),
        "elman-sigmoid": config.Elman(nonlinearity="sigmoid"),
        "elman-relu": config.Elman(nonlinearity="relu"),
        "elman-softplus": config.Elman(nonlinearity="softplus"),
        "continuous": config.Continuous(tau=(2.0, 9.0)),
        "continuous-learned": config.Continuous(tau=(1.5, 5.0), nonlinearity="softplus", learned=True),
        "lstm": config.LSTM(),
        "lstm-1997": config.LSTM(forget_gate=False),
        "lstm-peephole": config.LSTM(peepholes=True),
        "gru-before": config.GRU(reset="before"),
        "gru-after": config.GRU(),
        "lstm-coupled": config.LSTM(input_gate="coupled"),
        "lstm-capped": config.LSTM(input_gate="capped"),
        **{
            f"lstm-{one}": config.LSTMVariant(variant=one)
            for one in ("nig", "nfg", "nog", "niaf", "noaf", "cifg", "fgr")
        },
        "chaos-free": config.ChaosFree(),
        **{f"mut{number}": config.MUT(number=number) for number in (1, 2, 3)},
        "rung-forget": config.Ladder(),
        "rung-input": config.Ladder(rung="input"),
        "highway-1": config.Highway(depth=1),
        "highway-3": config.Highway(depth=3),
        "highway-2-carry": config.Highway(depth=2, coupled=False),
        "qrnn-1": config.QRNN(window=1),
        "qrnn-2": config.QRNN(),
        "sru": config.SRU(highway_bias=-1.0),
        "lru": config.LRU(),
        "lru-3": config.LRU(states=3, radius=(0.5, 0.9), phase=0.3),
        "rg-lru": config.RGLRU(heads=2, convolution=3),
        "slstm": config.SLSTM(heads=2),
        "slstm-exponential": config.SLSTM(heads=1, forget="exponential"),
        "mlstm": config.MLSTM(heads=2),
        "mlstm-without-norm": config.MLSTM(heads=1, head_norm=False),
        "mlstm-convolution": config.MLSTM(heads=2, convolution=3),
        "mamba2": config.Mamba2(heads=2, states=3, convolution=3),
        "deltanet": config.DeltaNet(heads=2, convolution=3),
        "deltanet-negative": config.DeltaNet(heads=1, gated=False, negative_eigenvalues=True, convolution=2),
        "rwkv7": config.RWKV7(heads=2, rank=3),
        "local-attention": config.LocalAttention(heads=2, window=4),
        "attention-to-two": config.LocalAttention(heads=1, window=2),
        "mogrifier-5": config.Mogrifier(),
        "mogrifier-4-low-rank": config.Mogrifier(rounds=4, rank=2, input_gate="capped"),
    },
)
CELLS = CELL_RECORDS

CONTEXTS = {
    "single": config.Single(),
    "mos": config.Mixture(heads={2: 3}, size=4),
    "doc": config.Mixture(heads={0: 1, 1: 2, 2: 2}, size=4),
}


def toy(one_step, over_time=None, slots=1):
    """A cell of one gate with these functions as its step and its scan."""

    class Toy(Cell, frozen=True, tag="toy"):
        gates = ("n",)
        candidate = "n"

        def shapes(self, inputs, size):
            return ((size,),) * slots

        def step(self, w, x, state):
            return one_step(w, x, state)

        def scan(self, w, xs, state):
            return unroll(self.step, w, xs, state) if over_time is None else over_time(w, xs, state)

    return Toy()


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


def weights(cell, inputs=3, size=4, biases=2):
    """Leaves with gradients, float64."""

    def leaf(*shape):
        return (0.7 * torch.randn(*shape, dtype=torch.float64)).requires_grad_()

    rows, input_rows = len(cell.gates) * size, len(cell.input_gates) * size
    shapes = {"weight_ih": (input_rows, inputs)}
    if cell.has_matrices:
        shapes["weight_hh"] = (rows, size)
    if biases >= 1 and input_rows:
        shapes["bias_ih"] = (input_rows,)
    if biases == 2 and rows:
        shapes["bias_hh"] = (rows,)
    shapes |= {name: array.shape for name, array in cell.arrays(inputs, size).items()}
    return Weights(**{name: leaf(*shape) for name, shape in shapes.items()})


def state(cell, rows=2, size=4, inputs=3):
    """Leaves of random numbers; where their shapes are the cell's own, those that random steps have reached."""
    shapes = cell.shapes(inputs, size)
    if len(shapes) <= 2:
        return tuple(torch.randn(rows, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    with torch.no_grad():
        begun = tuple(torch.zeros(rows, *shape, dtype=torch.float64) for shape in shapes)
        xs = torch.randn(5, rows, inputs, dtype=torch.float64)
        _, reached = unroll(cell.step, weights(cell, inputs, size), xs, begun)
    return tuple(part.clone().requires_grad_() for part in reached)


def stack(name, sizes=(6, 4), inputs=3, **rates):
    cell = CELLS[name]
    layers = [Layer(cell, below, size) for below, size in zip((inputs, *sizes), sizes, strict=False)]
    return randomise(StackCore(layers, **rates))


def connected(name, connections, sizes=(4, 4), inputs=3, **rates):
    record = config.Stack(sizes=sizes, cell=CELL_RECORDS[name], connections=connections, **rates)
    return randomise(build_core(record, inputs, locked=True))


class FreeJordan(JordanCore):
    """Jordan's network of 4 units with a fixed output layer of 5 outputs."""

    outputs = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def forward(self, x, state, answer=None):
        return super().forward(x, state, lambda trace: (trace.top @ self.outputs.t()).log_softmax(-1))


CORES = {name: lambda name=name: stack(name) for name in CELLS} | {
    "graves": lambda: connected("lstm", "graves", (4, 5)),
    "melis": lambda: connected("lstm-capped", "melis"),
    "jordan": lambda: randomise(FreeJordan(config.Jordan(size=4), Surroundings(3, 5))),
    "jordan-decay": lambda: randomise(
        FreeJordan(config.Jordan(size=4, decay=0.5, nonlinearity="sigmoid"), Surroundings(3, 5))
    ),
    "jordan-target": lambda: randomise(JordanCore(config.Jordan(size=4, feedback="target"), Surroundings(3, 5))),
    "jordan-target-decay": lambda: randomise(
        JordanCore(config.Jordan(size=4, feedback="target", decay=0.7), Surroundings(3, 5))
    ),
    "reservoir": lambda: ReservoirCore(config.Reservoir(size=30, bias_scale=0.2), Surroundings(3)).double().draw(),
    "reservoir-leaky": lambda: (
        ReservoirCore(config.Reservoir(size=30, leak=0.3, density=0.5), Surroundings(3)).double().draw()
    ),
    "window-1": lambda: randomise(FeedForwardCore(config.FeedForward(width=1, size=4), Surroundings(3))),
    "window-3": lambda: randomise(FeedForwardCore(config.FeedForward(width=3, size=4), Surroundings(3))),
    "window-4-direct": lambda: randomise(
        FeedForwardCore(config.FeedForward(width=4, size=4, direct=True), Surroundings(3))
    ),
}
CORES |= {
    name: lambda record=record: randomise(TuringMachineCore(record, Surroundings(3)))
    for name, record in {
        "ntm": config.TuringMachine(size=4, rows=5, width=2),
        "ntm-heads": config.TuringMachine(
            size=3, rows=4, width=2, read_heads=2, write_heads=2, reach=0, controller=config.GRU()
        ),
        "ntm-feed-forward": config.TuringMachine(size=4, rows=6, width=2, reach=2, controller=config.Perceptron()),
    }.items()
}
_TESTED = (config.Stack, config.Jordan, config.Reservoir, config.FeedForward, config.TuringMachine)
CORES |= {
    tag(kind): lambda kind=kind: randomise(build_core(example(kind), 3, 5, locked=True))
    for kind in set(members(config.Core).values())
    - {*_TESTED, config.Attentive, config.Recursive, config.Sentence}  # which needs a source: test_seq2seq
}

COUNTS = (40, 31, 17, 9, 9, 7, 5, 4, 3, 2, 1, 1, 0)

CHOICE_VARIANTS = {
    "flat": config.Flat(),
    "adaptive": config.Adaptive(cutoffs=(4, 9), div_value=2.0),
    "adaptive-tied": config.Adaptive(cutoffs=(4, 9), bias=True, tied=True),
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
CHOICES = with_examples(config.Choice, CHOICE_VARIANTS, without=OF_VECTORS)


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
