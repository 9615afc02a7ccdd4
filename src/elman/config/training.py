"""How the weights are found."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.optimisation import SGD, Adam, Constant, Cosine, Decay, Memory, Plateau, RMSprop, Steps, Window
from elman.config.record import NonNegative, Positive, PositiveFloat, Rate, Record, Tagged


class NonMonotone(Tagged, frozen=True, tag="non-monotone"):
    """NT-ASGD: averaging begins when validation is worse than the best of those more than `interval` checks old."""

    interval: Positive = 5


class Immediate(Tagged, frozen=True, tag="immediate"):
    """Averaging from the first step."""


class Exponential(Tagged, frozen=True, tag="exponential"):
    """An exponential moving average of the weights from the first step."""

    decay: Rate = 0.999


class Penalties(Record, frozen=True):
    """Weights of the penalties (`objective/penalties.py`, and of the weights alone `objective/stability.py`)."""

    ar: NonNegative = 0.0
    tar: NonNegative = 0.0
    balance: NonNegative = 0.0
    balance_form: Literal["columns", "minibatch"] = "columns"
    stability: NonNegative = 0.0
    stability_tier: Literal[1, 2] = 2
    stability_margin: Rate = 0.05


class Spectral(Tagged, frozen=True, tag="spectral"):
    """sigma_1 of the candidate's W_hh <= 2 - delta, or <= bound (`learning/constraint.py`; Kanai's thesis, chapter 3).

    `input`: also sigma_1 of its W_xh <= 2. The last three keys are of the method truncated: where bounds are counted,
    the norm of the step that they grow by, and whether to count with the other norm too.
    """

    delta: Annotated[float, Meta(gt=0, lt=2)] = 0.2
    bound: PositiveFloat | None = None
    method: Literal["subspace", "eigh", "svd", "truncated"] = "subspace"
    input: bool = False
    count_at: Literal["two", "limit"] = "two"
    step_norm: Literal["frobenius", "spectral"] = "frobenius"
    compare_norms: bool = False


class OrthogonalWeights(Tagged, frozen=True, tag="orthogonal"):
    """The candidate's W_hh stays gain times an orthogonal matrix (`learning/projections/orthogonal.py`)."""

    gain: PositiveFloat = 1.0


class SpectralNorm(Tagged, frozen=True, tag="spectral-norm"):
    """The candidate's W_hh is scaled to sigma_1 = bound, or only down to it (`learning/projections/normalised.py`)."""

    bound: PositiveFloat = 1.0
    always: bool = True


class FineTune(Record, frozen=True):
    """Restart from the best model with averaging from the first step; stops by the non-monotone rule."""

    lr: PositiveFloat
    epochs: Positive
    interval: Positive = 5
    max_extra: int | None = None


class Training(Record, frozen=True):
    """How the weights are found.

    `tokens_per_batch`: of pairs, instead of `batch_size`: symbols at most, padding and both sides together.
    `memory`: starting small: stages of a memory that is cut off after a few words; then comes the whole memory.
    `log_spectrum`: sigma_1 of W_hh and the spectral radius of J at each logged step; None: with a constraint.
    """

    epochs: Positive
    optimiser: SGD | Adam | RMSprop
    batch_size: Positive = 20
    tokens_per_batch: Positive | None = None
    slices: Positive = 1
    window: Window = Window()
    memory: tuple[Memory, ...] = ()
    loss: Literal["mean", "sum"] = "mean"
    schedule: Constant | Decay | Plateau | Steps | Cosine = Constant()
    averaging: NonMonotone | Immediate | Exponential | None = None
    clip: PositiveFloat | None = None
    clip_by: Literal["global", "tensor"] = "global"
    weight_decay: NonNegative = 0.0
    l1: NonNegative = 0.0
    penalties: Penalties = Penalties()
    constraint: Spectral | OrthogonalWeights | SpectralNorm | None = None
    log_spectrum: bool | None = None
    fine_tune: FineTune | None = None
    patience: Positive | None = None
    validate_every: Positive | None = None
    log_every: Positive = 50
    checkpoint_minutes: NonNegative = 3.0
