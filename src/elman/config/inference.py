"""How a trained model is used: sampling, beam search, dynamic evaluation, the neural cache and Monte Carlo dropout.

These records are the option groups of the command line: a field's default, range (`Meta`), help (its line under
Attributes) and, where it differs from the field's name, its option (`Meta.title`) are defined here and nowhere else.
"""

import math
import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from elman.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers with ranges."""

    def check(self) -> None:
        """Raises UserError where a value is out of range."""
        for name in self.__struct_fields__:
            value, meta = getattr(self, name), meta_of(type(self), name)
            if isinstance(value, int | float) and not contains(meta, value):
                raise UserError(f"{option_of(type(self), name)} is {value:g}; it must be {in_words(meta)}")


COLDEST, HOTTEST = 1e-6, 1e6
"""The least temperature above 0, and the greatest; divided by less, or multiplied by more, numbers overflow."""


def require_temperature(value: float) -> None:
    """Raises UserError where a temperature is neither 0 nor one that can be computed with."""
    if value and not COLDEST <= value <= HOTTEST:
        raise UserError(f"--temperature is {value:g}; it must be {COLDEST:g} to {HOTTEST:g}, or 0, the most probable")


Temperature: TypeAlias = Annotated[float, Meta(ge=0)]
TopK: TypeAlias = Annotated[int, Meta(ge=1)]
TopP: TypeAlias = Annotated[float, Meta(gt=0, le=1)]


class Sampling(Settings, frozen=True, kw_only=True):
    """How a symbol is drawn from a distribution.

    Attributes:
        temperature: divides the log-probabilities; below 1 probable symbols become more probable, 0 takes the most
            probable symbol.
        top_k: draw only from this many of the most probable symbols.
        top_p: draw only from the most probable symbols that together reach this probability (Holtzman et al. 2020).
        forbidden: symbols that are never drawn.
    """

    temperature: Temperature = 1.0
    top_k: TopK | None = None
    top_p: TopP | None = None
    forbidden: tuple[int, ...] = ()

    def check(self) -> None:
        super().check()
        require_temperature(self.temperature)


class Beam(Settings, frozen=True, kw_only=True):
    """How targets are searched for.

    A hypothesis Y of length |Y|, its end symbol included, has the score of Wu et al. (2016, eq. 14):

        log p(Y|X) / ((5 + |Y|) / 6)^length_penalty + coverage * sum_s log min(sum_t a_ts, 1)

    where a_ts are the weights of its attention and s runs over the source without padding.

    Attributes:
        size: hypotheses kept at every step; 1 is greedy search.
        nbest: targets per source, at most the size of the beam.
        length_penalty: exponent of the length by which log-probabilities are divided; 0 ranks by probability, which
            favours short targets.
        coverage: weight of the attention that the source received; 0 leaves the term out.
        max_length: symbols per target at most (default: twice the source plus 10; of trees data.max_target).
    """

    size: Annotated[int, Meta(ge=1, title="beam")] = 5
    nbest: Annotated[int, Meta(ge=1)] = 1
    length_penalty: Annotated[float, Meta(ge=0, le=10)] = 0.6
    coverage: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    max_length: Annotated[int, Meta(ge=1)] | None = None

    def check(self) -> None:
        super().check()
        if self.nbest > self.size:
            raise UserError(f"--nbest is {self.nbest}; it must be 1 to {self.size}, the size of the beam")

    def score(self, log_prob: float, attention: "npt.NDArray[np.float32]") -> float:
        """The score of a hypothesis with attention [T, S], T being its length with its end."""
        import numpy as np

        score = log_prob / ((5 + len(attention)) / 6) ** self.length_penalty
        if not self.coverage:
            return score
        seen = attention.sum(0, dtype=np.float64).clip(1e-30, 1.0)
        return score + self.coverage * float(np.log(seen).sum())


class Rule(Settings, frozen=True, kw_only=True):
    """How the weights theta follow the gradient g of a segment's mean NLL, and return to the trained theta_0.

        rms:  theta += decay min(RMS / mean RMS, 1 / decay) (theta_0 - theta) - lr g / (RMS + eps)
        sgd:  theta += decay (theta_0 - theta) - lr g

    Attributes:
        kind: how the weights follow the gradient (Krause et al. 2018, eqs 6-8 and 3).
        lr: learning rate, for segments of 5 tokens.
        decay: how fast the weights return to the trained ones, likewise.
        eps: keeps weights whose gradients are nearly always 0 in place; of the rule rms.
        segment: tokens between two updates.
    """

    kind: Annotated[Literal["rms", "sgd"], Meta(title="rule")] = "rms"
    lr: Annotated[float, Meta(ge=0, le=1e38)] = 5e-5
    decay: Annotated[float, Meta(ge=0)] = 2e-3
    eps: Annotated[float, Meta(gt=0)] = 2e-5
    segment: Annotated[int, Meta(ge=1)] = 5

    def check(self) -> None:
        super().check()
        if self.kind == "sgd" and self.decay > 1:
            raise UserError(f"--decay is {self.decay:g}; with --rule sgd it must be at most 1 (all the way back)")


RULES = {"rms": Rule(), "sgd": Rule(kind="sgd", lr=0.1, decay=0.0)}
"""The rules with their default settings."""


class CacheRule(Settings, frozen=True, kw_only=True):
    """The cache of Grave et al. 2017, defaults as AWD-LSTM's on PTB (Merity et al. 2018, on pointer models).

        p(y) = (1 - weight) p_model(y) + weight p_cache(y)
        p_cache(y) ~ sum over the window's (h_i, x_{i+1}) of [x_{i+1} = y] exp(theta h_t . h_i)      (eqs 2, 3)

    Attributes:
        weight: share of the cache in the prediction.
        theta: how strongly similarity counts.
        window: positions that the cache holds.
    """

    weight: Annotated[float, Meta(ge=0, lt=1, title="cache-weight")] = 0.1
    theta: Annotated[float, Meta(ge=0, title="cache-theta")] = 1.0
    window: Annotated[int, Meta(ge=1, title="cache-window")] = 500


class DropoutSampling(Settings, frozen=True, kw_only=True):
    """Monte Carlo dropout: the mean of the probabilities of passes with dropout (Gal & Ghahramani 2016, section 3).

    Attributes:
        samples: passes over the text, each with masks of its own.
        seed: of the masks.
    """

    samples: Annotated[int, Meta(ge=1)] = 20
    seed: Annotated[int, Meta(ge=0)] = 0


def meta_of(record: type[msgspec.Struct], field: str) -> Meta:
    """The range of a record's field; an empty `Meta` where it has none."""
    return next(_metas(typing.get_type_hints(record, include_extras=True)[field]), Meta())


