"""Training: windows, learning rules, optimisers, schedules, averaging, penalties, constraints and fine-tuning."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from elman.config.record import Count, Fraction, NonNegative, Positive, PositiveFloat, Rate, Record, Tagged

SingularValue: TypeAlias = Annotated[float, Meta(ge=1e-15, le=1e15)]
"""A bound of singular values whose square float32 holds."""


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


class BPTT(Tagged, frozen=True, tag="bptt"):
    """Back-propagation through time (`learning/bptt.py`).

    `steps`: the furthest that a gradient goes back. `attenuation`: the factor on it at every step back.
    """

    steps: Positive | None = None
    attenuation: Fraction = 1.0


class RTRL(Tagged, frozen=True, tag="rtrl"):
    """Real-time recurrent learning (`learning/rtrl.py`), for networks whose influence matrix fits into `max_gb`."""

    max_gb: PositiveFloat = 2.0


Rule: TypeAlias = BPTT | RTRL


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


class SGD(Tagged, frozen=True, tag="sgd"):
    """Stochastic gradient descent, with heavy-ball or Nesterov momentum where `momentum` is above 0."""

    lr: PositiveFloat
    momentum: Rate = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov = true has no effect without momentum; set momentum, or leave nesterov out")


class Adam(Tagged, frozen=True, tag="adam"):
    """Adam (Kingma & Ba 2015)."""

    lr: PositiveFloat = 1e-3
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    decoupled: bool = False


class RMSprop(Tagged, frozen=True, tag="rmsprop"):
    """RMSprop (Tieleman & Hinton 2012)."""

    lr: PositiveFloat = 1e-3
    alpha: Rate = 0.99
    eps: PositiveFloat = 1e-8
    momentum: Rate = 0.0


class Muon(Tagged, frozen=True, tag="muon"):
    """Muon (Jordan et al. 2024): orthogonal steps for the matrices of the layers, AdamW for everything else.

    `lr`, `momentum`, `nesterov` and `iterations` are those of the matrices; `adam_lr`, `betas` and `eps` are Adam's. A
    schedule is that of both rates.
    """

    lr: PositiveFloat = 0.02
    momentum: Rate = 0.95
    nesterov: bool = True
    iterations: Annotated[int, Meta(ge=1, le=100)] = 5
    adam_lr: PositiveFloat = 1e-3
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8


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


class NonMonotone(Tagged, frozen=True, tag="non-monotone"):
    """NT-ASGD: averaging begins when validation is worse than the best of those more than `interval` checks old."""

    interval: Positive = 5


class Immediate(Tagged, frozen=True, tag="immediate"):
    """Averaging from the first step."""


class Exponential(Tagged, frozen=True, tag="exponential"):
    """An exponential moving average of the weights from the first step."""

    decay: Rate = 0.999


class Polynomial(Tagged, frozen=True, tag="polynomial"):
    """An average of the weights from the first step in which step t counts about as t to the `power`."""

    power: NonNegative = 3.0


class Penalties(Record, frozen=True):
    """Weights of penalties (`objective/penalties.py`) and Pascanu's regulariser (`learning/gradient_norm.py`)."""

    ar: NonNegative = 0.0
    tar: NonNegative = 0.0
    balance: NonNegative = 0.0
    balance_form: Literal["columns", "minibatch"] = "columns"
    stability: NonNegative = 0.0
    stability_tier: Literal[1, 2] = 2
    stability_margin: Rate = 0.05
    gradient_norm: NonNegative = 0.0


class Spectral(Tagged, frozen=True, tag="spectral"):
    """sigma_1 of the candidate's W_hh <= 2 - delta, or <= bound (`learning/constraint.py`; Kanai's thesis, chapter 3).

    `input`: also sigma_1 of its W_xh <= 2. The last three keys belong to the method truncated: where bounds are
    counted, the norm of the step by which they grow, and whether to count with the other norm too.
    """

    delta: Annotated[float, Meta(gt=0, lt=2)] = 0.2
    bound: SingularValue | None = None
    method: Literal["subspace", "eigh", "svd", "truncated"] = "subspace"
    input: bool = False
    count_at: Literal["two", "limit"] = "two"
    step_norm: Literal["frobenius", "spectral"] = "frobenius"
    compare_norms: bool = False


class OrthogonalWeights(Tagged, frozen=True, tag="orthogonal"):
    """The candidate's W_hh stays gain times an orthogonal matrix (`learning/projections/projector.py`)."""

    gain: SingularValue = 1.0


class SpectralNorm(Tagged, frozen=True, tag="spectral-norm"):
    """The candidate's W_hh is scaled to sigma_1 = bound, or only down to it (`learning/projections/projector.py`)."""

    bound: SingularValue = 1.0
    always: bool = True


class Margin(Record, frozen=True):
    """Max-margin training of a parser (`objective/trees.py`): `kappa` per wrong node, beside the labels by `weight`."""

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
    `rule`: how gradients are computed. `forcing`: how often the truth is read; None: always.
    `margin`: of parsers of trees.
    `memory`: starting small: stages of a memory that is reset after a few words, before the whole memory.
    `clip`: the limit of the norm of the gradient, of all tensors or of each, or of every number of it (`clip_by`).
    `predict_loss`: predict the validation loss at the end of the main phase (`learning/prediction.py`).
    `log_spectrum`: log sigma_1 of W_hh and the spectral radius of J; None: where there is a constraint.
    """

    epochs: Positive
    optimiser: SGD | Adam | RMSprop | Muon
    batch_size: Positive = 20
    tokens_per_batch: Positive | None = None
    order: Literal["shuffled", "file"] = "shuffled"
    slices: Positive = 1
    precision: Literal["float32", "bf16", "auto"] = "float32"
    window: Window = Window()
    rule: Rule = BPTT()
    forcing: Forcing | None = None
    margin: Margin | None = None
    memory: tuple[Memory, ...] = ()
    loss: Literal["mean", "sum"] = "mean"
    schedule: Constant | Decay | Plateau | Steps | Cosine = Constant()
    averaging: NonMonotone | Immediate | Exponential | Polynomial | None = None
    clip: PositiveFloat | None = None
    clip_by: Literal["global", "tensor", "value"] = "global"
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
    predict_loss: bool = False

    def __post_init__(self) -> None:
        if self.slices > self.batch_size and self.tokens_per_batch is None:
            raise ValueError(f"slices = {self.slices}: more than the {self.batch_size} columns of batch_size; lower it")
