"""Adaptive softmax: the frequent words in a head, the others in narrower tails, each with an entry in the head."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, NamedTuple, final

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn
from torch.nn.functional import linear

from elman import config
from elman.config.record import Positive
from elman.errors import UserError
from elman.network.fast import mixture, tails
from elman.network.output.activation import log_g
from elman.network.output.choice import (
    NLL,
    Choice,
    Each,
    PerContext,
    Surroundings,
    Targets,
    Vectors,
    biases_of,
    chosen,
    normalised,
    unigram,
)

DIV_VALUE = 4.0
"""How much narrower each tail is than the part before it, unless a recipe says (Grave et al. 2017)."""


class Adaptive(config.Choice, frozen=True, tag="adaptive"):
    """Adaptive softmax: the head ends before word cutoffs[0], each tail before the next cut-off.

    Without `cutoffs` there is one tail, which begins where the words' frequencies make the output cheapest.
    `tied`: the words have the encoder's vectors, so that tails are not narrower (`div_value` = 1).
    """

    cutoffs: Annotated[tuple[Positive, ...], Meta(min_length=1)] | None = None
    div_value: Annotated[float, Meta(ge=1)] | None = None
    bias: bool = False
    tied: bool = False

    def __post_init__(self) -> None:
        if self.tied and self.div_value not in (None, 1):
            raise ValueError("div_value: the tails of a tied choice are as wide as the word vectors; leave it out")


@final
class AdaptiveChoice(Choice, of=Adaptive):
    """log p(y) = log p_head(y) in the head, log p_head(tail i) + log p_i(y) in tail i (Grave et al. 2017, section 4).

    The head has the words before cutoffs[0] and an entry for each tail; tail i has those from cutoffs[i] to the next,
    as U_i P_i context with P_i of D / div_value^(i+1) rows. Each part is normalised log g: with sigsoftmax it is the
    adaptive sigsoftmax of Table 4.5 of the thesis. Words are numbered by falling frequency, as a vocabulary's are.

    A tied choice has the encoder's vectors in all parts, as wide as they are (Baevski & Auli 2019, section 3.3, with
    one width), and with `bias` a bias for every word.
    """

    def __init__(self, record: Adaptive, surroundings: Surroundings) -> None:
        super().__init__()
        factor = 1.0 if record.tied else record.div_value or DIV_VALUE
        self.num_words, self.fast = surroundings.num_outputs, True
        if self.num_words < 2:
            raise UserError(
                f'model.output.choice.kind = "adaptive" parts a vocabulary into a head and tails, and this one has'
                f' {self.num_words} symbol; use the kind "flat"'
            )
        self.cutoffs = record.cutoffs or (cheapest_cutoff(self.num_words, surroundings.counts, factor),)
        if list(self.cutoffs) != sorted(set(self.cutoffs)) or self.cutoffs[-1] >= self.num_words:
            raise UserError(
                f"model.output.choice.cutoffs is {list(self.cutoffs)}; cut-offs must rise and be less than the"
                f" {self.num_words} words of the vocabulary"
            )
        self.activation, size = surroundings.activation, surroundings.size
        sizes = [high - low for low, high in self.tails()]
        head = self.cutoffs[0] + len(self.cutoffs)
        self.tied = surroundings.matrix(tied=True) if record.tied else None
        self.head = nn.Parameter(torch.empty(len(sizes) if record.tied else head, size))
        self.bias = nn.Parameter(torch.zeros(head + sum(sizes) if record.tied else head)) if record.bias else None
        widths = [] if record.tied else [max(1, int(size / factor ** (tail + 1))) for tail in range(len(sizes))]
        self.down = nn.ParameterList(nn.Parameter(torch.empty(width, size)) for width in widths)
        self.up = nn.ParameterList(
            nn.Parameter(torch.empty(words, width)) for words, width in zip(sizes, widths, strict=bool(widths))
        )

    def tails(self) -> Iterator[tuple[int, int]]:
        """The first word of every tail, and the one after its last."""
        return pairwise((*self.cutoffs, self.num_words))

    def log_probs(self, context: Vectors) -> Float[Tensor, "N K V"]:
        num_head, (first, *tails) = self.cutoffs[0], self._matrices()
        head = normalised(log_g(linear(context, first.up, first.bias), self.activation))
        parts = [head[..., :num_head]]
        for tail, matrices in enumerate(tails):
            within = normalised(log_g(linear(matrices.narrow(context), matrices.up, matrices.bias), self.activation))
            parts.append(head[..., num_head + tail, None] + within)
        return torch.cat(parts, dim=-1)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        """Log-probability of the target, [N, K]; a tail is computed only at the positions of its words."""
        if not self.fast:
            return chosen(self.log_probs(context), target)
        found = context.new_zeros(context.shape[:2], dtype=self.head.dtype)
        for part in self._parts(context, target):
            found = found.index_add(0, part.at, part.log_prob(self.activation))
        return found

    def mixture_nll(self, context: Vectors, log_prior: PerContext, target: Targets, position_weight: Each) -> NLL:
        """As in `Choice`; the gradients of the head, and with one context of all parts, are formed in the forward pass.

        For the responsibilities of several contexts the log-probabilities within the tails are part of the prior.
        """
        if not self.fast:
            return super().mixture_nll(context, log_prior, target, position_weight)
        head, *tails = self._parts(context, target)
        if context.shape[1] > 1:
            for part in tails:
                log_prior = log_prior.to(self.head.dtype).index_add(0, part.at, part.log_prob(self.activation))
            return head.mixture_nll(log_prior, position_weight, self.activation)
        nll = -log_prior.detach().squeeze(1).to(self.head.dtype)
        total = -(position_weight * log_prior.squeeze(1)).sum()
        for part in (head, *tails):
            of_part, each = part.mixture_nll(None, position_weight[part.at], self.activation)
            total, nll = total + of_part, nll.index_add(0, part.at, each)
        return total, nll

    def _parts(self, context: Tensor, target: Tensor) -> "Iterator[_Part]":
        """The head with every position, then each tail that has targets, with their positions."""
        entry = target
        for tail, (low, high) in enumerate(self.tails()):
            entry = entry.where((target < low) | (target >= high), self.cutoffs[0] + tail)
        first, *tails = self._matrices()
        yield _Part(torch.arange(len(target), device=target.device), context, first.up, first.bias, entry)
        for (low, high), part in zip(self.tails(), tails, strict=True):
            at = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if len(at):
                yield _Part(at, part.narrow(context[at]), part.up, part.bias, target[at] - low)

    def _matrices(self) -> "list[_Matrices]":
        if self.tied is None:
            tails = (_Matrices(up, None, down) for down, up in zip(self.down, self.up, strict=True))
            return [_Matrices(self.head, self.bias), *tails]
        sizes = [high - low for low, high in self.tails()]
        head, *words = _rows(self.tied, [self.cutoffs[0], *sizes])
        count = [self.cutoffs[0] + len(sizes), *sizes]
        biases = [None] * len(count) if self.bias is None else _rows(self.bias, count)
        return [_Matrices(*pair) for pair in zip((torch.cat([head, self.head]), *words), biases, strict=True)]

    @torch.no_grad()
    def begin_at(self, log_p: Float[Tensor, " V"]) -> None:
        """As in `Choice`; the words of a tail without biases of its own are equally frequent."""
        if self.bias is None:
            super().begin_at(log_p)
            return
        head, *tails = log_p.tensor_split(self.cutoffs)
        entries = [tail.logsumexp(0) for tail in tails]
        within = [] if self.tied is None else [tail - entry for tail, entry in zip(tails, entries, strict=True)]
        parts = (torch.cat([head, torch.stack(entries)]), *within)
        self.bias.copy_(torch.cat([biases_of(part, self.activation) for part in parts]))

    def multiply_adds(self, frequency: Tensor) -> float:
        """The head, and each tail in proportion to the frequency of its words."""
        first, *tails = self._matrices()
        cost = float(first.up.numel())
        for (low, high), tail in zip(self.tails(), tails, strict=True):
            narrowing = 0 if tail.down is None else tail.down.numel()
            cost += float(frequency[low:high].sum()) * (narrowing + tail.up.numel())
        return cost


def _rows(tensor: Tensor, counts: list[int]) -> Sequence[Tensor]:
    """The tensor in pieces of `counts` rows: slices in a graph that is exported, where they are constants."""
    if not torch.compiler.is_exporting():
        return tensor.split(counts)
    ends = accumulate(counts)
    return [tensor[end - count : end] for end, count in zip(ends, counts, strict=True)]


class _Matrices(NamedTuple):
    """The output matrix of a part and its bias, and the projection before it that makes contexts narrow, or None."""

    up: Tensor
    bias: Tensor | None
    down: Tensor | None = None

    def narrow(self, context: Tensor) -> Tensor:
        return context if self.down is None else linear(context, self.down)


def cheapest_cutoff(num_words: int, counts: Sequence[int] | None, factor: float) -> int:
    """The size of the head with the fewest multiply-adds, where one tail follows whose contexts are `factor` narrower.

    There are two words or more; `counts` as in `unigram`.
    """
    rest = 1 - unigram(num_words, counts).exp().cumsum(0)[:-1]
    head = torch.arange(1, num_words, device="cpu")
    return int((head + rest * (num_words - head) / factor).argmin()) + 1


class _Part(NamedTuple):
    """The head or a tail: positions [n], their contexts [n, K, d], its weights and bias, targets within it [n]."""

    at: Tensor
    context: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor

    def log_prob(self, activation: config.Activation) -> PerContext:
        """The log-probabilities [n, K] of the targets within the part."""
        rows, y = self.context.flatten(0, 1), self.target.repeat_interleave(self.context.shape[1])
        if torch.is_grad_enabled():
            each = tails.log_prob(rows, self.weight, self.bias, y, activation)
        else:
            each = mixture.log_prob(rows.unsqueeze(1), None, self.weight, self.bias, y, activation)
        return each.view(self.context.shape[:2])

    def mixture_nll(self, log_prior: PerContext | None, position_weight: Each, activation: config.Activation) -> NLL:
        """As `mixture.nll`, of the targets within the part."""
        return mixture.nll(self.context, log_prior, self.weight, self.bias, self.target, position_weight, activation)
