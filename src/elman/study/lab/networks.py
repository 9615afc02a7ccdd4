"""The networks and learning rules of the laboratory by name."""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec
import torch

from elman import config
from elman.data.batches import Batch
from elman.data.classic.task import ClassicTask
from elman.errors import UserError
from elman.learning.bptt import Learner, WholeWindow
from elman.learning.echo_state import NormalEquations
from elman.learning.gradient_norm import GradientNorm
from elman.learning.lookback import Attenuated, FedBackTruth, Lookback
from elman.learning.rtrl import RTRL
from elman.learning.single_step import learns
from elman.network.build import build_model
from elman.network.cells.lstm_variant import Variant
from elman.network.cores.core import build_core
from elman.network.cores.jordan import Jordan, JordanCore
from elman.network.cores.ntm import TuringMachine
from elman.network.cores.reservoir import Reservoir
from elman.network.cores.residual import Residual
from elman.network.cores.stack import Stack
from elman.network.encoders.encoder import Inputs
from elman.network.encoders.lookup import Lookup
from elman.network.encoders.values import Values
from elman.network.model import LanguageModel
from elman.network.output.bernoulli import Bernoulli
from elman.network.output.choice import Surroundings
from elman.network.output.contexts import build_contexts
from elman.network.output.gaussian import Gaussian, GaussianChoice
from elman.network.output.layer import OutputLayer
from elman.network.state import State
from elman.objective.loss import Loss, Objective

INITIALISATION = config.Initialisation(
    embedding=config.Normal(std=1.0),
    input=config.Glorot(),
    hidden=config.Orthogonal(),
    bias=config.Zeros(),
    forget_bias=1.0,
)
"""Orthogonal recurrent weights, the best start for Elman's network; forget gates begin open."""


class Network(NamedTuple):
    """A kind of network: its description, its recurrent core by the number of units, and how its weights begin."""

    sentence: str
    core: Callable[[int], config.Core]
    initialisation: config.Initialisation = INITIALISATION


def _layer(cell: config.Cell) -> Callable[[int], config.Core]:
    return lambda size: Stack(sizes=(size,), cell=cell, biases=1)


def _block(cell: config.Cell) -> Callable[[int], config.Core]:
    return lambda size: Residual(size=size, depth=1, cell=cell)


def _two(cell: config.Cell, connections: Literal["graves", "melis"]) -> Callable[[int], config.Core]:
    return lambda size: Stack(sizes=(size, size), cell=cell, connections=connections, biases=1)


_OPEN = msgspec.structs.replace(INITIALISATION, forget_bias=3.0)
"""Forget gates of .95 at first, by which a state outlasts dozens of steps before anything is learnt."""

_IDENTITY = config.Initialisation(
    embedding=config.Normal(std=1.0), input=config.Normal(std=0.001), hidden=config.Identity(), bias=config.Zeros()
)

_VARIANTS: dict[Variant, str] = {
    "nig": "no input gate", "nfg": "no forget gate", "nog": "no output gate", "niaf": "no activation of the input",
    "noaf": "no activation of the output", "cifg": "i = 1 - f", "fgr": "gates that hear the gates",
}  # fmt: skip

