"""One gradient step: what a window teaches, and what that does to the weights."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from elman import config
from elman.data.windows import Batch
from elman.learning import checkpoint
from elman.learning.averaging import Average
from elman.learning.constraint import build_constraint, journal_spectrum
from elman.learning.forcing import forcing_probability, listen_to_itself
from elman.learning.optimisers import add_l1, build_optimiser, clip_gradients
from elman.learning.rules import build_learner
from elman.learning.schedules import Phase
from elman.network.cores.stack import Stack
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.objective.build import build_objective
from elman.objective.loss import Loss


class Descent:
    """A network and all that changes it: learning rule, clipping, optimiser, constraint, average of the weights.

    Args:
        recipe: the experiment.
        model: the network, on its device.

    Attributes:
        optimiser: of the phase that was entered.
        average: of the weights, while they are averaged.
        state: after the last window, where the next goes on from it.

    Raises:
        UserError: the constraint or the learning rule does not fit the model.

    """

    def __init__(self, recipe: config.Recipe, model: LanguageModel) -> None:
        self.training, self.model = recipe.training, model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.objective = build_objective(recipe.training)
        self.learner = build_learner(recipe.training, recipe.model)
        self.learner.check(model, recipe.training.batch_size)
        self.average: Average | None = None
        self.state: State | None = None
        self.constraint = build_constraint(recipe.training, model.core)
        if self.constraint is not None:
            self.constraint.project()
            self.constraint.counted()

    def enter(self, phase: Phase, *, averaging: bool) -> None:
        """Begin a phase: a new optimiser, no state, and a new average where weights are averaged."""
        self.optimiser = build_optimiser(phase.optimiser, self.parameters, self.training.weight_decay)
        self.state = None
        decay = phase.averaging.decay if isinstance(phase.averaging, config.Exponential) else None
        self.average = Average(self.parameters, decay) if averaging else None

    def begin_averaging(self) -> None:
        """From the next step on, the equal average of the weights is kept."""
        self.average = Average(self.parameters)

    def averaged(self) -> AbstractContextManager[None]:
        """A block in which the weights are their average, where there is one."""
        return nullcontext() if self.average is None else self.average.applied()

    def gradient(self, batch: Batch, epoch: float) -> tuple[Loss, Tensor]:
        """Learn from a window: its loss, and the norm of the gradient before clipping; the weights stay."""
        self.model.train()
        before = self.learner.state_before(self.model, batch, self.state, self.training.batch_size)
        if self.training.forcing is not None:
            truth = forcing_probability(self.training.forcing, epoch)
            batch = listen_to_itself(self.model, batch, self.learner.model_state(before), truth)
        self.optimiser.zero_grad()
        loss, after = self.learner(self.model, self.objective, batch, before)
        self.state = after if batch.source is None else None
        add_l1(self.parameters, self.training.l1)
        return loss, clip_gradients(self.parameters, self.training.clip, self.training.clip_by)

    def step(self, lr: float) -> None:
        """Change the weights by the gradient."""
        self.optimiser.lr = lr
        self.optimiser.step()
        if self.constraint is not None:
            self.constraint.project()
        if self.average is not None:
            self.average.update()

    def weight_norm(self) -> float:
        """Of all weights together."""
        return torch.stack([parameter.detach().norm() for parameter in self.parameters]).norm().item()

    @property
    def tells_spectrum(self) -> bool:
        """Whether the journal has spectra: as the recipe says, else where there is a constraint."""
        wanted = self.training.log_spectrum
        return self.constraint is not None if wanted is None else wanted

    def spectrum(self) -> dict[str, Any]:
        """What thesis Figs 3.3 to 3.5 need, when it is wanted and there are recurrent layers."""
        core = self.model.core
        counted = {} if self.constraint is None else self.constraint.counted()
        return counted | (journal_spectrum(core) if isinstance(core, Stack) and self.tells_spectrum else {})

    def tensors(self) -> dict[str, Tensor]:
        """All that a checkpoint must hold."""
        constraint = None if self.constraint is None else self.constraint.tensors()
        return checkpoint.gather(self.model, self.optimiser, self.average, self.state, constraint)

    def restore(self, tensors: Mapping[str, Tensor], average_count: int) -> None:
        """Go on from what `tensors` gave, in the phase it was of; `average_count` steps are in the average."""
        checkpoint.load_model(self.model, checkpoint.of_model(tensors))
        checkpoint.restore_optimiser(self.optimiser, tensors)
        if self.average is not None:
            checkpoint.restore_average(self.average, tensors, average_count)
        if self.constraint is not None:
            self.constraint.restore(checkpoint.of_constraint(tensors))
        self.state = checkpoint.restore_state(self.learner.begin(self.model, self.training.batch_size), tensors)
        checkpoint.restore_random(tensors)
