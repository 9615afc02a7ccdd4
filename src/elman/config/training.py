"""Training: windows, learning rules, optimisers, schedules, averaging, penalties, constraints and fine-tuning."""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from elman.config.parts import Named, OneOf, Part, default, keyed
from elman.config.record import Count, Fraction, NonNegative, Positive, PositiveFloat, Rate, Record, Tagged


class Window(Record, frozen=True):
    """The windows of truncated BPTT (`data/windows.py`); a random length scales that step's learning rate."""

    length: Positive = 70
    random: bool = False
    short_probability: Fraction = 0.05
    spread: NonNegative = 5.0
    max_extra: int | None = None


class Memory(Record, frozen=True):
    """A stage of growing memory: for some epochs the least and most `words` between resets (Elman 1993)."""

    words: tuple[Positive, Positive]
    epochs: Positive = 1

    def __post_init__(self) -> None:
        if self.words[0] > self.words[1]:
            raise ValueError(f"words = {list(self.words)}; the lesser number stands first")


class Rule(Part, frozen=True):
    """How the gradient of a window is computed; `build` makes the `Learner` (`elman.learning.bptt`)."""

    folder = "elman.learning.rules"

    @property
    def stepwise(self) -> bool:
        """Whether it processes a window step by step, which excludes sources and dropout."""
        return True

    def build(self) -> Any:
        """The `Learner`."""
        raise NotImplementedError


class Forcing(Record, frozen=True):
    """Scheduled sampling: how probably the truth is read (`learning/forcing.py`); `scale` is k, i is in epochs.

    Of the exponential schedule k is below 1.
    """

    schedule: Literal["constant", "linear", "exponential", "sigmoid"] = "linear"
    scale: PositiveFloat = 0.1
    floor: Fraction = 0.0

    def __post_init__(self) -> None:
        if self.schedule == "exponential" and self.scale >= 1:
            raise ValueError(
                f'scale = {self.scale:g} with schedule = "exponential": epsilon is scale^i, which falls only where'
                " scale is below 1"
            )


class Optimiser(Part, frozen=True):
    """How weights follow their gradients: a rule for one parameter at a time, with what it remembers of each.

    `memory` names what is remembered: of each name one tensor for each parameter, of its shape and zeros at first.
    Where there is any, "step" is there too, a number for each parameter, which the rule has to raise by one.
    """

    folder = "elman.learning.optimisers"
    lr: PositiveFloat

    @property
    def memory(self) -> tuple[str, ...]:
        """The names of what is remembered."""
        return ()

    def update(self, parameters: Any, gradients: Any, memory: Any, lr: float, weight_decay: float) -> None:
        """Change `parameters`, a list of tensors, in place, and `memory`, by name a list of tensors, too.

        `lr` is the rate of this step, which a schedule may have changed; the weight decay is the recipe's.
        """
        raise NotImplementedError

    def build(self, parameters: Any, matrices: Any, weight_decay: float) -> Any:  # noqa: ARG002
        """What steps these parameters, of which `matrices` belong to the layers (`elman.learning.optimisers`)."""
        return resolve_name("elman.learning.optimisers:Optimiser")(self, parameters, weight_decay)


class Constant(Tagged, frozen=True, tag="constant"):
    """A constant rate."""


class Decay(Tagged, frozen=True, tag="decay"):
    """Divide by `factor` after each epoch beyond the first `after` (Zaremba: 6 and 1.2; halving: 1 and 2)."""

    after: Count
    factor: Annotated[float, Meta(gt=1)]


class Plateau(Tagged, frozen=True, tag="plateau"):
    """Divide by `factor` after `patience` epochs whose validation perplexity is not better by `threshold`.

    `against`: better than the best epoch so far, or than the epoch before. The first `after` epochs keep the full rate.
    """

    factor: Annotated[float, Meta(gt=1)]
    patience: Positive = 1
    threshold: NonNegative = 0.0
    against: Literal["best", "previous"] = "best"
    after: Count = 0
    min_lr: NonNegative = 0.0


class Steps(Tagged, frozen=True, tag="steps"):
    """Divide by `factor` at each of these epochs."""

    epochs: tuple[Positive, ...]
    factor: Annotated[float, Meta(gt=1)] = 10.0


class Cosine(Tagged, frozen=True, tag="cosine"):
    """Rise linearly over `warm_up` epochs, then fall along a half cosine to `floor` times the rate at the end."""

    warm_up: NonNegative = 0.0
    floor: Rate = 0.0


class Averaging(Tagged, frozen=True):
    """An average of the weights after each step; `compensated`: what rounding leaves out is added at the next step."""

    compensated: bool | None = None


class NonMonotone(Averaging, frozen=True, tag="non-monotone"):
    """NT-ASGD: averaging begins when validation is worse than the best of those more than `interval` checks old."""

    interval: Positive = 5


class Immediate(Averaging, frozen=True, tag="immediate"):
    """Averaging from the first step."""


class Exponential(Averaging, frozen=True, tag="exponential"):
    """An exponential moving average of the weights from the first step."""

    decay: Rate = 0.999


class Polynomial(Averaging, frozen=True, tag="polynomial"):
    """An average of the weights from the first step in which step t counts about as t to the `power`."""

    power: NonNegative = 3.0


