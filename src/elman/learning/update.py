"""One training step: the gradient of a window, clipping, and the update of the weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import torch
from torch import Tensor, nn

from elman import config
from elman.config.parts import tag_of
from elman.config.plugins import built
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning import checkpoint
from elman.learning.bptt import Learner
from elman.learning.optimisers import Optimiser
from elman.learning.progress import averages_at_once
from elman.learning.team import ALONE, Team
from elman.network.device import random_states, restore_random_states
from elman.network.fast.precision import Precision, products_in, resolve
from elman.network.model import LanguageModel
from elman.network.state import State, leaves, rebuild
from elman.objective.loss import Loss, Objective, build_objective

if TYPE_CHECKING:
    from elman.learning.averaging import Average
    from elman.learning.constraint import ConstrainedCore
    from elman.learning.slices import Slices


class Update:
    """A model and the chain of what changes its weights, one link after the other.

    1. `gradient`: what the model reads is drawn (scheduled sampling), the learning rule gives the gradient of the loss
       and its penalties, and the gradient of L1 is added;
    2. `clip`: the gradient is clipped;
    3. `apply`: the optimiser takes its step, weight decay within it; the weights are projected onto the constraint;
       their average follows.

    Large products of `gradient` and the products of Muon are computed in `precision`, all others in float32.

    Attributes:
        average: of the weights, or None while they are not averaged.
        state: after the last window, from which the next one continues; None: every column begins a sequence.
    """

    def __init__(
        self,
        model: LanguageModel,
        learner: Learner,
        objective: Objective,
        optimiser: Optimiser,
        *,
        clip: float | None = None,
        clip_by: Literal["global", "tensor", "value"] = "global",
        l1: float = 0.0,
        forcing: config.Forcing | None = None,
        constraint: "ConstrainedCore | None" = None,
        precision: Precision = "float32",
        slices: "Slices | None" = None,
    ) -> None:
        self.model, self.learner, self.objective, self.optimiser = model, learner, objective, optimiser
        self.clip_at, self.clip_by, self.l1, self.forcing, self.constraint = clip, clip_by, l1, forcing, constraint
        self.precision: Precision = precision
        self.slices = slices
        self.average: Average | None = None
        self.state: State | None = None

    def __call__(self, batch: Batch, lr: float) -> Loss:
        loss = self.gradient(batch)
        self.clip()
        self.apply(lr)
        return loss

    def gradient(self, batch: Batch, epoch: float = 0.0, step: int = 0) -> Loss:
        """Compute the gradient of a window's loss, unclipped; the weights do not change.

        `epoch` is the time of scheduled sampling; `step` numbers the steps of training, where there are slices.
        """
        self.model.train()
        self.optimiser.zero_grad()
        with products_in(self.precision):
            if self.slices is None:
                loss, self.state = self._learn(epoch, batch, self.state)
            else:
                learn = partial(self._learn, epoch)
                loss, self.state = self.slices.gradient(learn, self.optimiser.parameters, batch, self.state, step)
        add_l1(self.optimiser.parameters, self.l1)
        return loss

    def _learn(self, epoch: float, batch: Batch, state: State | None) -> tuple[Loss, State | None]:
        """Add the gradient of a batch, or of a slice of one, and return its loss and the state to continue from."""
        before = self.learner.state_before(self.model, batch, state)
        if self.forcing is not None:
            from elman.learning.forcing import forcing_probability, listen_to_itself

            probability = forcing_probability(self.forcing, epoch)
            batch = listen_to_itself(self.model, batch, self.learner.model_state(before), probability)
        loss, after = self.learner(self.model, self.objective, batch, before)
        return loss, after if batch.source is None else None

    def clip(self) -> Tensor:
        """Clip the gradient and return its norm before that, without waiting for the device."""
        return clip_gradients(self.optimiser.parameters, self.clip_at, self.clip_by)

    def apply(self, lr: float) -> None:
        self.optimiser.lr = lr
        with products_in(self.precision):
            self.optimiser.step()
        if self.constraint is not None:
            self.constraint.project()
        if self.average is not None:
            self.average.update()

    def begin_phase(self, phase: config.Training, *, averaging: bool) -> None:
        """Take a new optimiser, no state, and a new average where the weights are averaged."""
        self.optimiser = build_optimiser(phase, self.model)
        self.state = self.average = None
        if averaging:
            self.begin_averaging(phase)

    def begin_averaging(self, phase: config.Training) -> None:
        """Average the weights from the next step on, as the recipe asks."""
        from elman.learning.averaging import Average, share_of

        compensated = phase.averaging is not None and bool(phase.averaging.compensated)
        self.average = Average(self.optimiser.parameters, share_of(phase.averaging), compensated=compensated)

    def averaged(self) -> AbstractContextManager[None]:
        """Within the block the weights hold their average, where there is one."""
        return nullcontext() if self.average is None else self.average.applied()

    @contextmanager
    def branched(self) -> Iterator[None]:
        """After the block everything that changes in training is as before it."""
        count = 0 if self.average is None else self.average.count
        kept = {name: tensor.clone() for name, tensor in self.tensors().items()}
        try:
            yield
        finally:
            self.state = None
            self.restore(kept, count)

    def is_finite(self) -> bool:
        """Whether all trained weights are finite, and their average too; waits for the device."""
        averages = [] if self.average is None else self.average.values
        trained = [tensor.detach() for tensor in (*self.optimiser.parameters, *averages)]
        return bool(torch.stack([tensor.isfinite().all() for tensor in trained]).all()) if trained else True

    def tensors(self) -> dict[str, Tensor]:
        """Everything from which `restore` continues bit for bit, the random states included.

        Every process of a team must ask, since each has the state of its own columns.
        """
        state = () if self.state is None else self.state
        whole = state if self.state is None or self.slices is None else self.slices.whole(state)
        parts = {
            "model": checkpoint.model_tensors(self.model),
            "optimiser": self.optimiser.tensors(),
            "average": {} if self.average is None else self.average.tensors(),
            "state": {str(index): leaf for index, leaf in enumerate(leaves(whole))},
            "constraint": {} if self.constraint is None else self.constraint.tensors(),
            "random": random_states(),
        }
        return {f"{part}/{name}": tensor for part, held in parts.items() for name, tensor in held.items()}

    def require(self, path: Path, tensors: Mapping[str, Tensor], batch_size: int) -> None:
        """Raise UserError where the tensors of a checkpoint do not fit `restore` in this phase."""
        loose = ("state/", "constraint/", "random/cuda", "random/mps")
        own, found = (
            {name: tensor for name, tensor in some.items() if not name.startswith(loose)}
            for some in (self.tensors(), tensors)
        )
        checkpoint.require_fit(path, own, found, path.with_name("recipe.toml"))
        if saved := checkpoint.under("state/", tensors):
            begun = leaves(self.learner.begin(self.model, batch_size))
            state = {str(index): leaf for index, leaf in enumerate(begun)}
            checkpoint.require_fit(path, state, saved, path.with_name("recipe.toml"))

    def restore(self, tensors: Mapping[str, Tensor], average_count: int) -> None:
        """Continue from `tensors`, in the phase they belong to; `average_count` steps are in the average.

        All of them are copied: a file's tensors begin at any address, on which the rounding of products depends.
        """
        tensors = {
            name: tensor.clone() if name.startswith(("state/", "constraint/")) else tensor
            for name, tensor in tensors.items()
        }
        checkpoint.load_model(self.model, checkpoint.under("model/", tensors))
        self.optimiser.restore(checkpoint.under("optimiser/", tensors))
        if self.average is not None:
            self.average.restore(checkpoint.under("average/", tensors), average_count)
        if self.constraint is not None:
            self.constraint.restore(checkpoint.under("constraint/", tensors))
        if saved := checkpoint.under("state/", tensors):
            in_order = (saved[str(index)].to(self.model.device) for index in range(len(saved)))
            state = rebuild(self.learner.begin(self.model, 1), in_order)
            self.state = state if self.slices is None else self.slices.own_rows(state)
        restore_random_states(checkpoint.under("random/", tensors))


def build_update(recipe: config.Recipe, model: LanguageModel, team: Team = ALONE) -> Update:
    """The training step of a recipe in its first phase, after projecting the weights onto its constraint.

    Raises UserError where the constraint, a penalty or the learning rule does not fit the model, or the team the
    slices.
    """
    training = recipe.training
    objective, learner = build_objective(training), build_learner(training, recipe.model)
    learner.check(model, training.batch_size)
    for penalty in objective.penalties:
        penalty.check(model)
    constraint = None
    if training.constraint is not None:
        from elman.learning.constraint import build_constraint

        constraint = build_constraint(training, model.core)
    if constraint is not None:
        constraint.project()
        constraint.mean_counts()
    slices = None
    if training.slices > 1 or team.size > 1:
        from elman.learning.slices import Slices

        slices = Slices(training.slices, recipe.seed, team)
    update = Update(
        model,
        learner,
        objective,
        build_optimiser(training, model),
        clip=training.clip,
        clip_by=training.clip_by,
        l1=training.l1,
        forcing=training.forcing,
        constraint=constraint,
        precision=resolve(training.precision, model.device),
        slices=slices,
    )
    if averages_at_once(training):
        update.begin_averaging(training)
    return update


def build_optimiser(training: config.Training, model: LanguageModel) -> Optimiser:
    """The optimiser of a recipe for the trained parameters of a model; the matrices are its core's."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [matrix for matrix in model.core.parameters() if matrix.requires_grad and matrix.ndim == 2]
    found: Optimiser = built(training.optimiser, Optimiser, parameters, matrices, training.weight_decay)
    return found


