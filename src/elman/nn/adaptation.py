"""Models that adapt to the text they read: dynamic evaluation (Krause et al. 2018) and the neural cache (Grave et al.).

    statistics = enn.gradient_statistics(model, train_ids)
    print(enn.perplexity(enn.DynamicEvaluation(model, statistics), test_ids))
    print(enn.perplexity(enn.NeuralCache(model, weight=0.1, theta=1.0, window=500), test_ids))

Both are readers of one text and can be combined, `NeuralCache(DynamicEvaluation(model, statistics))`. The model that is
given does not change.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from elman.config.inference import RULES, CacheRule, Settings
from elman.errors import UserError
from elman.evaluation import dynamic
from elman.nn.evaluation import Reader, Scored, Static, output_of, sequence_of
from elman.nn.recurrent import detach


class DynamicEvaluation(Reader):
    """A copy of a model that learns from every segment of a text after it has scored it (Krause et al. 2018).

    With g the gradient of a segment's mean NLL, and theta_0 the trained weights,

        with statistics:  theta += decay min(RMS / mean RMS, 1 / decay) (theta_0 - theta) - lr g / (RMS + eps)  (6-8)
        without:          theta += decay (theta_0 - theta) - lr g                                               (3)

    Args:
        model: see `elman.nn.evaluation`; it must not change while it is read with
        statistics: what `gradient_statistics` returns, or None
        lr: learning rate, for segments of 5 tokens; by default 5e-5, without statistics 0.1
        decay: how fast the weights return to the trained ones, likewise; by default 2e-3, without statistics 0
        eps: keeps weights whose gradients are nearly always 0 in place
        segment: tokens between two updates

    Attributes:
        model: the copy, with the weights of the moment

    Raises ValueError where a number is out of its range, or the statistics are of another model.
    """

    def __init__(
        self,
        model: nn.Module,
        statistics: Mapping[str, Tensor] | None = None,
        *,
        lr: float | None = None,
        decay: float | None = None,
        eps: float = 2e-5,
        segment: int = 5,
    ) -> None:
        super().__init__()
        usual = RULES["sgd" if statistics is None else "rms"]
        rule = type(usual)(
            kind=usual.kind,
            lr=usual.lr if lr is None else lr,
            decay=usual.decay if decay is None else decay,
            eps=eps,
            segment=segment,
        )
        _require(rule)
        shapes = None if statistics is None else {name: one.shape for name, one in statistics.items()}
        if shapes not in (None, {name: one.shape for name, one in model.named_parameters()}):
            raise ValueError(
                "statistics are of another model; take those that gradient_statistics returns for this one"
            )
        self._copy = dynamic.AdaptiveCopy(model, rule, None if statistics is None else dict(statistics))
        self.model, self.segment, self._state = self._copy.model, segment, None

    def read(self, inputs: Tensor, targets: Tensor) -> Scored:
        """Score a segment, then learn from it."""
        with self._copy.learning(len(inputs)):
            hidden, state = self.model(inputs.unsqueeze(1), self._state)
            nll = output_of(self.model).nll(hidden, targets.unsqueeze(1), reduction="none")
            nll.mean().backward()
        self._state = detach(state)
        return Scored(-nll.detach()[:, 0], hidden.detach()[:, 0])


class NeuralCache(Reader):
    """A model and the words that followed similar hidden states in the recent past (Grave et al. 2017, eqs 2 and 3).

        p(y) = (1 - weight) p_model(y) + weight p_cache(y)
        p_cache(y) ~ sum over the window's (h_i, x_{i+1}) of [x_{i+1} = y] exp(theta h_t . h_i)

    Args:
        model: see `elman.nn.evaluation`, or another reader, such as `DynamicEvaluation`
        weight: share of the cache in the prediction, 0 or more and below 1
        theta: how strongly similarity counts
        window: positions that the cache holds

    Raises ValueError where a number is out of its range.
    """

    def __init__(
        self, model: nn.Module | Reader, *, weight: float = 0.1, theta: float = 1.0, window: int = 500
    ) -> None:
        super().__init__()
        rule = CacheRule(weight=weight, theta=theta, window=window)
        _require(rule)
        self.reader = model if isinstance(model, Reader) else Static(model)
        self.model, self.segment = self.reader.model, self.reader.segment
        self._cache = dynamic.NeuralCache(rule)

    def read(self, inputs: Tensor, targets: Tensor) -> Scored:
        """Score a segment, then store it."""
        scored = self.reader.read(inputs, targets)
        return scored._replace(log_prob=self._cache.read(scored.log_prob, scored.hidden, targets))


def gradient_statistics(model: nn.Module, ids: Any) -> dict[str, Tensor]:
    """Root of the mean squared gradient of every parameter over a text (Krause et al. 2018, eq. 5), by its name.

    The ids [n] are read in segments of 5 steps, 100 columns at a time, in evaluation mode; the model does not change.
    Raises ValueError where they do not fill one segment.
    """
    try:
        windows = dynamic.statistics_windows(sequence_of(ids, model).cpu().numpy())
    except UserError as error:
        raise ValueError(f"gradient statistics need {dynamic.SEGMENT + 1} ids or more") from error

    def backward() -> Iterator[None]:
        state = None
        for span in windows.spans(0):
            batch = windows.batch(span).to(next(model.parameters()).device)
            with torch.enable_grad():
                hidden, state = model(batch.inputs, state)
                output_of(model).nll(hidden, batch.targets).backward()
            state = detach(state)
            yield

    return dynamic.root_mean_squares(model, backward())


def _require(settings: Settings) -> None:
    try:
        settings.check()
    except UserError as error:
        raise ValueError(str(error).removeprefix("--").removeprefix("cache-")) from None
