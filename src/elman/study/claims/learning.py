"""Learning rules: RTRL computes the gradient of BPTT, and an echo state network learns by its readout alone."""

import math
import time
from dataclasses import dataclass

import torch

from elman import config
from elman.data.batches import Batch
from elman.data.classic.mackey_glass import mackey_glass
from elman.learning.bptt import Learner, WholeWindow
from elman.learning.echo_state import fit_next
from elman.learning.rtrl import RTRL, cost
from elman.network.build import build_model
from elman.network.cores.core import Surroundings
from elman.network.cores.reservoir import Reservoir, ReservoirCore
from elman.network.cores.stack import Stack
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.objective.loss import Objective
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.comparison import Bound

SYMBOLS = 5


@dataclass(frozen=True)
class RtrlAndBptt:
    """Relative distance of the gradients of RTRL and BPTT in float64, and milliseconds per step of RTRL by n.

    Networks of `sizes` units are timed, the fastest of `repetitions` steps; the gradients are taken at `units` units
    over `steps` steps of `rows` sequences.
    """

    cell: config.Cell
    symbols: int = SYMBOLS
    sizes: tuple[int, ...] = (32, 64, 128, 192)
    repetitions: int = 3
    units: int = 12
    steps: int = 12
    rows: int = 3

    def __call__(self, seed: int, _: str | None) -> Measurement:
        torch.manual_seed(seed)
        milliseconds = [1e3 * seconds_per_step(self.cell, n, self.repetitions, self.symbols) for n in self.sizes]
        products = [cost(symbol_model(self.cell, n, self.symbols), 1).multiply_adds for n in self.sizes]
        figures, growth = {"difference": self._gradient_difference()}, math.log(self.sizes[-1] / self.sizes[-2])
        for name, costs in (("exponent", milliseconds), ("theory", products)):  # the k of costs that grow as n^k
            figures[name] = math.log(costs[-1] / costs[-2]) / growth
        return Measurement(figures, {"milliseconds": milliseconds})

    def _gradient_difference(self) -> float:
        """||RTRL - BPTT|| / ||BPTT|| over a sequence, in float64; RTRL reads it in windows of one step."""
        model = symbol_model(self.cell, self.units, self.symbols).double()
        tokens = torch.randint(self.symbols, (self.steps + 1, self.rows))
        windows = [Batch(tokens[t : t + 1], tokens[t + 1 : t + 2]) for t in range(self.steps)]
        ours = gradient(RTRL(), model, windows)
        wanted = gradient(WholeWindow(), model, [Batch(tokens[:-1], tokens[1:])])
        return ((ours - wanted).norm() / wanted.norm()).item()


def gradient(learner: Learner, model: LanguageModel, windows: list[Batch]) -> torch.Tensor:
    """The summed gradient of consecutive windows, as one vector."""
    model.zero_grad()
    state = learner.begin(model, windows[0].inputs.shape[1])
    for window in windows:
        _, state = learner(model, Objective(reduction="sum"), window, state)
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def seconds_per_step(cell: config.Cell, units: int, repetitions: int, symbols: int = SYMBOLS) -> float:
    """Processor time of one RTRL step of one sequence, the least of several."""
    model = symbol_model(cell, units, symbols)
    learner, window = RTRL(max_gb=8.0), Batch(torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1, dtype=torch.long))
    state = learner.begin(model, 1)
    times = []
    for _ in range(repetitions + 1):
        began = time.process_time()
        _, state = learner(model, Objective(), window, state)
        times.append(time.process_time() - began)
    return min(times[1:])


def symbol_model(cell: config.Cell, units: int, symbols: int = SYMBOLS) -> LanguageModel:
    core = Stack(sizes=(units,), cell=cell)
    return build_model(config.Model(encoder=Lookup(size=4), core=core), symbols)


