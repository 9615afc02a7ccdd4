"""Dynamic evaluation: the model learns from every segment after it has been evaluated on it (Krause et al. 2018).

The rule "rms" divides by the size that the gradient of every weight usually has, its statistics over the training text.
The neural cache: symbols that followed similar hidden states in the recent past are likely to follow again.
"""

import contextlib
import copy
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from elman.config.inference import CacheRule, Rule
from elman.data.windows import PositionedWindows, TrainingWindows, Windows
from elman.errors import UserError
from elman.evaluation.perplexity import evaluating
from elman.jobs import Advance, Kept, advancing
from elman.learning import checkpoint
from elman.learning.bptt import bptt
from elman.network.device import widest
from elman.network.fast import precision
from elman.network.model import LanguageModel
from elman.network.state import State, detach, restart
from elman.objective.loss import Objective


class NeuralCache:
    """The last `window` pairs of a hidden state and the symbol that followed it, of one stream."""

    def __init__(self, rule: CacheRule) -> None:
        self.rule = rule
        self._count = 0

    def read(self, log_prob: Tensor, hidden: Tensor, targets: Tensor) -> Tensor:
        """Mix the cache into the model's log-probabilities, then store the positions.

        Every position sees the `window` positions before it and none after, so the result does not depend on how a
        text is cut. `log_prob` [n] are the model's (nats) of `targets` [n], `hidden` [n, D] its last level; the result
        [n] is the model's own where the cache is still empty.
        """
        parts = [part.split(self.rule.window) for part in (log_prob, hidden, targets)]
        return torch.cat([self._read(*part) for part in zip(*parts, strict=True)])

    @torch.no_grad()
    def _read(self, log_prob: Tensor, hidden: Tensor, targets: Tensor) -> Tensor:
        window, size = self.rule.window, len(targets)
        if not self._count:
            self._states = hidden.new_zeros(window, hidden.shape[1])
            self._symbols = targets.new_zeros(window)
        now = torch.arange(self._count, self._count + size, device=targets.device)
        # What a slot of the ring holds is the last position before now[0] that falls on it.
        slots = torch.arange(window, device=targets.device)
        stored = now[0] - 1 - (now[0] - 1 - slots) % window
        at = torch.cat([stored, now])
        symbols = torch.cat([self._symbols, targets])
        similarity = self.rule.theta * (hidden @ torch.cat([self._states, hidden]).t())
        visible = (at >= 0) & (at < now[:, None]) & (at >= now[:, None] - window)
        similarity = similarity.masked_fill(~visible, -torch.inf)
        right = similarity.masked_fill(symbols != targets[:, None], -torch.inf)
        cached = right.logsumexp(1) - similarity.logsumexp(1)
        weight = math.log(self.rule.weight) if self.rule.weight else -math.inf
        mixed = torch.logaddexp(log_prob + math.log1p(-self.rule.weight), cached + weight)
        self._states[now % window], self._symbols[now % window] = hidden, targets
        self._count += size
        return torch.where(now > 0, mixed, log_prob)


REFERENCE = 5  # rates are quoted for a segment of this many tokens, and grow in proportion to a segment's tokens

COLUMNS, SEGMENT = 100, 5
"""For the statistics: columns read side by side and steps of a segment (Krause et al. 2018; thesis 4.4)."""

DIVERGED = "dynamic evaluation diverged; give a lower --lr, or another --rule"

BEYOND = 1e6
"""Nats of a token that no weights which still predict give: logits of this size have a digit behind the point left."""

CHUNK = 32768  # numbers updated at a time on a CPU: small enough to stay in its cache from one operation to the next

Statistics = dict[str, Tensor]
"""sqrt(mean over segments of g^2) of every parameter by its name, in the parameter's shape."""


def has_diverged(log_prob: Tensor) -> bool:
    """Whether a log-probability is no number, or one that only weights without bound give."""
    return bool((log_prob.isnan() | (log_prob.isfinite() & (log_prob < -BEYOND))).any())


Model = TypeVar("Model", bound=nn.Module)


