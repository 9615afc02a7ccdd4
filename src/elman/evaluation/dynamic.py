"""Dynamic evaluation: the model goes on learning from what it has just been tested on (Krause et al. 2018)."""

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from elman.config.inference import Rule
from elman.data.windows import Reading as Windows
from elman.evaluation.cache import NeuralCache
from elman.evaluation.gradient_statistics import Statistics, handing_over
from elman.network.model import LanguageModel
from elman.network.state import State, detach, restart

REFERENCE = 5
"""Rates are quoted for a segment of so many tokens, and grow in proportion to a segment's tokens."""

CHUNK = 32768
"""Numbers updated at a time on a CPU: small enough to stay in its cache from one operation to the next."""


class Reading(NamedTuple):
    """What reading T steps gives: log-probabilities [T, B] (nats), the last level [T, B, D] and the state after it."""

    log_prob: Tensor
    hidden: Tensor
    state: State


class DynamicModel:
    """A copy of a model that learns from the text it reads; the model itself is not touched.

    Every segment is scored by weights that have not seen it, and only then learnt from. Dropout is off throughout.

    Args:
        model: the trained model, which must stay as it is: the copy returns to its weights.
        rule: how to learn.
        statistics: of the gradients, for the rule "rms".

    """

    def __init__(self, model: LanguageModel, rule: Rule, statistics: Statistics | None = None) -> None:
        self.rule, self.model = rule, copy.deepcopy(model).eval().requires_grad_(True)
        self._now = [_chunks(parameter) for parameter in self.model.parameters()]
        self._trained = [_chunks(parameter) for parameter in model.parameters()]
        self._share = 1.0
        if rule.kind == "rms":
            assert statistics is not None, "the rule rms needs gradient statistics"
            rms = [statistics[name] for name, _ in model.named_parameters()]
            self._rms = [_chunks(tensor) for tensor in rms]
            # The mean over tensors of each one's mean, as in the published code: small tensors weigh as much as large.
            self._mean = sum(tensor.mean(dtype=torch.float64).item() for tensor in rms) / len(rms)

    def read(self, inputs: Tensor, targets: Tensor, state: State) -> Reading:
        """Score targets [T, B], or frames [T, B, P], after inputs of the same shape, then learn from them."""
        self._share = len(inputs) / REFERENCE
        learn = self._learn_rms if self.rule.kind == "rms" else self._learn_sgd
        with torch.enable_grad(), handing_over(self.model, learn):
            trace, state = self.model.trace(inputs, state)
            positions = trace.top[..., 0]
            weight = torch.full_like(positions, 1 / positions.numel(), requires_grad=False)
            loss, nll = self.model.output.nll(self.model.output.contexts(trace), targets, weight)
            loss.backward()
        return Reading(-nll.detach(), trace.raw[-1].detach(), detach(state))

    def look(self, inputs: Tensor, targets: Tensor, state: State) -> Reading:
        """Score without learning."""
        return read_static(self.model, inputs, targets, state)

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


@torch.no_grad()
def read_static(model: LanguageModel, inputs: Tensor, targets: Tensor, state: State) -> Reading:
    """Score targets [T, B] after inputs [T, B] by a model that stays as it is."""
    trace, state = model.trace(inputs, state)
    return Reading(model.output.log_prob(trace, targets), trace.raw[-1], state)


def adaptive_stream(
    read: Callable[[Tensor, Tensor, State], Reading],
    model: LanguageModel,
    windows: Windows,
    cache: NeuralCache | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """As `perplexity.stream`, with one column, by a model that learns (`DynamicModel.read`), a cache, or both.

    Args:
        read: scores a window, and may learn from it afterwards.
        model: gives the beginning state and the device.
        windows: of the segment's length; of music, where each piece begins with a state of its own.
        cache: mixed in; it sees the last level of whatever read the text.

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


def _chunks(tensor: Tensor) -> tuple[Tensor, ...]:
    flat = tensor.detach().reshape(-1)
    return flat.split(CHUNK) if flat.device.type == "cpu" else (flat,)
