"""Initialisation rules of the parameters."""

from typing import TypeAlias

from elman.config.record import PositiveFloat, Record, Tagged


class Uniform(Tagged, frozen=True, tag="uniform"):
    """U(-bound, bound); without a bound U(-1/sqrt(H), 1/sqrt(H)), H the number of columns of the recurrent matrix."""

    bound: PositiveFloat | None = None


class Normal(Tagged, frozen=True, tag="normal"):
    """N(0, std^2); without std N(0, 1/n), where n is the number of columns."""

    std: PositiveFloat | None = None


class Glorot(Tagged, frozen=True, tag="glorot"):
    """Glorot & Bengio 2010, uniform, per gate."""


class He(Tagged, frozen=True, tag="he"):
    """He et al. 2015, normal, per gate."""


class Orthogonal(Tagged, frozen=True, tag="orthogonal"):
    """An orthogonal matrix per gate (from the SVD of a random one, thesis 3.5)."""

    gain: PositiveFloat = 1.0


class Identity(Tagged, frozen=True, tag="identity"):
    """gain * identity per gate (Le et al. 2015)."""

    gain: PositiveFloat = 1.0


class Zeros(Tagged, frozen=True, tag="zeros"):
    """Zeros."""


Init: TypeAlias = Uniform | Normal | Glorot | He | Orthogonal | Identity | Zeros


class Initialisation(Record, frozen=True):
    """The rule of each group of parameters; the defaults are those of AWD-LSTM.

    `candidate`: the recurrent block of the candidate state (W_hh of thesis 3.5), by default as `hidden`.
    """

    embedding: Init = Uniform(bound=0.1)
    output: Init = Uniform(bound=0.1)
    contexts: Init = Uniform()
    input: Init = Uniform()
    hidden: Init = Uniform()
    candidate: Init | None = None
    bias: Init = Uniform()
    forget_bias: float | None = None
