"""What a recipe may say: frozen, keyword-only records; a union of record types is the registry.

A recipe is a TOML file read into `Recipe`. An unknown key, a wrong type or a number outside its range is an error that
names the key by its path.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import tomli_w
from msgspec import Meta

from elman.config_errors import explain
from elman.data.corpus import TextOptions
from elman.data.pitches import MusicOptions
from elman.errors import UserError

Rate: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
PositiveFloat: TypeAlias = Annotated[float, Meta(gt=0)]
NonNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Activation: TypeAlias = Literal["softmax", "sigsoftmax", "sigmoid", "softplus", "relu", "spherical", "taylor"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a recipe."""


class Tagged(Record, frozen=True, tag_field="kind"):
    """A part that is one of several kinds; its key `kind` says which."""


class Lookup(Tagged, frozen=True, tag="lookup"):
    """Word vectors (`encoders/lookup.py`)."""

    size: Positive
    dropout: Rate = 0.0
    word_dropout: Rate = 0.0
    scale: PositiveFloat = 1.0


class Frames(Tagged, frozen=True, tag="frames"):
    """A linear map of frames of notes (`encoders/frames.py`)."""

    size: Positive
    dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    bias: bool = False


class Elman(Tagged, frozen=True, tag="elman"):
    """Simple recurrent network (`cells/elman.py`)."""

    nonlinearity: Literal["tanh", "sigmoid", "relu"] = "tanh"


class LSTM(Tagged, frozen=True, tag="lstm"):
    """Long short-term memory (`cells/lstm.py`)."""

    forget_gate: bool = True
    peepholes: bool = False


class GRU(Tagged, frozen=True, tag="gru"):
    """Gated recurrent unit (`cells/gru.py`); `reset` says whether the gate acts before or after the product."""

    reset: Literal["before", "after"] = "after"


class Stack(Tagged, frozen=True, tag="stack"):
    """Layers of one cell (`cores/stack.py`)."""

    sizes: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    cell: Elman | LSTM | GRU = LSTM()
    biases: Literal[0, 1, 2] = 2
    weight_drop: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    between_dropout: Rate = 0.0
    output_dropout: Rate = 0.0


class FeedForward(Tagged, frozen=True, tag="window"):
    """Bengio's window model (`cores/window.py`)."""

    width: Positive
    size: Positive
    direct: bool = False
    output_dropout: Rate = 0.0


class Single(Tagged, frozen=True, tag="single"):
    """The last level is the only context."""


class Mixture(Tagged, frozen=True, tag="mixture"):
    """MoS and DOC (`output/contexts.py`): `heads` maps a level (0 is the encoder) to its number of components."""

    heads: dict[int, Positive]
    size: Positive
    linear: bool = False
    dropout: Rate = 0.0
    shared_mask: bool = False
    prior: Literal["softmax", "same"] = "softmax"


class Flat(Tagged, frozen=True, tag="flat"):
    """One normalisation over the vocabulary (`output/flat.py`)."""

    tied: bool = False
    bias: bool = True
    shift: bool = False


class Adaptive(Tagged, frozen=True, tag="adaptive"):
    """Adaptive softmax (`output/adaptive.py`): the head ends before word cutoffs[0], tails before the others."""

    cutoffs: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    div_value: Annotated[float, Meta(ge=1)] = 4.0
    bias: bool = False


class Tree(Tagged, frozen=True, tag="tree"):
    """Hierarchical softmax (`output/tree.py`); without `clusters` there are ceil(sqrt(V))."""

    clusters: Annotated[int, Meta(ge=2)] | None = None
    assignment: Literal["frequency", "random", "similarity"] = "frequency"
    tied: bool = False
    bias: bool = True


class RareClass(Tagged, frozen=True, tag="rare-class"):
    """One output for all words counted fewer times than `threshold` (`output/rare_class.py`)."""

    threshold: Positive
    bias: bool = True


class Monotone(Tagged, frozen=True, tag="monotone"):
    """A learned increasing function of the logits, of `pieces` lines on [-range, range] (`output/monotone.py`)."""

    pieces: Positive = 1000
    range: PositiveFloat = 20.0
    tied: bool = False
    bias: bool = True


class Mixtape(Tagged, frozen=True, tag="mixtape"):
    """Logits mixed by gates that `frequent` words have each for themselves (`output/mixtape.py`)."""

    components: Literal[2, 4, 8, 16] = 4
    gate_size: Positive = 64
    frequent: Positive = 1000
    size: Positive | None = None
    tied: bool = False
    bias: bool = True


class Bernoulli(Tagged, frozen=True, tag="bernoulli"):
    """Notes that sound independently of each other (`output/bernoulli.py`)."""

    bias: bool = True


class NADE(Tagged, frozen=True, tag="nade"):
    """Notes one after another, lowest first, through `size` hidden units (`output/nade.py`)."""

    size: Positive = 128


class Output(Record, frozen=True):
    """Contexts, mixed over a choice."""

    contexts: Single | Mixture = Single()
    choice: Flat | Adaptive | Tree | RareClass | Monotone | Mixtape | Bernoulli | NADE = Flat()
    activation: Activation = "softmax"


class Uniform(Tagged, frozen=True, tag="uniform"):
    """U(-bound, bound); without a bound U(-1/sqrt(H), 1/sqrt(H)), H the columns of the recurrent matrix."""

    bound: PositiveFloat | None = None


class Normal(Tagged, frozen=True, tag="normal"):
    """N(0, std^2); without std N(0, 1/n), n the columns."""

    std: PositiveFloat | None = None


class Glorot(Tagged, frozen=True, tag="glorot"):
    """Glorot & Bengio 2010, uniform, for each gate."""


class He(Tagged, frozen=True, tag="he"):
    """He et al. 2015, normal, for each gate."""