NETWORKS: dict[str, Network] = {
    "elman": Network("Elman 1990: tanh", _layer(config.Elman())),
    "irnn": Network("Le et al. 2015: ReLU, from the identity", _layer(config.Elman(nonlinearity="relu")), _IDENTITY),
    "jordan": Network("Jordan 1986: reads its own output; for symbols", lambda n: Jordan(size=n, decay=0.5)),
    "rung-forget": Network("Elman with a forget gate", _layer(config.Ladder(rung="forget")), _OPEN),
    "rung-input": Network("and an input gate", _layer(config.Ladder(rung="input")), _OPEN),
    "rung-output": Network("and an output gate: the LSTM, gates as open", _layer(config.LSTM()), _OPEN),
    "lstm": Network("LSTM (Gers et al. 2000)", _layer(config.LSTM())),
    "lstm-1997": Network("LSTM without a forget gate", _layer(config.LSTM(forget_gate=False))),
    "lstm-peephole": Network("LSTM whose gates see the cell (Graves 2013)", _layer(config.LSTM(peepholes=True))),
    "lstm-coupled": Network("LSTM with i = 1 - f (Greff et al. 2017)", _layer(config.LSTM(input_gate="coupled"))),
    "lstm-capped": Network("LSTM with i at most 1 - f (Melis et al. 2018)", _layer(config.LSTM(input_gate="capped"))),
    **{f"lstm-{one}": Network(f"Greff et al. 2017: peepholes, {what}", _layer(config.LSTMVariant(variant=one)))
       for one, what in _VARIANTS.items()},
    "gru": Network("Cho et al. 2014, reset after the product", _layer(config.GRU())),
    "gru-before": Network("Cho et al. 2014, reset before the product", _layer(config.GRU(reset="before"))),
    "chaos-free": Network("Laurent & von Brecht 2017: decays without input", _layer(config.ChaosFree())),
    "mut1": Network("Jozefowicz et al. 2015: found by a search", _layer(config.MUT(number=1))),
    "mut2": Network("the same, the second of three", _layer(config.MUT(number=2))),
    "mut3": Network("the same, the third", _layer(config.MUT(number=3))),
    "continuous": Network("Beer 1995: leaky units, time constants of 1 to 64 steps at first, learned",
                          _layer(config.Continuous(dt=0.5, tau=(1.0, 64.0), learned=True))),
    "unitary": Network("Arjovsky et al. 2016: complex units, a unitary recurrence; an even size",
                       _layer(config.Unitary())),
    "highway": Network("Zilly et al. 2017, depth 3", _layer(config.Highway(depth=3))),
    "mogrifier": Network("Melis et al. 2020, 5 rounds", _layer(config.Mogrifier())),
    "min-gru": Network("Feng et al. 2024: gates of the input alone", _layer(config.MinGRU())),
    "min-lstm": Network("Feng et al. 2024: the LSTM's", _layer(config.MinLSTM())),
    "qrnn": Network("Bradbury et al. 2017: gates of two inputs", _layer(config.QRNN())),
    "sru": Network("Lei et al. 2018: gates see their own cell", _layer(config.SRU())),
    "lru": Network("Orvieto et al. 2023: linear, complex and diagonal, in a residual block", _block(config.LRU())),
    "rg-lru": Network("De et al. 2024: linear, real and gated, in a residual block; a size divisible by 4",
                      _block(config.RGLRU())),
    "slstm": Network("Beck et al. 2024: exponential gates; a size divisible by 4", _layer(config.SLSTM())),
    "mlstm": Network("Beck et al. 2024: a matrix memory, in a residual block; a size divisible by 4",
                     _block(config.MLSTM(convolution=4))),
    "mamba2": Network("Dao & Gu 2024: a decay per head, in a residual block; an even size", _block(config.Mamba2())),
    "deltanet": Network("Yang et al. 2024: the gated delta rule, in a residual block; a size divisible by 4",
                        _block(config.DeltaNet())),
    "deltanet-negative": Network("the same with eigenvalues below 0 (Grazzi et al. 2024)",
                                 _block(config.DeltaNet(negative_eigenvalues=True))),
    "rwkv7": Network("Peng et al. 2025, in a residual block; a size divisible by 4", _block(config.RWKV7())),
    "transformer": Network("Vaswani et al. 2017: attention to the last 128 inputs, in a residual block; a size"
                           " divisible by 4", _block(config.LocalAttention())),
    "graves": Network("Graves 2013: two layers, both connected to input and output, peepholes",
                      _two(config.LSTM(peepholes=True), "graves")),
    "melis": Network("Melis et al. 2018: two layers of capped LSTMs, summed",
                     _two(config.LSTM(input_gate="capped"), "melis")),
    "ntm": Network("Graves et al. 2014: an LSTM beside a memory of 128 x 20", lambda n: TuringMachine(size=n)),
    "ntm-feed-forward": Network("the same with a controller that has no state",
                                lambda n: TuringMachine(size=n, controller=config.Perceptron())),
    "echo-state": Network("Jaeger 2001: only the readout is trained", lambda n: Reservoir(size=n)),
}  # fmt: skip