@dataclass(frozen=True)
class Prediction:
    """NRMSE of free runs from many points of the Mackey-Glass series beyond the training steps.

    Of `heard` steps of the series, training takes those from `washout` to `learnt`; runs of `ahead` steps start `every`
    steps after that.
    """

    reservoirs: int = 5
    units: int = 500
    radius: float = 1.0
    leak: float = 0.7
    density: float = 0.02
    bias_scale: float = 0.2
    washout: int = 200
    learnt: int = 3_200
    heard: int = 6_200
    ahead: int = 84
    every: int = 50

    def __call__(self, seed: int, _: str | None) -> Measurement:
        values = torch.from_numpy(mackey_glass(self.heard, seed=seed))
        errors = [self._nrmse(values, self.reservoirs * seed + index) for index in range(self.reservoirs)]
        figures = {"NRMSE": sum(errors) / self.reservoirs, "worst": max(errors)}
        return Measurement(figures, {"NRMSE": sorted(errors)})

    def _nrmse(self, values: torch.Tensor, seed: int) -> float:
        """Root mean square error of one reservoir over the standard deviation of the series."""
        series = (values - 1).tanh()[:, None, None]
        record = Reservoir(
            size=self.units, radius=self.radius, leak=self.leak, density=self.density, bias_scale=self.bias_scale
        )
        core = ReservoirCore(record, Surroundings(input_size=1)).double()
        drawn = core.draw(torch.Generator().manual_seed(seed))
        network = fit_next(drawn, series[: self.learnt], washout=self.washout)
        starts = torch.arange(self.learnt + 2 * self.every, self.heard - self.ahead - 1, self.every)
        heard, _ = core.run(series, core.begin(1))
        said, _ = network.predict(series, network.begin(1))
        ahead, _ = network.generate(said[starts, 0], (heard[starts, 0],), self.ahead - 1)
        found = ahead[-1, :, 0].clamp(-0.999, 0.999).atanh() + 1
        return ((found - values[starts + self.ahead]).square().mean() / values.var()).sqrt().item()


_CELLS: dict[str, config.Cell] = {"elman": config.Elman(), "lstm": config.LSTM(), "gru": config.GRU()}

RTRL_EQUALS_BPTT = Claim(
    name="rtrl-equals-bptt", sentence="RTRL computes the gradient of BPTT, at a cost that grows as n^4",
    source="Williams & Zipser 1989",
    arms=tuple(
        Arm(name, Computation(RtrlAndBptt(cell), 0.2, Computation(RtrlAndBptt(cell, sizes=(32, 64)), 0.05)))
        for name, cell in _CELLS.items()
    ),
    measure=ClaimMeasure(
        "rtrl",
        {
            "difference": "relative distance of the gradients",
            "exponent": "exponent of n in the time per step, between the two largest networks",
            "theory": "exponent of n in its multiply-adds",
        },
        timed=True, curve=CurveAxes("milliseconds", f"units: {', '.join(map(str, RtrlAndBptt.sizes))}", relative=False),
    ),
    comparisons=tuple(Bound("difference", name, 1e-10) for name in _CELLS),
    published={"elman": "the same gradient; O(n^4) per step"},
    notes="In float64, RTRL in windows of one step. The time grows as n^4 only where the product J P dominates;"
    " benchmarks/rtrl.py times larger networks.",
)  # fmt: skip

ECHO_STATE = Claim(
    name="echo-state", published_text="Mackey-Glass",
    sentence="500 untrained units predict Mackey-Glass 84 steps ahead to an NRMSE of 0.005 or less",
    source="Jaeger 2001; Jaeger & Haas 2004",
    arms=(Arm("reservoir", Computation(Prediction(), 0.5, Computation(Prediction(reservoirs=1), 0.1))),),
    measure=ClaimMeasure("echo", {"NRMSE": "mean NRMSE of the reservoirs", "worst": "the worst of them"}),
    comparisons=(Bound("NRMSE", "reservoir", 0.005),), published={"reservoir": "10^-4.2, 1,000 units"}, seeds=1,
    notes="tau = 17; the readout learns from 3,200 steps by ridge regression.",
)  # fmt: skip
