"""What the spectral constraint costs a step of a real training, beside clipping and the other ways to project."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Literal

import torch

from elman import config
from elman.config.toml import find, load_recipe
from elman.data.text.corpus import open_corpus
from elman.data.windows import TrainingWindows
from elman.learning.bptt import WholeWindow
from elman.learning.constraint import spectral_projector
from elman.learning.optimisers import Optimiser
from elman.learning.projections.projector import BySVD, Projector
from elman.learning.update import Update
from elman.network.build import build_model
from elman.network.cores.stack import Stack, candidate_hidden
from elman.objective.loss import build_objective
from elman.reproduce.claim import Measurement

METHODS: tuple[Literal["subspace", "eigh", "svd", "truncated"], ...] = ("subspace", "eigh", "svd", "truncated")


class Training:
    """A recipe's training, a step at a time, timed in processor time; without a constraint of its own.

    Args:
        recipe: of a stack of recurrent layers.
        data: a text.

    """

    def __init__(self, recipe: config.Recipe, data: str) -> None:
        assert isinstance(recipe.data, config.TextData)
        corpus = open_corpus(data, recipe.data.options)
        torch.manual_seed(recipe.seed)
        self.recipe, training = recipe, recipe.training
        self.model = build_model(recipe.model, len(corpus.vocabulary)).train()
        core = self.model.core
        assert isinstance(core, Stack), "the recipe has recurrent layers"
        self.windows = TrainingWindows(corpus.split("train").tokens, training.batch_size, training.window.length)
        self.spans = self.windows.spans(0)
        optimiser = Optimiser(training.optimiser, list(self.model.parameters()))
        self.update = Update(self.model, WholeWindow(), build_objective(training), optimiser, clip=1e9)
        self.block = candidate_hidden(core.layers[0]).detach()  # type: ignore[arg-type]
        self.done = 0

    def step(self) -> tuple[float, float]:
        """Seconds of the step, and of clipping, which is done here at a threshold that is never met."""
        batch = self.windows.batch(self.spans[self.done % len(self.spans)])
        self.done += 1
        start = time.process_time()
        self.update.gradient(batch)
        clipping = time.process_time()
        self.update.clip()
        clipped = time.process_time()
        self.update.apply(self.recipe.training.optimiser.lr)
        return time.process_time() - start - (clipped - clipping), clipped - clipping


def projectors(delta: float) -> dict[str, Projector]:
    """Every method, for sigma_1 <= 2 - delta; that of the thesis with both its norms."""
    made = {name: spectral_projector(config.Spectral(delta=delta, method=name), 2 - delta) for name in METHODS}
    tight = config.Spectral(delta=delta, method="truncated", step_norm="spectral")
    return made | {"truncated, spectral norm": spectral_projector(tight, 2 - delta)}


def at_the_limit(block: torch.Tensor, limit: float, count: int) -> None:
    """W_hh as late in training: `count` values at the limit, the others spread below 0.8 of it."""
    u, values, vh = torch.linalg.svd(torch.randn_like(block))
    values = torch.cat([torch.full((count,), limit), torch.linspace(0.8, 0.05, len(values) - count) * limit])
    block.copy_((u * values) @ vh)


class Comparison:
    """Training under the default projection; the others project a copy of the same matrices, in turns.

    Args:
        training: the training.
        delta: sigma_1 <= 2 - delta.
        others: at how many steps the other methods are timed.

    Attributes:
        seconds: of every step, of clipping, and of each method.
        computed: singular values the default method computed, step by step.
        largest: sigma_1 at the steps where it was looked at.
        deviation: the largest relative distance from the projection by a whole SVD.

    """

    def __init__(self, training: Training, delta: float, others: int) -> None:
        self.training, self.delta, self.others = training, delta, others
        made = projectors(delta)
        self.default = made.pop("subspace")
        self.rest: Mapping[str, Projector] = made
        self.copies = {name: training.block.clone() for name in made}
        self.seconds: dict[str, list[float]] = {name: [] for name in ("step", "clipping", "subspace", *made)}
        self.computed: list[int] = []
        self.largest, self.deviation = 0.0, 0.0
        self.default.project_(training.block)
        for name, projector in made.items():
            projector.project_(self.copies[name])

    def run(self, steps: int) -> None:
        """Train."""
        for number in range(steps):
            before = self.training.block.clone()
            step, clipping = self.training.step()
            self.seconds["step"].append(step)
            self.seconds["clipping"].append(clipping)
            update, exact = self.training.block - before, self.training.block.clone()
            self._timed("subspace", self.default, self.training.block)
            self.computed.append(self.default.computed)
            if number % max(1, steps // self.others) == 0:
                self._compare(update, exact)

    def _compare(self, update: torch.Tensor, exact: torch.Tensor) -> None:
        block = self.training.block
        self.largest = max(self.largest, torch.linalg.matrix_norm(block.double(), 2).item())
        BySVD(2 - self.delta).project_(exact)
        self.deviation = max(self.deviation, ((block - exact).norm() / exact.norm()).item())
        for name, projector in self.rest.items():
            self.copies[name] += update
            self._timed(name, projector, self.copies[name])

    def _timed(self, name: str, projector: Projector, matrix: torch.Tensor) -> None:
        start = time.process_time()
        projector.project_(matrix)
        self.seconds[name].append(time.process_time() - start)

    def shares(self) -> dict[str, float]:
        """Mean cost of each method and of clipping, per cent of a training step without them."""
        whole = mean(self.seconds["step"])
        return {name: 100 * mean(each) / whole for name, each in self.seconds.items() if name != "step"}


@dataclass(frozen=True)
class Cost:
    """The computation of the claim: n = 650, W_hh from its orthogonal beginning on.

    Attributes:
        delta: sigma_1 <= 2 - delta.
        steps: how many are trained; 1,327 are an epoch of Penn Treebank.
        recipe: a shipped one.
        others: at how many steps the other methods are timed too.

    """

    delta: float
    steps: int
    recipe: str = "ptb/gru-constrained.toml"
    others: int = 20

    def __call__(self, seed: int, data: str | None) -> Measurement:
        """Train so many steps; --data, or the recipe's own text."""
        recipe = load_recipe(find(self.recipe), [f"seed={seed}"])
        source = data or recipe.data.corpus
        assert source is not None, "the recipe names its corpus"
        comparison = Comparison(Training(recipe, source), self.delta, self.others)
        comparison.run(self.steps)
        shares = comparison.shares()
        figures = {
            "projection": shares["subspace"],
            "clipping": shares["clipping"],
            "svd": shares["svd"],
            "truncated": shares["truncated"],
            "excess": comparison.largest - (2 - self.delta),
            "deviation": comparison.deviation,
        }
        return Measurement(figures, {"singular values computed": [float(count) for count in comparison.computed]})
