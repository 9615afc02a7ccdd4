"""The cost of the spectral projection, compared with gradient clipping and other ways to project."""

import itertools
import time
from dataclasses import dataclass, replace
from statistics import fmean

import torch

from elman import config
from elman.config.toml import find, load_recipe
from elman.data.text.corpus import open_corpus
from elman.data.windows import TrainingWindows
from elman.learning.bptt import WholeWindow
from elman.learning.constraint import spectral_projector
from elman.learning.progress import rate
from elman.learning.projections.projector import BySVD
from elman.learning.update import Update, build_optimiser
from elman.network.build import build_model
from elman.network.cores.stack import StackCore, candidate_hidden
from elman.objective.loss import build_objective
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.claims.constraint import DELTAS
from elman.study.comparison import Bound

PAPER = "ptb/gru-constrained.toml"


class TimedTraining:
    """The training of a stack of recurrent layers on a text, without its constraint, timed in processor time.

    Without `data` the text is the recipe's.
    """

    def __init__(self, recipe: config.Recipe, data: str | None = None) -> None:
        assert isinstance(recipe.data, config.TextData)
        source, training, self.recipe = data or recipe.data.corpus, recipe.training, recipe
        assert source is not None, "the recipe names its corpus"
        corpus = open_corpus(source, recipe.data.options)
        torch.manual_seed(recipe.seed)
        self.model = build_model(recipe.model, len(corpus.vocabulary)).train()
        core = self.model.core
        assert isinstance(core, StackCore), "the recipe has recurrent layers"
        self.windows = TrainingWindows(corpus.split("train").tokens, training.batch_size, training.window.length)
        spans = self.windows.spans(0)
        self.spans, self.steps_per_epoch = itertools.cycle(spans), len(spans)
        optimiser = build_optimiser(training, self.model)
        self.update = Update(self.model, WholeWindow(), build_objective(training), optimiser, clip=1e9)
        self.block = candidate_hidden(core.layers[0]).detach()  # type: ignore[arg-type]

    def step(self, epoch: float = 0.0) -> tuple[float, float]:
        """Seconds of the step without clipping, and of clipping, at a threshold that is never reached.

        The rate is taken from the schedule at `epoch`.
        """
        training = self.recipe.training
        lr = rate(training.schedule, training.optimiser.lr, epoch, training.epochs, [])
        batch = self.windows.batch(next(self.spans))
        start = time.process_time()
        self.update.gradient(batch)
        clipping = time.process_time()
        self.update.clip()
        clipped = time.process_time()
        self.update.apply(lr)
        return time.process_time() - start - (clipped - clipping), clipped - clipping


class Timed:
    """A way to project, the processor time of each projection and the singular values that each computed."""

    def __init__(self, recipe: config.Spectral) -> None:
        self.projector = spectral_projector(recipe, 2 - recipe.delta)
        self.seconds, self.computed = list[float](), list[int]()

    def project_(self, matrix: torch.Tensor) -> None:
        start = time.process_time()
        self.projector.project_(matrix)
        self.seconds.append(time.process_time() - start)
        self.computed.append(self.projector.computed)