class ScoredWindow(NamedTuple):
    """T steps: log-probabilities [T, B] (nats), the last level [T, B, D] and the state after them."""

    log_prob: Tensor
    hidden: Tensor
    state: State


class AdaptiveCopy(Generic[Model]):
    """A copy of a model whose weights follow the gradients of the text it reads; the model itself is not changed.

    Dropout is off. `trained` must not change, since the copy returns to its weights; `statistics` are needed by the
    rule "rms". Raises UserError where products are in int8, which has no gradients.
    """

    def __init__(self, trained: Model, rule: Rule, statistics: Statistics | None = None) -> None:
        _require_gradients()
        self.rule, self.model = rule, copy.deepcopy(trained).eval().requires_grad_(True)
        self._now = [_chunks(parameter) for parameter in self.model.parameters()]
        self._trained = [_chunks(parameter) for parameter in trained.parameters()]
        self._share = 1.0
        if rule.kind == "rms":
            assert statistics is not None, "the rule rms needs gradient statistics"
            rms = [statistics[name] for name, _ in trained.named_parameters()]
            self._rms = [_chunks(tensor) for tensor in rms]
            # The mean over tensors of each one's mean, as in the published code: small tensors weigh as much as large.
            self._mean = sum(tensor.mean(dtype=widest(tensor.device)).item() for tensor in rms) / len(rms)

    @contextlib.contextmanager
    def learning(self, steps: int) -> Iterator[None]:
        """Within the block `backward` changes the weights, by the gradient of the mean NLL of `steps` steps."""
        self._share = steps / REFERENCE
        learn = self._learn_rms if self.rule.kind == "rms" else self._learn_sgd
        with torch.enable_grad(), _handing_over(self.model, learn):
            yield

    def _learn_rms(self, index: int, gradient: Tensor) -> None:
        lr, decay = self._share * self.rule.lr, self._share * self.rule.decay / self._mean
        parts = zip(self._now[index], self._trained[index], self._rms[index], _chunks(gradient), strict=True)
        for now, trained, rms, g in parts:
            factor = (rms * decay).clamp_(max=1)
            now.lerp_(trained, factor)
            now.addcdiv_(g, torch.add(rms, self.rule.eps, out=factor), value=-lr)

    def _learn_sgd(self, index: int, gradient: Tensor) -> None:
        lr, decay = self._share * self.rule.lr, min(1.0, self._share * self.rule.decay)
        for now, trained, g in zip(self._now[index], self._trained[index], _chunks(gradient), strict=True):
            now.lerp_(trained, decay).add_(g, alpha=-lr)


class DynamicModel(AdaptiveCopy[LanguageModel]):
    """A copy of a language model that learns from every segment it has scored: never before."""

    def read(self, inputs: Tensor, targets: Tensor, state: State) -> ScoredWindow:
        """Score targets [T, B], or frames [T, B, P], after inputs of the same shape, then learn from them."""
        with self.learning(len(inputs)):
            trace, state = self.model.trace(inputs, state)
            positions = trace.top[..., 0]
            weight = torch.full_like(positions, 1 / positions.numel(), requires_grad=False)
            loss, nll = self.model.output.nll(self.model.output.contexts(trace), targets, weight)
            loss.backward()
        return ScoredWindow(-nll.detach(), trace.raw[-1].detach(), detach(state))


@torch.no_grad()
def read_static(model: LanguageModel, inputs: Tensor, targets: Tensor, state: State) -> ScoredWindow:
    """Score targets [T, B] after inputs [T, B] by a model that does not learn."""
    trace, state = model.trace(inputs, state)
    return ScoredWindow(model.output.log_prob(trace, targets), trace.raw[-1], state)


