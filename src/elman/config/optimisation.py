"""Windows, optimisers and their schedules."""

from typing import Annotated

from msgspec import Meta

from elman.config.record import NonNegative, Positive, PositiveFloat, Rate, Record, Tagged


class Window(Record, frozen=True):
    """The windows of truncated BPTT (`data/windows.py`); a random length scales that step's learning rate."""

    length: Positive = 70
    random: bool = False
    short_probability: Annotated[float, Meta(ge=0, le=1)] = 0.05
    spread: NonNegative = 5.0
    max_extra: int | None = None


class Memory(Record, frozen=True):
    """A stage of a growing memory: for so many epochs the state is set back after every few words (Elman 1993).

    `words`: the least and the greatest number of words between two resets (`data/staged.py`).
    """

    words: tuple[Positive, Positive]
    epochs: Positive = 1

    def __post_init__(self) -> None:
        if self.words[0] > self.words[1]:
            raise ValueError(f"words = {list(self.words)}; the lesser number stands first")


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
