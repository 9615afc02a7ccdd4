"""One trial: a network trains on a task at one span until it has learnt it or its time is over."""

import math
import time
from collections.abc import Callable

import msgspec
import numpy as np
import torch

from elman import config
from elman.data.batches import Batch
from elman.data.classic import classic_task
from elman.data.classic.task import ClassicTask, Sample
from elman.learning.bptt import Learner
from elman.learning.gradient_norm import errors_back
from elman.learning.optimisers import Optimiser
from elman.learning.single_step import OneStep, flat, learns
from elman.learning.update import Update
from elman.network.model import LanguageModel
from elman.network.output.gaussian import GaussianChoice
from elman.objective.loss import Objective
from elman.study.lab.networks import build_network, learner_of

CHECKED = 200  # sequences on which the error is measured, the same throughout a trial


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A network of `size` units, a rule and a task at one span, trained by Adam.

    `budget` is in seconds of processor time; each step reads `columns` sequences; gradient norms are clipped at `clip`;
    the error is measured every `check_every` steps.
    """

    task: str
    cell: str
    rule: str = "bptt"
    span: int
    seed: int = 0
    size: int = 64
    budget: float = 60.0
    columns: int = 32
    lr: float = 3e-3
    clip: float = 1.0
    check_every: int = 25

    @property
    def name(self) -> str:
        """For files and messages: with every setting that is not the usual one, so that each trial has its own."""
        name = f"{self.task}-{self.cell}-{self.rule}-span-{self.span}-seed-{self.seed}"
        usual = Trial(task=self.task, cell=self.cell, rule=self.rule, span=self.span, seed=self.seed)
        others = ((field, getattr(self, field)) for field in self.__struct_fields__)
        return name + "".join(f"-{field}-{value:g}" for field, value in others if value != getattr(usual, field))


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trial; `solved`: whether the last `error` is below the task's threshold.

    `seconds` are processor time, `parameters` trained ones, `curve` holds (step, error) at every measurement;
    `flow_before` and `flow_after` are the `error_flow` untrained and at the end.
    """

    trial: Trial
    solved: bool
    error: float
    steps: int
    seconds: float
    parameters: int
    curve: list[tuple[int, float]]
    flow_before: list[float]
    flow_after: list[float]


def train_trial(trial: Trial, tell: Callable[[int, float], None] | None = None) -> tuple[TrialResult, LanguageModel]:
    """Train on new sequences at every step, on one thread, until the error is below the threshold or the time is over.

    An error that is not finite ends the trial unsolved. `tell` is called with every (step, error). Returns the result
    and the trained network; raises UserError for an unknown name, or parts that do not fit.
    """
    torch.set_num_threads(1)
    torch.manual_seed(trial.seed)
    task = classic_task(trial.task)
    draw = np.random.default_rng([trial.seed, trial.span])
    checked = task.measured(np.random.default_rng([trial.seed, trial.span, 1]), CHECKED, trial.span)
    model = build_network(task, trial.cell, trial.size)
    learner = learner_of(model, trial.rule)
    learner.check(model, trial.columns)
    step = fresh_step(model, learner, lr=trial.lr, clip=trial.clip)
    before = error_flow(model, checked.batch)
    began, steps, curve = time.process_time(), 0, list[tuple[int, float]]()
    model.train()
    while True:
        if steps % trial.check_every == 0:
            curve.append((steps, error_of(model, task, checked)))
            if tell is not None:
                tell(*curve[-1])
            late = time.process_time() - began > trial.budget
            if curve[-1][1] < task.solved or late or not math.isfinite(curve[-1][1]):
                break
        step(task.draw(draw, trial.columns, trial.span).batch, trial.lr)
        steps += 1
    result = TrialResult(
        trial=trial,
        solved=curve[-1][1] < task.solved,
        error=curve[-1][1],
        steps=steps,
        seconds=round(time.process_time() - began, 2),
        parameters=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        curve=curve,
        flow_before=before,
        flow_after=error_flow(model, checked.batch),
    )
    return result, model


def fresh_step(model: LanguageModel, learner: Learner, *, lr: float, clip: float) -> Callable[[Batch, float], None]:
    """A training step by Adam, given a batch and the rate, clipped by the global norm; every batch begins afresh."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    update = Update(model, learner, Objective(), Optimiser(config.Adam(lr=lr), parameters), clip=clip)

    def step(batch: Batch, lr: float) -> None:
        update.state = None
        update(batch, lr)

    return step


def error_flow(model: LanguageModel, batch: Batch, farthest: int = 128) -> list[float]:
    """How an error fades or grows on its way back in time (Bengio et al. 1994; Pascanu et al. 2013).

    ||dE_T / dh_{T-k}|| for k = 0, 1, ..., averaged over the sequences; E_T is the loss of the last step alone and h the
    whole state. The beginning of sequences longer than `farthest` is read without a graph.
    """
    if not learns(model.core):
        return []
    steps = min(farthest, len(batch.inputs))
    state = model.begin(batch.inputs.shape[1])
    if steps < len(batch.inputs):
        with torch.no_grad():
            _, state = model.trace(batch.inputs[:-steps], state)
    mask = torch.zeros(steps, batch.inputs.shape[1], dtype=torch.bool)
    mask[-1] = True
    window = Batch(batch.inputs[-steps:], batch.targets[-steps:], mask)
    _, errors = errors_back(model, OneStep(model), Objective(reduction="sum"), window, state)
    return [flat(error).norm(dim=1).mean().item() * batch.inputs.shape[1] for error in reversed(errors)]


@torch.no_grad()
def error_of(model: LanguageModel, task: ClassicTask, sample: Sample) -> float:
    """The mean squared error of real values, or the error rate of the judged symbols or bits."""
    (batch, allowed), choice = sample, model.output.choice
    state = model.begin(batch.inputs.shape[1])
    if task.kind == "symbols":
        assert allowed is not None
        predicted = model.log_probs(batch.inputs, state)[0].argmax(-1, keepdim=True)
        return 1 - allowed.gather(-1, predicted).squeeze(-1)[allowed.any(-1)].float().mean().item()
    assert batch.mask is not None
    trace, _ = model.trace(batch.inputs, state)
    if task.kind == "bits":
        return (model.output.sample(trace, temperature=0.0) != batch.targets)[batch.mask].float().mean().item()
    assert isinstance(choice, GaussianChoice)
    return (choice.mean(trace.top) - batch.targets)[batch.mask].square().mean().item()