def adaptive_stream(
    read: Callable[[Tensor, Tensor, State], ScoredWindow],
    model: LanguageModel,
    windows: PositionedWindows,
    cache: NeuralCache | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities and positions of one column (`perplexity.stream`) by a model that learns, a cache, or both.

    `read` scores a window, and may learn from it afterwards (`DynamicModel.read`); windows have the length of a
    segment. The keys of the cache are the last level of the model that reads the text.
    """
    assert windows.streams <= 1, "adaptation is defined for one stream"
    state = beginning = model.begin(1)
    for batch, positions in windows:
        batch = batch.to(model.device)
        assert batch.mask is not None
        assert batch.fresh is not None
        state = restart(state, batch.fresh, beginning)
        log_prob, hidden, state = read(batch.inputs, batch.targets, state)
        if cache is not None:
            log_prob = cache.read(log_prob[:, 0], hidden[:, 0], batch.targets[:, 0]).unsqueeze(1)
        yield log_prob[batch.mask], positions[positions >= 0]


def gradient_statistics(model: LanguageModel, windows: Windows, advance: Advance = None) -> Statistics:
    """The `root_mean_squares` of a model over a text or music; the windows of the first epoch are read.

    `advance` is called with (windows done, windows in all).
    """
    spans = windows.spans(0)

    def backward() -> Iterator[None]:
        state = beginning = model.begin(windows.batch(spans[0]).inputs.shape[1])
        for span in advancing(spans, len(spans), advance):
            batch = windows.batch(span).to(model.device)
            assert batch.fresh is not None
            _, state = bptt(model, Objective(), batch, restart(state, batch.fresh, beginning))
            yield

    return root_mean_squares(model, backward())


def root_mean_squares(model: nn.Module, backward: Iterable[None]) -> Statistics:
    """Root of the mean squared gradient over windows (Krause et al. 2018, eq. 5), in evaluation mode.

    Each step of `backward` computes the gradient of the mean NLL over the positions of one window. The weights are not
    changed. Raises UserError where products are in int8.
    """
    _require_gradients()
    squares, count = [torch.zeros_like(parameter) for parameter in model.parameters()], 0
    take = _handing_over(model, lambda index, gradient: squares[index].addcmul_(gradient, gradient))
    with evaluating(model), take:
        for _ in backward:
            count += 1
    names = (name for name, _ in model.named_parameters())
    return {name: (square / count).sqrt_() for name, square in zip(names, squares, strict=True)}


def statistics_windows(tokens: np.ndarray) -> TrainingWindows:
    """`COLUMNS` x `SEGMENT` positions of a text [n] at a time; a short text is read in as many columns as it fills.

    Raises UserError where it does not fill one.
    """
    if len(tokens) <= SEGMENT:
        raise UserError(
            f"gradient statistics need {SEGMENT + 1} tokens of the training text, and {len(tokens)} are read; give more"
            " with --statistics-tokens, or use --rule sgd"
        )
    return TrainingWindows(tokens, max(1, min(COLUMNS, len(tokens) // (SEGMENT + 1))), SEGMENT)


def kept_statistics(
    path: Path, facts: dict[str, Any], compute: Callable[[], Statistics], device: torch.device, *, keep: bool = True
) -> Statistics:
    """The statistics that `path` holds for these facts (the model's digest and the text), else computed, and kept."""
    kept = Kept(path, facts, checkpoint.load, checkpoint.save)
    statistics = kept.made(compute) if keep else kept.find() or compute()
    return {name: tensor.to(device) for name, tensor in statistics.items()}


def _require_gradients() -> None:
    if precision.chosen() == "int8":
        raise UserError("--precision int8 runs a model as it is, and cannot adapt it; use float32 or bf16")


@contextlib.contextmanager
def _handing_over(model: nn.Module, take: Callable[[int, Tensor], object]) -> Iterator[None]:
    """Within the block `take(index, gradient)` is called with each parameter's gradient as soon as it is complete.

    The gradient is freed afterwards, so that all of them are never in memory at once.
    """

    def hand_over(index: int, parameter: Tensor) -> None:
        gradient, parameter.grad = parameter.grad, None
        assert gradient is not None
        with torch.no_grad():
            take(index, gradient)

    with contextlib.ExitStack() as handles:
        for index, parameter in enumerate(model.parameters()):
            handles.callback(parameter.register_post_accumulate_grad_hook(partial(hand_over, index)).remove)
        yield


def _chunks(tensor: Tensor) -> tuple[Tensor, ...]:
    flat = tensor.detach().reshape(-1)
    return flat.split(CHUNK) if flat.device.type == "cpu" else (flat,)