class TimedProjections:
    """Training under the default projection, while the other methods project copies of the same matrices in turn.

    The others are timed at `others` steps; the constraint is sigma_1 <= 2 - delta, and the first projection of each,
    from the orthogonal initial weights, does not count.

    `largest` is the largest sigma_1 that was computed, `deviation` the largest relative distance from the projection by
    a whole SVD.
    """

    def __init__(self, training: TimedTraining, delta: float, others: int) -> None:
        self.training, self.delta, self.others = training, delta, others
        self.default = Timed(config.Spectral(delta=delta))
        self.rest = {
            "eigh": Timed(config.Spectral(delta=delta, method="eigh")),
            "svd": Timed(config.Spectral(delta=delta, method="svd")),
            "truncated": Timed(config.Spectral(delta=delta, method="truncated")),
            "truncated, spectral norm": Timed(config.Spectral(delta=delta, method="truncated", step_norm="spectral")),
        }  # the thesis has both norms
        self.copies = {name: training.block.clone() for name in self.rest}
        self.training_seconds: dict[str, list[float]] = {"step": [], "clipping": []}
        self.largest, self.deviation = 0.0, 0.0
        self.default.project_(training.block)
        for name, one in self.rest.items():
            one.project_(self.copies[name])

    def run(self, steps: int) -> None:
        for number in range(steps):
            before = self.training.block.clone()
            for name, seconds in zip(self.training_seconds, self.training.step(), strict=True):
                self.training_seconds[name].append(seconds)
            update, exact = self.training.block - before, self.training.block.clone()
            self.default.project_(self.training.block)
            if number % max(1, steps // self.others) == 0:
                self._compare(update, exact)

    def _compare(self, update: torch.Tensor, exact: torch.Tensor) -> None:
        block = self.training.block
        self.largest = max(self.largest, torch.linalg.matrix_norm(block.double(), 2).item())
        BySVD(2 - self.delta).project_(exact)
        self.deviation = max(self.deviation, ((block - exact).norm() / exact.norm()).item())
        for name, one in self.rest.items():
            self.copies[name] += update
            one.project_(self.copies[name])

    @property
    def seconds(self) -> dict[str, list[float]]:
        """Of the steps, of clipping, and of each way to project, without the first projection."""
        ways = {"subspace": self.default, **self.rest}
        return self.training_seconds | {name: one.seconds[1:] for name, one in ways.items()}

    def shares(self) -> dict[str, float]:
        """Mean cost of each method and of clipping, in per cent of a training step without them."""
        whole = fmean(self.training_seconds["step"])
        return {name: 100 * fmean(each) / whole for name, each in self.seconds.items() if name != "step"}


@dataclass(frozen=True)
class ProjectionCost:
    """Cost in per cent of a training step at n = 650, from the orthogonal initial W_hh.

    An epoch of Penn Treebank has 1,327 steps; the methods other than the default are timed at `others` of them.
    """

    delta: float
    steps: int
    recipe: str = PAPER
    others: int = 20

    def __call__(self, seed: int, data: str | None) -> Measurement:
        training = TimedTraining(load_recipe(find(self.recipe), [f"seed={seed}"]), data)
        timed = TimedProjections(training, self.delta, self.others)
        timed.run(self.steps)
        shares = timed.shares()
        figures = {"projection": shares["subspace"]} | {name: shares[name] for name in ("clipping", "svd", "truncated")}
        figures |= {"excess": timed.largest - (2 - self.delta), "deviation": timed.deviation}
        return Measurement(figures, {"singular values computed": list(map(float, timed.default.computed[1:]))})


def _cost_of(delta: float, steps: int, minutes: float) -> Arm:
    cost = ProjectionCost(delta, steps)
    quick = Computation(replace(cost, steps=40, others=5), 0.4)
    return Arm(f"delta {delta:g}", Computation(cost, minutes, quick), Computation(replace(cost, steps=1327), 12))


PROJECTION_COST = Claim(
    name="projection-cost", published_text="Penn Treebank",
    sentence="the projection costs less than 3 % of a training step, and less than gradient clipping does",
    source="Kanai's thesis, Table 3.6",
    arms=(_cost_of(0.2, 1327, 12), *(_cost_of(delta, 200, 2) for delta in DELTAS[1:])),
    measure=ClaimMeasure(
        "cost",
        {
            "projection": "projection, % of a step", "clipping": "clipping, %", "svd": "whole SVD, %",
            "truncated": "Algorithm 3.2, %", "excess": "sigma_1 - (2 - delta)",
            "deviation": "relative distance from the result of the SVD",
        },
        timed=True, curve=CurveAxes("singular values computed", "steps", relative=False, logarithmic=False),
    ),
    comparisons=(
        *(Bound("projection", "delta 0.2", limit) for limit in (3.0, "clipping")),
        *(Bound("excess", f"delta {delta:g}", 1e-4) for delta in DELTAS),
    ),
    published={"delta 0.2": "4.55e4 s of training against 4.96e4 s with clipping (5.02e4 s by a whole SVD)"}, seeds=1,
    notes="n = 650, processor time in one training: the default projection bounds the weights, the other methods"
    " project copies. delta 0.2 over an epoch of Penn Treebank (1,327 steps); small scale: the others over 200 steps.",
)  # fmt: skip
