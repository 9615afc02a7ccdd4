"""The networks of the laboratory by name: a recurrent layer, or two, between a task's inputs and its answers."""

import re
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from elman import config
from elman.data.classic.task import ClassicTask
from elman.data.windows import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner, Lookback, WholeWindow
from elman.learning.echo_state import NormalEquations
from elman.learning.gradient_norm import GradientNorm
from elman.learning.rtrl import RTRL
from elman.learning.single_step import learns
from elman.network.build import build_model
from elman.network.cores.core import build_core
from elman.network.cores.jordan import Jordan
from elman.network.encoders.encoder import Values
from elman.network.model import LanguageModel
from elman.network.output.contexts import build_contexts
from elman.network.output.gaussian import Gaussian
from elman.network.output.layer import OutputLayer
from elman.network.state import State
from elman.objective.loss import Loss, Objective

# FOLDED laboratory/rules.py: The learning rules of the laboratory by name.
RULES = {
    "bptt": "back-propagation through the whole sequence",
    "bptt-H": "back through H steps and no further, such as bptt-1 (Elman's and Jordan's) or bptt-16",
    "rtrl": "real-time recurrent learning: the same gradient forward in time; for small networks",
    "bptt+W": "bptt and Pascanu's regulariser of weight W, such as bptt+0.1",
}


def learning_rule(name: str) -> Learner:
    """The rule of a name.

    Raises:
        UserError: there is none.

    """
    if name == "bptt":
        return WholeWindow()
    if name == "rtrl":
        return RTRL()
    if found := re.fullmatch(r"bptt-([1-9]\d*)", name):
        return Lookback(int(found[1]))
    if (found := re.fullmatch(r"bptt\+(\d*\.?\d+)", name)) and float(found[1]) > 0:
        return GradientNorm(WholeWindow(), float(found[1]))
    raise UserError(f"there is no rule {name}; there are bptt, bptt-H (bptt-1), rtrl and bptt+W (bptt+0.1)")


# FOLDED laboratory/readout.py: The readout of an echo state network: linear, of real values, by ridge regression (Jaeger 2001).
PENALTY = 1e-6
"""Of the ridge regression, on the sum of squares over all that was heard."""


class RidgeReadout(Learner):
    """Sets the readout to what fits everything heard so far best; it fills no gradient and leaves all else alone.

    The normal equations of all windows are added up (`learning.ridge`), so the solution is the one in closed form.
    """

    def __init__(self) -> None:
        self.equations: NormalEquations | None = None

    @torch.no_grad()
    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        """Learn from one window; the loss is that after it."""
        choice = model.output.choice
        assert isinstance(choice, Gaussian)
        assert batch.mask is not None
        trace, state = model.trace(batch.inputs, state)
        states, targets = _with_one(trace.top[batch.mask]), batch.targets[batch.mask]
        if self.equations is None:
            self.equations = NormalEquations(states.shape[1], targets.shape[1])
        self.equations.add(states, targets)
        weights = self.equations.solve(PENALTY).t()
        choice.readout.weight.copy_(weights[:, :-1])
        choice.readout.bias.copy_(weights[:, -1])
        return objective.of_trace(model, trace, batch), state


def _with_one(states: Tensor) -> Tensor:
    return torch.cat([states, torch.ones_like(states[:, :1])], dim=1)


def learner_of(model: LanguageModel, rule: str) -> Learner:
    """How a network of the laboratory learns: by the rule of a name, or, where only a linear readout can, by ridge.

    Raises:
        UserError: there is no such rule.

    """
    learner = learning_rule(rule)
    linear = isinstance(model.output.choice, Gaussian)
    return RidgeReadout() if linear and not learns(model.core) else learner


# TARGET
VECTOR = 16
"""The widest vector of a symbol."""

INITIALISATION = config.Initialisation(
    embedding=config.Normal(std=1.0),
    input=config.Glorot(),
    hidden=config.Orthogonal(),
    bias=config.Zeros(),
    forget_bias=1.0,
)
"""Orthogonal recurrent weights, so that Elman's network begins as well as it can; forget gates begin open."""


