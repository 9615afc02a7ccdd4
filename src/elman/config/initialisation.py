"""How the weights of a network begin: a rule for each group of parameters."""

from typing import Literal, TypeAlias

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
    """Rules by group of parameters, by default AWD-LSTM's.

    `candidate`: W_hh of thesis 3.5, by default as `hidden`. `contexts_bias`: biases of contexts, by default as
    `contexts` (AWD-LSTM-MoS); the published code of DOC begins them at 0. `output_bias`: the biases of words
    or notes begin at 0, or where the output gives each its relative frequency, which nothing then has to learn.
    """

    embedding: Init = Uniform(bound=0.1)
    output: Init = Uniform(bound=0.1)
    contexts: Init = Uniform()
    contexts_bias: Init | None = None
    input: Init = Uniform()
    hidden: Init = Uniform()
    candidate: Init | None = None
    bias: Init = Uniform()
    forget_bias: float | None = None
    output_bias: Literal["zeros", "unigram"] = "zeros"
