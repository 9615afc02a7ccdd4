"""Distributions given a context: over V symbols, over frames of P notes that may sound together, or over P real values.

N positions, K contexts per position, D their width.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor, nn

from elman import config
from elman.config import plugins
from elman.config.parts import Built
from elman.errors import UserError
from elman.network.encoders.encoder import TokenEncoder
from elman.network.encoders.lookup import LookupEncoder
from elman.network.initialisation import fill
from elman.network.output.activation import inverse

Vectors: TypeAlias = Float[Tensor, "N K D"]
Targets: TypeAlias = Shaped[Tensor, "N *P"]
PerContext: TypeAlias = Float[Tensor, "N K"]
Each: TypeAlias = Float[Tensor, " N"]
NLL: TypeAlias = tuple[Float[Tensor, ""], Each]
Row: TypeAlias = Float[Tensor, "N D"]
Draws: TypeAlias = Float[Tensor, "N P"]


class Conditional(Built, nn.Module, ABC):
    """p(target | context), defined by `log_prob`; the two methods for mixtures may be overridden by faster ones.

    `predicts` is the kind of a step, as `TokenEncoder.reads`: "symbols", "notes" or "values".
    """

    predicts: ClassVar[str] = "symbols"

    @abstractmethod
    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        """Log-probability [N, K] of target [N], or frames [N, P], under each context [N, K, D]."""

    def mixture_log_prob(self, context: Vectors, log_prior: PerContext, target: Targets) -> Each:
        """Log sum_k exp(log_prior_k) p(target | context_k), [N]."""
        return torch.logsumexp(log_prior + self.log_prob(context, target), dim=-1)

    def mixture_nll(self, context: Vectors, log_prior: PerContext, target: Targets, position_weight: Each) -> NLL:
        """The sum of position_weight * -mixture_log_prob, differentiable, and each position's NLL [N], detached."""
        nll = -self.mixture_log_prob(context, log_prior, target)
        return (position_weight * nll).sum(), nll.detach()

    def initialise(self, rules: config.Initialisation, tied: Collection[nn.Parameter] = ()) -> None:
        """Fill the matrices that are not among `tied`; vectors keep the values they are made with."""
        for parameter in self.parameters():
            if parameter.ndim > 1 and not any(parameter is other for other in tied):
                fill(parameter, rules.output, parameter.shape[1])


class Choice(Conditional):
    """p(symbol | context), with few enough outcomes to list all their probabilities."""

    @abstractmethod
    def log_probs(self, context: Vectors) -> Float[Tensor, "N K V"]:
        """Log-probabilities [N, K, V] of all symbols given contexts [N, K, D]."""

    @abstractmethod
    def multiply_adds(self, frequency: Tensor) -> float:
        """Multiply-adds of the matrix products in the forward pass of `log_prob`, per context.

        `frequency` is the relative one of each symbol as a target, [V], summing to one; see `zipf`.
        """

    def begin_at(self, log_p: Float[Tensor, " V"]) -> None:  # noqa: ARG002
        """Set the biases so that contexts of zeros give the probabilities p; a UserError where that cannot be done."""
        raise UserError(
            'model.initialisation.output_bias = "unigram" needs model.output.choice.kind = "flat" or "adaptive" with'
            ' bias = true, and no gate on the logits; change them, or set it to "zeros"'
        )


class ScoredChoice(Choice):
    """log p(y) = s_y - logsumexp_v s_v, one normalisation over the scores s of the whole vocabulary."""

    weight: nn.Parameter

    @abstractmethod
    def scores(self, context: Vectors) -> Float[Tensor, "N K V"]:
        """The scores of all symbols."""

    def log_probs(self, context: Vectors) -> Float[Tensor, "N K V"]:
        return normalised(self.scores(context))

    def log_prob(self, context: Vectors, target: Shaped[Tensor, " N"]) -> PerContext:
        scores = self.scores(context)
        return chosen(scores, target) - scores.logsumexp(-1)

    def multiply_adds(self, frequency: Tensor) -> float:  # noqa: ARG002
        return float(self.weight.numel())