class Orthogonal(Tagged, frozen=True, tag="orthogonal"):
    """An orthogonal matrix for each gate (from the SVD of a random one, thesis 3.5)."""

    gain: PositiveFloat = 1.0


class Identity(Tagged, frozen=True, tag="identity"):
    """gain * identity for each gate (Le et al. 2015)."""

    gain: PositiveFloat = 1.0


class Zeros(Tagged, frozen=True, tag="zeros"):
    """Zeros."""


Init: TypeAlias = Uniform | Normal | Glorot | He | Orthogonal | Identity | Zeros


class Initialisation(Record, frozen=True):
    """How each group of parameters begins; the defaults are those of AWD-LSTM.

    `candidate`: the recurrent block of the candidate state (W_hh of thesis 3.5) where it differs from `hidden`.
    """

    embedding: Init = Uniform(bound=0.1)
    output: Init = Uniform(bound=0.1)
    contexts: Init = Uniform()
    input: Init = Uniform()
    hidden: Init = Uniform()
    candidate: Init | None = None
    bias: Init = Uniform()
    forget_bias: float | None = None


class Model(Record, frozen=True):
    """The network. `masks`: dropout masks held over time ("locked", Gal) or drawn anew ("fresh", Zaremba)."""

    encoder: Lookup | Frames
    core: Stack | FeedForward
    output: Output = Output()
    initialisation: Initialisation = Initialisation()
    masks: Literal["locked", "fresh"] = "locked"


class Window(Record, frozen=True):
    """The windows of truncated BPTT (`data/windows.py`); a random length scales that step's learning rate."""

    length: Positive = 70
    random: bool = False
    short_probability: Annotated[float, Meta(ge=0, le=1)] = 0.05
    spread: NonNegative = 5.0
    max_extra: int | None = None


class SGD(Tagged, frozen=True, tag="sgd"):
    """Stochastic gradient descent."""

    lr: PositiveFloat
    momentum: Rate = 0.0
    nesterov: bool = False


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


class Constant(Tagged, frozen=True, tag="constant"):
    """The rate as it is."""


class Decay(Tagged, frozen=True, tag="decay"):
    """Divide by `factor` after each epoch beyond the first `after` (Zaremba: 6 and 1.2; halving: 1 and 2)."""

    after: Annotated[int, Meta(ge=0)]
    factor: Annotated[float, Meta(gt=1)]


class Plateau(Tagged, frozen=True, tag="plateau"):
    """Divide by `factor` after `patience` epochs whose validation perplexity is not better by `threshold`."""

    factor: Annotated[float, Meta(gt=1)]
    patience: Positive = 1
    threshold: NonNegative = 0.0
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

    `log_spectrum`: sigma_1 of W_hh and the spectral radius of J at each logged step; None: with a constraint.
    """

    epochs: Positive
    optimiser: SGD | Adam | RMSprop
    batch_size: Positive = 20
    slices: Positive = 1
    window: Window = Window()
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


class Evaluation(Record, frozen=True):
    """How validation is computed while training; reported figures come from one stream."""

    streams: Positive = 10
    length: Positive = 70
    warm_up: Annotated[int, Meta(ge=0)] = 0
    skip_first: bool = False


class Data(Record, frozen=True):
    """The text or music: where from unless --data says so, and how it is read."""

    corpus: str | None = None
    text: TextOptions = TextOptions()
    music: MusicOptions = MusicOptions()


class Expected(Record, frozen=True):
    """Published figures to stand beside ours; perplexities."""

    source: str
    valid: float | None = None
    test: float | None = None
    fine_tuned_valid: float | None = None
    fine_tuned_test: float | None = None
    parameters: int | None = None


class Recipe(Record, frozen=True):
    """One experiment, completely."""

    title: str
    model: Model
    training: Training
    data: Data = Data()
    evaluation: Evaluation = Evaluation()
    citation: str | None = None
    notes: str | None = None
    expected: Expected | None = None
    seed: Annotated[int, Meta(ge=0)] = 0

    @property
    def of_music(self) -> bool:
        """Whether it is about frames of notes rather than symbols."""
        return isinstance(self.model.encoder, Frames)


def load_recipe(path: Path, settings: list[str] | None = None) -> Recipe:
    """Read a recipe, with `key.path=value` settings laid over it.

    Raises:
        UserError: no such file, not TOML, an unknown key, a wrong type, a value out of range.

    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe; `elman recipes` lists those that come with elman") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: not a readable TOML recipe ({error})") from None
    for setting in settings or []:
        _lay_over(raw, setting)
    return parse_recipe(raw, str(path))


def parse_recipe(raw: dict[str, Any], source: str) -> Recipe:
    """A recipe from plain dictionaries; `source` is named in error messages."""
    try:
        return msgspec.convert(raw, Recipe, str_keys=True)
    except msgspec.ValidationError as error:
        raise UserError(f"{source}: {explain(error, Recipe, raw)}") from None


def dump_recipe(recipe: Recipe) -> str:
    """The recipe as TOML with every default written out."""
    return tomli_w.dumps(_without_none(msgspec.to_builtins(recipe, str_keys=True)))


def changed_keys(old: Recipe, new: Recipe) -> list[str]:
    """The key paths at which two recipes differ."""
    a, b = (dict(_flatten(msgspec.to_builtins(recipe, str_keys=True))) for recipe in (old, new))
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def _lay_over(raw: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"--set {setting}: write key.path=value, such as --set training.optimiser.lr=20")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = raw
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {setting}: {key} is not a table of the recipe")
    table[keys[-1]] = value


def _flatten(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [item for key, part in value.items() for item in _flatten(part, f"{path}.{key}" if path else str(key))]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_none(part) for key, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list | tuple) else value
