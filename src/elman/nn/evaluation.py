"""How well a model predicts a text, every token counted once: `perplexity`, and the readers that adapt to the text.

A model here is a torch module that returns `(hidden [T, B, D], state)` for `model(inputs [T, B], state)`, state None
where sequences begin, and whose `output` is one of the outputs of `elman.nn`, or has their methods. T steps, B columns.
"""

import math
import operator
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elman import objective
from elman.data.windows import EvaluationWindows
from elman.evaluation import perplexity as scoring


class Scored(NamedTuple):
    """T tokens of one text: log-probabilities [T] (nats), and the hidden state [T, D] that each follows."""

    log_prob: Tensor
    hidden: Tensor


class Reader(ABC):
    """One text, read from its beginning in pieces of any size; every token is scored before anything is learnt from it.

    `model` is what predicts the next token.
    """

    model: nn.Module
    segment: int = 70
    """Steps that are read at a time."""

    def __init__(self) -> None:
        self._before: Tensor | None = None

    @abstractmethod
    def read(self, inputs: Tensor, targets: Tensor) -> Scored:
        """Score targets [T], T at most `segment`, each after the input of its step [T] and all earlier ones."""

    def log_prob(self, ids: Tensor, first: int | None = None) -> Tensor:
        """Log-probabilities (nats) of each of the ids [n], which continue the text of former calls, [n].

        Nothing precedes the first token of a text, whose log-probability is nan, unless `first` is given: the symbol
        that it follows.
        """
        ids = sequence_of(ids, self.model)
        parts = []
        if self._before is None and first is None:
            parts.append(ids.new_full((1,), math.nan, dtype=torch.get_default_dtype()))
            self._before, ids = ids[:1], ids[1:]
        elif self._before is None:
            self._before = ids.new_tensor([first])
        for targets in ids.split(self.segment) if len(ids) else ():
            parts.append(self.read(torch.cat([self._before, targets[:-1]]), targets).log_prob)
            self._before = targets[-1:]
        return torch.cat(parts)


class Static(Reader):
    """A model as it is: in evaluation mode, without learning."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self._state = model, None

    @torch.no_grad()
    def read(self, inputs: Tensor, targets: Tensor) -> Scored:
        """See the base."""
        with scoring.evaluating(self.model):
            hidden, self._state = self.model(inputs.unsqueeze(1), self._state)
            log_prob = output_of(self.model).log_prob(hidden, targets.unsqueeze(1))
        return Scored(log_prob[:, 0], hidden[:, 0])


def token_log_probs(
    model: nn.Module | Reader, ids: Tensor, *, first: int | None = None, columns: int = 1, window: int = 70
) -> Tensor:
    """The log-probability (nats) of every token of a text.

    Args:
        model: a model, in whatever mode it is, or a reader, which continues where it ended
        ids: [n]
        first: the symbol that the text follows; None: the first token is read, not scored, and is nan in the result
        columns: parts of the text that a model reads side by side, each from an empty state; faster, and slightly worse
        window: steps at a time

    Returns:
        [n], on the CPU

    Raises ValueError where `ids`, `columns` or `window` are not of this kind.
    """
    if isinstance(model, Reader):
        if columns != 1:
            raise ValueError(f"a reader of one text reads {columns} columns; leave columns out")
        return model.log_prob(ids, first).cpu()
    require_positive(columns=columns, window=window)
    ids = sequence_of(ids, model)
    before, counted = (int(ids[0]), ids[1:]) if first is None else (first, ids)
    windows = EvaluationWindows(counted.cpu().numpy(), before, streams=columns, length=window)
    result = torch.full((len(counted),), math.nan, dtype=next(model.parameters()).dtype)
    state = None
    output = output_of(model)
    with torch.no_grad(), scoring.evaluating(model):
        for batch, positions in windows:
            hidden, state = model(batch.inputs.to(ids.device), state)
            log_prob = output.log_prob(hidden, batch.targets.to(ids.device))
            result[positions[positions >= 0]] = log_prob.cpu()[batch.mask].to(result.dtype)
    return result if first is not None else torch.cat([result.new_full((1,), math.nan), result])


def perplexity(
    model: nn.Module | Reader, ids: Tensor, *, first: int | None = None, columns: int = 1, window: int = 70
) -> float:
    """Exp of the mean negative log-likelihood per token; arguments as in `token_log_probs`.

    Raises ValueError where no token is scored.
    """
    log_probs = token_log_probs(model, ids, first=first, columns=columns, window=window)
    return objective.perplexity(mean_nll(log_probs))


def mean_nll(log_probs: Tensor) -> float:
    """The mean negative log-likelihood, summed in float64, without the first token where nothing precedes it."""
    counted = log_probs[1:] if log_probs[0].isnan() else log_probs
    if not len(counted):
        raise ValueError("no token is scored: give two ids or more, or the symbol `first` that precedes them")
    return -float(counted.double().mean())


def require_positive(**numbers: int) -> None:
    """Raise ValueError where one is not 1 or more, and TypeError where it is no whole number."""
    for name, number in numbers.items():
        if operator.index(number) < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more")


def sequence_of(ids: Any, model: nn.Module) -> Tensor:
    """Ids [n] as a tensor on the model's device; raises ValueError where they are of another shape or type, or none."""
    try:
        found = torch.as_tensor(ids, device=next(model.parameters()).device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"ids are one sequence [n] of whole numbers, and not {type(ids).__name__}") from None
    if found.dim() != 1 or not len(found):
        raise ValueError(f"ids are one sequence [n], n 1 or more, and have the shape {list(found.shape)}")
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise ValueError(f"ids are one sequence [n] of whole numbers, and not {found.dtype}")
    return found.long()


def output_of(model: nn.Module) -> Any:
    """The output layer of a model; raises ValueError where it has none."""
    output = getattr(model, "output", None)
    if not callable(getattr(output, "log_prob", None)):
        raise ValueError(
            f"{type(model).__name__}.output is no output layer; set it to one of elman.nn, such as Softmax"
        )
    return output