class Drawn(Conditional):
    """p(vector | context), with outcomes that can be drawn but not listed."""

    @abstractmethod
    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Vectors [N, P] drawn given contexts [N, D]; below a temperature of 1 probable ones are more frequent."""


class Chord(Drawn):
    """p(frame | context) over the 2^P frames of zeros and ones.

    The temperature divides the log-odds of every note; at 0 the likelier of on and off is taken.
    """

    predicts = "notes"

    def begin_at(self, log_odds: Float[Tensor, " P"]) -> None:  # noqa: ARG002
        """Set the biases so that contexts of zeros give each note these log-odds; a UserError where there are none."""
        raise UserError(
            'model.initialisation.output_bias = "unigram" needs model.output.choice.kind = "bernoulli" with bias ='
            ' true, or "nade"; change it, or set output_bias to "zeros"'
        )


class Surroundings(NamedTuple):
    """What a choice needs to know of the network: D, V words, P pitches or values, the activation.

    The matrix of a tied choice is the encoder's; counts are the occurrences of each word, falling; None: unknown.
    `gate_size` is the width of what a gate on the logits reads; None: there is none.
    """

    size: int
    num_outputs: int
    activation: config.Activation = "softmax"
    encoder: TokenEncoder | None = None
    counts: Sequence[int] | None = None
    gate_size: int | None = None

    def matrix(self, tied: bool, width: int | None = None, whose: str = "contexts have") -> nn.Parameter:
        """A matrix [V, width], by default [V, D]; if tied the encoder's own, with a UserError where it has none."""
        width = self.size if width is None else width
        if not tied:
            return nn.Parameter(torch.empty(self.num_outputs, width))
        if not isinstance(self.encoder, LookupEncoder):
            raise UserError(
                "model.output.choice.tied needs an encoder with a vector per word, and this one has none; set"
                ' tied = false, or model.encoder.kind = "lookup"'
            )
        if width != self.encoder.size:
            raise UserError(
                f"model.output.choice.tied needs contexts as wide as the word vectors, but {whose} {width} and"
                f" model.encoder.size is {self.encoder.size}; make them equal or set tied = false"
            )
        return self.encoder.weight


_EXAMPLES = {"symbols": '"flat"', "notes": '"bernoulli" or "nade"', "values": '"gaussian" or "gaussian-mixture"'}


def build_choice(
    record: config.Output, size: int, encoder: TokenEncoder, num_outputs: int, counts: Sequence[int] | None = None
) -> Conditional:
    """The choice of a recipe; arguments as in `Surroundings`; raises UserError where parts do not fit together."""
    surroundings = Surroundings(size, num_outputs, record.activation, encoder, counts, _gate_size(record, encoder))
    choice: Conditional = plugins.built(record.choice, Conditional, surroundings)
    if choice.predicts != encoder.reads:
        raise UserError(
            f"model.encoder and model.output.choice do not fit together: {encoder.reads} are read and {choice.predicts}"
            f" predicted; choose a model.output.choice of {encoder.reads}, such as kind = {_EXAMPLES[encoder.reads]}"
        )
    return choice


def _gate_size(record: config.Output, encoder: TokenEncoder) -> int | None:
    """The width of what a gate on the logits reads; raises UserError where the choice has no logits to multiply."""
    if record.gate is None or record.gate.on != "logits":
        return None
    if not record.choice.gated:
        raise UserError(
            'model.output.gate.on = "logits" multiplies the logits of model.output.choice.kind = "flat"; use that'
            ' choice, or set model.output.gate.on = "level", which any choice follows'
        )
    return record.gate.size or encoder.size


def normalised(scores: Tensor) -> Tensor:
    """Log-probabilities of scores log g(z), over the last axis."""
    return scores.log_softmax(-1)


def chosen(values: Tensor, target: Tensor) -> Tensor:
    """The values of target [N], out of values [N, K, V]: [N, K]."""
    return values.gather(-1, target.view(-1, 1, 1).expand(-1, values.shape[1], 1)).squeeze(-1)


def log_odds_of_notes(sounding: Tensor, steps: int | Tensor) -> Tensor:
    """Log-odds [P] of notes that sound in `sounding` [P] of the steps, with one step more of each kind."""
    return ((sounding.double() + 1) / (steps - sounding + 1)).log()


def biases_of(log_p: Tensor, activation: config.Activation) -> Tensor:
    """Biases [V] with which contexts of zeros give probabilities p [V]; a UserError where an activation allows none.

    Relu and sigsoftmax take a sum of p times V, so that the biases of words of average frequency are near zero. Sigmoid
    is bounded by one; softplus is then near exp, without biases of hundreds; softmax has the same distribution.
    """
    total = 0.0 if activation in ("softmax", "sigmoid", "softplus") else math.log(len(log_p))
    return log_p if activation == "softmax" else inverse(log_p + total, activation)


def unigram(num_symbols: int, counts: Sequence[int] | None) -> Tensor:
    """The logarithms [V] of relative frequencies, with one added to every count; without counts, of Zipf's law."""
    if counts is None:
        return zipf(num_symbols).log()
    more = torch.as_tensor(counts, dtype=torch.float64, device="cpu") + 1
    return (more / more.sum()).log()


def zipf(num_symbols: int) -> Tensor:
    """Relative frequencies [V] in proportion to 1 / rank, in place of unknown counts."""
    weight = 1 / torch.arange(1, num_symbols + 1, dtype=torch.float64, device="cpu")
    return weight / weight.sum()