def option_of(record: type[msgspec.Struct], field: str) -> str:
    """The command-line option of a record's field, such as `--top-k`."""
    return f"--{meta_of(record, field).title or field.replace('_', '-')}"


def contains(meta: Meta, value: float) -> bool:
    """Whether a finite value lies in a range; nan and infinity never do."""
    return (
        math.isfinite(value)
        and (meta.ge is None or value >= meta.ge)
        and (meta.gt is None or value > meta.gt)
        and (meta.le is None or value <= meta.le)
        and (meta.lt is None or value < meta.lt)
    )


def in_words(meta: Meta) -> str:
    """A range in words.

    Example:
        >>> in_words(Meta(ge=1)), in_words(Meta(gt=0, le=1)), in_words(Meta())
        ('1 or more', 'above 0 and at most 1', 'a finite number')
    """
    low = [f"{meta.ge:g} or more"] if meta.ge is not None else [f"above {meta.gt:g}"] if meta.gt is not None else []
    high = [f"at most {meta.le:g}"] if meta.le is not None else [f"below {meta.lt:g}"] if meta.lt is not None else []
    return " and ".join(low + high) or "a finite number"


def _metas(annotation: Any) -> Iterator[Meta]:
    for part in (*getattr(annotation, "__metadata__", ()), *typing.get_args(annotation)):
        if isinstance(part, Meta):
            yield part
        else:
            yield from _metas(part)