class Criterion(Part, frozen=True):
    """What training minimises over a window, without penalties."""

    folder = "elman.objective.criteria"

    def __call__(self, seen: Any) -> tuple[Any, Any]:
        """From `elman.objective.criteria.Seen` a scalar, and the NLL (nats) of every target [T, B], detached.

        The scalar is differentiated, the NLLs are reported. Of columns that are a part of a batch it is their share of
        the batch's (`batch.share`, `batch.whole`).
        """
        raise NotImplementedError


class Penalty(Part, frozen=True):
    """A scalar added to the negative log-likelihood, times its weight; none where the weight is 0."""

    folder = "elman.objective.penalties"
    weight: NonNegative

    def check(self, model: Any) -> None:
        """Raise UserError where it is not defined for a network, or would do nothing."""

    def __call__(self, seen: Any) -> Any:
        """The penalty over a window (`elman.objective.criteria.Seen`) at the positions that count, weight included.

        Of columns that are a part of a batch it is their share of the batch's (`batch.share`, `batch.whole`).
        """
        raise NotImplementedError


class Penalties(Record, frozen=True):
    """Weights of penalties (`objective/penalties.py`) and Pascanu's regulariser (`learning/gradient_norm.py`).

    A penalty of a plug-in is a key by its kind, with its table: `training.penalties.sparse = { weight = 0.1 }`.
    """

    ar: NonNegative = 0.0
    tar: NonNegative = 0.0
    norm_stabiliser: NonNegative = 0.0
    balance: NonNegative = 0.0
    balance_form: Literal["columns", "minibatch"] = "columns"
    stability: NonNegative = 0.0
    stability_tier: Literal[1, 2] = 2
    stability_margin: Rate = 0.05
    gradient_norm: NonNegative = 0.0


if TYPE_CHECKING:
    OpenPenalties: TypeAlias = Penalties
else:
    OpenPenalties = keyed(Penalties, Penalty)


class Constraint(Part, frozen=True):
    """A set in which the recurrent matrices of layers stay: after every step they are projected onto it."""

    folder = "elman.learning.constraint"

    @property
    def of_inputs(self) -> bool:
        """Whether the matrices that read the inputs are constrained, too."""
        return False

    def check(self, cells: Any) -> None:
        """Raise UserError where it does not suit layers of cells with these names."""

    def projector(self, *, of_input: bool) -> Any:
        """A `Projector` (`elman.learning.projections.projector`) of one matrix, which reads inputs or the state."""
        raise NotImplementedError


class Margin(Record, frozen=True):
    """Max-margin training of a parser (`objective/trees.py`): `kappa` per wrong node; labels count by `weight`."""

    kappa: PositiveFloat = 0.1
    weight: PositiveFloat = 1.0


class FineTune(Record, frozen=True):
    """Restart from the best model with averaging from the first step; stops by the non-monotone rule."""

    lr: PositiveFloat
    epochs: Positive
    interval: Positive = 5
    max_extra: int | None = None


class Training(Record, frozen=True):
    """How the weights are found.

    `tokens_per_batch`: of pairs, instead of `batch_size`: the most symbols, padding and both sides together.
    `order`: of pairs: an epoch reads them `shuffled`, or in the order of the `file`, which a curriculum needs.
    `precision`: of large matrix products (`network/fast/precision.py`); auto is settled and recorded as a run begins.
    `loss`: what is minimised, by its kind, or as a table where it has keys.
    `rule`: how gradients are computed. `forcing`: how often the truth is read; None: always.
    `margin`: of parsers of trees.
    `memory`: starting small: stages of a memory that is reset after a few words, before the whole memory.
    `clip`: the limit of the norm of the gradient, of all tensors or of each, or of every number of it (`clip_by`).
    `predict_loss`: predict the validation loss at the end of the main phase (`learning/prediction.py`).
    `minutes`: the time of all training, by which the rate falls where it ends before the epochs do (`Trainer`).
    `log_spectrum`: log sigma_1 of W_hh and the spectral radius of J; None: where there is a constraint.
    """

    epochs: Positive
    optimiser: OneOf[Optimiser]
    batch_size: Positive = 20
    tokens_per_batch: Positive | None = None
    order: Literal["shuffled", "file"] = "shuffled"
    slices: Positive = 1
    precision: Literal["float32", "bf16", "auto"] = "float32"
    window: Window = Window()
    rule: OneOf[Rule] = default(Rule, "bptt")
    forcing: Forcing | None = None
    margin: Margin | None = None
    memory: tuple[Memory, ...] = ()
    loss: Named[Criterion] = "mean"
    schedule: Constant | Decay | Plateau | Steps | Cosine = Constant()
    averaging: NonMonotone | Immediate | Exponential | Polynomial | None = None
    clip: PositiveFloat | None = None
    clip_by: Literal["global", "tensor", "value"] = "global"
    weight_decay: NonNegative = 0.0
    l1: NonNegative = 0.0
    penalties: OpenPenalties = Penalties()
    constraint: OneOf[Constraint] | None = None
    log_spectrum: bool | None = None
    fine_tune: FineTune | None = None
    patience: Positive | None = None
    validate_every: Positive | None = None
    log_every: Positive = 50
    checkpoint_minutes: NonNegative = 3.0
    predict_loss: bool = False
    minutes: PositiveFloat | None = None

    def __post_init__(self) -> None:
        if self.minutes is not None and self.fine_tune is not None:
            raise ValueError("minutes: the clock rules one phase, and fine_tune is a second; leave out one of them")
        if self.slices > self.batch_size and self.tokens_per_batch is None:
            raise ValueError(f"slices = {self.slices}: more than the {self.batch_size} columns of batch_size; lower it")