class Network(NamedTuple):
    """A kind of network.

    Attributes:
        sentence: what it is.
        core: from the number of units to its recurrent core.
        initialisation: of its weights.

    """

    sentence: str
    core: Callable[[int], config.Core]
    initialisation: config.Initialisation = INITIALISATION


def _layer(cell: config.Cell) -> Callable[[int], config.Core]:
    return lambda size: config.Stack(sizes=(size,), cell=cell, biases=1)


def _graves(size: int) -> config.Core:
    return config.Stack(sizes=(size, size), cell=config.LSTM(peepholes=True), connections="graves", biases=1)


def _melis(size: int) -> config.Core:
    return config.Stack(sizes=(size, size), cell=config.LSTM(input_gate="capped"), connections="melis", biases=1)


_IDENTITY = config.Initialisation(
    embedding=config.Normal(std=1.0), input=config.Normal(std=0.001), hidden=config.Identity(), bias=config.Zeros()
)

NETWORKS: dict[str, Network] = {
    "elman": Network("Elman 1990: tanh", _layer(config.Elman())),
    "irnn": Network("Le et al. 2015: ReLU, from the identity on", _layer(config.Elman(nonlinearity="relu")), _IDENTITY),
    "jordan": Network("Jordan 1986: hears its own output; for symbols", lambda n: config.Jordan(size=n, decay=0.5)),
    "rung-forget": Network("Elman with a forget gate", _layer(config.Ladder(rung="forget"))),
    "rung-input": Network("and an input gate", _layer(config.Ladder(rung="input"))),
    "lstm": Network("and an output gate: LSTM (Gers et al. 2000)", _layer(config.LSTM())),
    "lstm-1997": Network("LSTM without a forget gate", _layer(config.LSTM(forget_gate=False))),
    "lstm-peephole": Network("LSTM whose gates see the cell (Graves 2013)", _layer(config.LSTM(peepholes=True))),
    "lstm-coupled": Network("LSTM with i = 1 - f (Greff et al. 2017)", _layer(config.LSTM(input_gate="coupled"))),
    "lstm-capped": Network("LSTM with i at most 1 - f (Melis et al. 2018)", _layer(config.LSTM(input_gate="capped"))),
    "gru": Network("Cho et al. 2014, reset after the product", _layer(config.GRU())),
    "gru-before": Network("Cho et al. 2014, reset before the product", _layer(config.GRU(reset="before"))),
    "highway": Network("Zilly et al. 2017, depth 3", _layer(config.Highway(depth=3))),
    "mogrifier": Network("Melis et al. 2020, 5 rounds", _layer(config.Mogrifier())),
    "graves": Network("Graves 2013: two layers, both joined to input and output, peepholes", _graves),
    "melis": Network("Melis et al. 2018: two layers of capped LSTMs, added up", _melis),
    "echo-state": Network("Jaeger 2001: only the readout learns", lambda n: config.Reservoir(size=n)),
}  # fmt: skip


def network(name: str) -> Network:
    """The network of a name.

    Raises:
        UserError: there is none.

    """
    if name not in NETWORKS:
        raise UserError(f"there is no cell {name}; `elman lab cells` shows them: {', '.join(NETWORKS)}")
    return NETWORKS[name]


def build_network(task: ClassicTask, name: str, size: int) -> LanguageModel:
    """A network of `size` units for a task, initialised from torch's global random state.

    Symbols have vectors and a softmax; real values are read as they are and answered linearly.

    Raises:
        UserError: there is none of that name, or it does not fit the task.

    """
    chosen = network(name)
    core, rules = chosen.core(size), chosen.initialisation
    if task.kind == "symbols":
        recipe = config.Model(encoder=config.Lookup(size=min(task.inputs, VECTOR)), core=core, initialisation=rules)
        return build_model(recipe, task.inputs)
    if isinstance(core, config.Jordan):
        raise UserError(f"the cell {name} hears its own symbols, and the task {task.name} is of real values")
    built = build_core(core, task.inputs, locked=True)
    assert not isinstance(built, Jordan)
    width = built.dims[-1]
    model = LanguageModel(
        Values(task.inputs),
        built,
        OutputLayer(build_contexts(config.Output(), built.dims), Gaussian(task.outputs, width)),
    )
    model.initialise(rules)
    return model