def build_learner(training: config.Training, model: config.Model) -> Learner:
    """The learning rule of a recipe; raises UserError where it takes single steps and the model needs whole windows."""
    if tag_of(model.core) == "recursive":
        from elman.learning.sentences import ThroughStructure

        return ThroughStructure(training.margin)
    if tag_of(model.core) == "sentence":
        from elman.learning.sentences import Tagging

        return Tagging()
    weight = training.penalties.gradient_norm
    if weight or training.rule.stepwise:
        _require_single_steps(model)
    rule: Learner = built(training.rule, Learner)
    if not weight:
        return rule
    from elman.learning.gradient_norm import GradientNorm

    return GradientNorm(rule, weight)


def _require_single_steps(model: config.Model) -> None:
    """Refuse what needs whole windows: a source, dropout masks held over time."""
    stepwise = "training.rule and training.penalties.gradient_norm process a window step by step"
    if model.source is not None:
        raise UserError(
            f"{stepwise}, but a source is read as a whole: with model.source use the rule bptt without steps or"
            " attenuation, and gradient_norm = 0"
        )
    parts: list[tuple[str, msgspec.Struct]] = [("encoder", model.encoder), ("core", model.core)]
    if model.core.hears:
        parts.append(("output.contexts", model.output.contexts))  # what is fed back
    for part, record in parts:
        for name in record.__struct_fields__:
            if "drop" in name and getattr(record, name):
                raise UserError(
                    f"{stepwise}, which model.{part}.{name} does not allow: set it to 0, or use the rule bptt without"
                    " steps or attenuation, and gradient_norm = 0"
                )


@torch.no_grad()
def clip_gradients(parameters: Sequence[nn.Parameter], limit: float | None, by: str = "global") -> Tensor:
    """Clip gradients at `limit` and return their global norm before that, without waiting for the device.

    `by` = "global": the norm of all of them together is scaled down (thesis, Algorithm 2.2); "tensor": the norm of each
    parameter; "value": every number is brought into [-limit, limit] (Graves 2013, section 2.1, there for the gradient
    with respect to the inputs of the LSTM layers).
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if limit is not None and by == "global":
        nn.utils.clip_grads_with_norm_(parameters, limit, norm)
    elif limit is not None and by == "value":
        for gradient in gradients:
            gradient.clamp_(-limit, limit)
    elif limit is not None:
        for parameter in parameters:
            nn.utils.clip_grad_norm_(parameter, limit)
    return norm


@torch.no_grad()
def add_l1(parameters: Sequence[nn.Parameter], weight: float) -> None:
    """Add the gradient of weight * sum |w|."""
    if weight:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.add_(parameter.sign(), alpha=weight)