def build_network(task: ClassicTask, name: str, size: int) -> LanguageModel:
    """A network of `size` units for a task, initialised from torch's global random state.

    Symbols have vectors and a softmax; real values and bits are read unchanged, and have a linear output or independent
    logistic ones. Raises UserError where there is no such network, or it does not fit the task.
    """
    if name not in NETWORKS:
        raise UserError(f"there is no cell {name}; `elman lab cells` shows them: {', '.join(NETWORKS)}")
    core, rules = NETWORKS[name].core(size), NETWORKS[name].initialisation
    if task.kind == "symbols":
        recipe = config.Model(encoder=Lookup(size=min(task.inputs, 16)), core=core, initialisation=rules)
        return build_model(recipe, task.inputs)
    if isinstance(core, Jordan):
        has = "bits" if task.kind == "bits" else "real values"
        raise UserError(f"the cell {name} reads its own symbols, but the task {task.name} has {has}")
    built = build_core(core, task.inputs, locked=True)
    assert not isinstance(built, JordanCore)
    choice = Bernoulli() if task.kind == "bits" else Gaussian(variance="unit")
    contexts = build_contexts(config.Output(), built.dims)
    output = OutputLayer(contexts, choice.build(Surroundings(built.dims[-1], task.outputs)))
    model = LanguageModel(Values().build(Inputs(task.inputs)), built, output)
    model.initialise(rules)
    return model


RULES = {
    "bptt": "back-propagation through the whole sequence",
    "bptt-H": "back through H steps only, such as bptt-1 (Elman's and Jordan's) or bptt-16",
    "bptt@F": "errors multiplied by F at every step back, such as bptt@0.9",
    "forced": "one step back, the true output fed back (teacher forcing); for jordan",
    "rtrl": "real-time recurrent learning: the same gradient forward in time; for small networks",
    "bptt+W": "bptt and Pascanu's regulariser of weight W, such as bptt+0.1",
}


def learning_rule(name: str) -> Learner:
    """The rule called `name`; raises UserError if there is none."""
    plain = {"bptt": WholeWindow, "rtrl": RTRL, "forced": FedBackTruth}
    if name in plain:
        return plain[name]()
    if found := re.fullmatch(r"bptt-([1-9]\d*)", name):
        return Lookback(int(found[1]))
    if found := re.fullmatch(r"bptt@(0?\.\d+|0|1)", name):
        return Attenuated(float(found[1]))
    if (found := re.fullmatch(r"bptt\+(\d*\.?\d+)", name)) and float(found[1]) > 0:
        return GradientNorm(WholeWindow(), float(found[1]))
    raise UserError(
        f"there is no rule {name}; choose bptt, bptt-H (bptt-1), bptt@F (bptt@0.9), forced, rtrl or bptt+W (bptt+0.1)"
    )


PENALTY = 1e-6  # of the ridge regression, on the sum of squares over all windows


class RidgeReadout(Learner):
    """Fits the linear readout of an echo state network to all windows so far, by ridge regression (Jaeger 2001).

    The normal equations of the windows are summed, so the solution is the closed form. No gradient is computed.
    """

    def __init__(self) -> None:
        self.equations: NormalEquations | None = None

    @torch.no_grad()
    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        choice = model.output.choice
        assert isinstance(choice, GaussianChoice)
        assert batch.mask is not None
        trace, state = model.trace(batch.inputs, state)
        states, targets = trace.top[batch.mask], batch.targets[batch.mask]
        states = torch.cat([states, torch.ones_like(states[:, :1])], dim=1)
        if self.equations is None:
            self.equations = NormalEquations(states.shape[1], targets.shape[1])
        self.equations.add(states, targets)
        weights = self.equations.solve(PENALTY).t()
        choice.readout.weight.copy_(weights[:, :-1])
        choice.readout.bias.copy_(weights[:, -1])
        return objective.of_trace(model, trace, batch), state


def learner_of(model: LanguageModel, rule: str) -> Learner:
    """Ridge regression where only a linear readout learns, else the rule called `rule`; raises UserError as above."""
    learner = learning_rule(rule)
    return RidgeReadout() if isinstance(model.output.choice, GaussianChoice) and not learns(model.core) else learner
