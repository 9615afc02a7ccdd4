"""A training loop for models of sequences of symbols: `elman.fit`.

    history = elman.fit(model, train_ids, valid_ids, optimiser=torch.optim.Adam(model.parameters(), 2e-3), clip=0.25)
    print(history.best.perplexity)

The loop is `learn` and what it does between two validations; everything else is bookkeeping. Copy it where it does not
suffice.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import torch
from torch import Tensor, nn

from elman import objective
from elman.data.windows import TrainingWindows
from elman.errors import Diverged, UserError
from elman.learning import checkpoint as files
from elman.learning.slices import masks_of
from elman.nn.averaging import TriggeredAverage, WeightAverage
from elman.nn.evaluation import mean_nll, output_of, require_positive, sequence_of, token_log_probs
from elman.nn.recurrent import detach
from elman.nn.spectral import SpectralBound

Penalty = Callable[[Any], Tensor]
"""From what the core returns with `levels=True` to a scalar that is added to the loss, such as `penalties.temporal`."""


class Epoch(NamedTuple):
    """An epoch: its number from 1, the mean NLL (nats per token) in training and on the validation text, and its time.

    `averaged`: the validated weights were averaged; `best`: they were the best so far.
    """

    number: int
    train_nll: float
    valid_nll: float
    seconds: float
    averaged: bool
    best: bool

    @property
    def perplexity(self) -> float:
        """Of the validation text."""
        return objective.perplexity(self.valid_nll)


class History(NamedTuple):
    """The epochs of a training."""

    epochs: list[Epoch]

    @property
    def best(self) -> Epoch:
        """The epoch whose weights the model has."""
        return [epoch for epoch in self.epochs if epoch.best][-1]


class Kept(Protocol):
    """What a checkpoint holds in addition to the model and the optimiser."""

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors by name."""

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Continue from them."""


def fit(
    model: nn.Module,
    train_ids: Any,
    valid_ids: Any,
    *,
    optimiser: torch.optim.Optimizer | None = None,
    epochs: int = 10,
    batch_size: int = 20,
    bptt: int = 70,
    random_windows: bool = True,
    max_extra: int | None = None,
    schedule: Callable[[float], float] | None = None,
    clip: float | None = None,
    penalties: Sequence[Penalty] = (),
    bound: SpectralBound | None = None,
    average: TriggeredAverage | WeightAverage | None = None,
    patience: int | None = None,
    valid_columns: int = 10,
    seed: int = 0,
    device: torch.device | str | None = None,
    checkpoint: Path | str | None = None,
    progress: bool = True,
) -> History:
    """Train a model by truncated back-propagation through time, and leave it with the best weights, in evaluation mode.

    Args:
        model: returns `(hidden [T, B, D], state)` for `model(inputs [T, B], state)`, has an `output` of `elman.nn`, and
            for penalties returns `(levels, state)` for `model(inputs, state, levels=True)`, as a core does
        train_ids: [n], read in `batch_size` columns side by side
        valid_ids: [n], read after every epoch
        optimiser: of the model's parameters; None: Adam with a rate of 1e-3
        epochs: at most
        batch_size: B
        bptt: steps of a window
        random_windows: their lengths vary about `bptt`, and the rate with them (Merity et al. 2018, section 4.1)
        max_extra: steps of a random window beyond `bptt` at most
        schedule: from the share of the training that is done, 0 to 1, to a factor of the rates; None: 1
        clip: the largest norm of the gradient
        penalties: functions of the levels, of `elman.nn.penalties` or others
        bound: projects after every step, and before the first
        average: of the parameters; what is validated and kept is then the average
        patience: stop after this many epochs without a better validation loss
        valid_columns: columns in which the validation text is read
        seed: of the lengths of windows and, with the epoch's number, of dropout; torch's random state is not changed
        device: the model is moved there; None: it stays where it is
        checkpoint: a safetensors file, written after every epoch; where it exists training resumes from it, bit for bit
        progress: show a progress bar on standard error where that is a terminal

    Raises ValueError where texts or arguments do not fit, UserError where a text is too short or the checkpoint belongs
    to another training, Diverged where the loss is not finite.
    """
    require_positive(epochs=epochs, batch_size=batch_size, bptt=bptt, valid_columns=valid_columns)
    require_positive(patience=1 if patience is None else patience)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip is {clip}; it must be above 0, or None")
    model.to(device or next(model.parameters()).device)
    tokens = sequence_of(train_ids, model).cpu().numpy()
    windows = TrainingWindows(tokens, batch_size, bptt, random=random_windows, max_extra=max_extra, seed=seed)
    optimiser = optimiser or torch.optim.Adam(model.parameters(), 1e-3)
    own = set(model.parameters())
    if not any(own.intersection(group["params"]) for group in optimiser.param_groups):
        raise ValueError("the optimiser has no parameter of this model; make it after the model")
    if average is not None and not own.intersection(average._parameters):
        raise ValueError("the average has no parameter of this model; make it after the model")
    rates, done = [group["lr"] for group in optimiser.param_groups], list[Epoch]()
    kept: dict[str, Kept] = {name: one for name, one in (("average", average), ("bound", bound)) if one is not None}
    settings: dict[str, Any] = {"batch_size": batch_size, "bptt": bptt, "random_windows": random_windows, "seed": seed}
    settings |= {"optimiser": type(optimiser).__name__} | {name: type(one).__name__ for name, one in kept.items()}
    held = _Checkpoint(checkpoint, settings, model, optimiser, kept)
    if bound is not None:
        bound()
    best, done = held.resume()

    def learn(epoch: int, advance: Callable[[float, list[Epoch]], None]) -> float:
        """Read the training text once; the mean NLL."""
        total, state, spans = 0.0, None, windows.spans(epoch)
        for number, span in enumerate(spans):
            batch = windows.batch(span).to(next(model.parameters()).device)
            share = span.length / bptt if random_windows else 1.0
            factor = 1.0 if schedule is None else schedule((epoch + number / len(spans)) / epochs)
            rated(share * factor)
            optimiser.zero_grad()
            seen, state = model(batch.inputs, state, levels=True) if penalties else model(batch.inputs, state)
            nll = output_of(model).nll(seen, batch.targets)
            if not math.isfinite(loss := nll.item()):
                where = f"window {number + 1} of epoch {epoch + 1}"
                raise Diverged(f"the loss of {where} is {loss}; lower the learning rate, or clip")
            sum((penalty(seen) for penalty in penalties), nll).backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimiser.step()
            if bound is not None:
                bound()
            if average is not None:
                average.step()
            state = detach(state)
            total += loss * span.length
            advance(epoch + (number + 1) / len(spans), done)
        return total / (windows.steps - 1)

    def rated(factor: float) -> None:
        """Set the rates to the given ones, times a factor."""
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = factor * rate

    with _bar(epochs, shown=progress) as advance:
        while len(done) < epochs and not _waited(done, patience):
            began, number = time.monotonic(), len(done)
            model.train()
            try:
                with masks_of(seed, number, 0):
                    train_nll = learn(number, advance)
            finally:
                rated(1.0)
            averaged = isinstance(average, WeightAverage) or (average is not None and average.average is not None)
            with nullcontext() if average is None else average.applied():
                valid_nll = mean_nll(token_log_probs(model, valid_ids, columns=valid_columns, window=bptt))
                if not math.isfinite(valid_nll):
                    where = f"after epoch {number + 1}"
                    raise Diverged(f"the validation loss {where} is {valid_nll}; lower the learning rate")
                is_best = not done or valid_nll < History(done).best.valid_nll
                if is_best:
                    best = {name: tensor.clone() for name, tensor in files.model_tensors(model).items()}
            if isinstance(average, TriggeredAverage):
                average.update(valid_nll)
            done.append(Epoch(number + 1, train_nll, valid_nll, time.monotonic() - began, averaged, is_best))
            held.save(best, done)
    files.load_model(model.eval(), best)
    return History(done)


def _waited(done: list[Epoch], patience: int | None) -> bool:
    return bool(done) and patience is not None and len(done) - History(done).best.number >= patience


class _Checkpoint:
    """The file of a training, where there is one."""

    def __init__(
        self,
        path: Path | str | None,
        settings: dict[str, Any],
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        kept: dict[str, Kept],
    ) -> None:
        self.path = None if path is None else Path(path)
        self.settings, self.model, self.optimiser, self.kept = settings, model, optimiser, kept

    def save(self, best: dict[str, Tensor], done: list[Epoch]) -> None:
        if self.path is None:
            return
        parts = {"model": files.model_tensors(self.model), "best": best, "optimiser": tensors_of(self.optimiser)}
        parts |= {name: one.state_dict() for name, one in self.kept.items()}
        tensors = {f"{part}/{name}": tensor for part, held in parts.items() for name, tensor in held.items()}
        files.save(self.path, tensors, {"settings": self.settings, "epochs": [list(epoch) for epoch in done]})

    def resume(self) -> tuple[dict[str, Tensor], list[Epoch]]:
        """Continue from the file: its best weights and its epochs; none where there is no file."""
        if self.path is None or not self.path.exists():
            return {}, []
        tensors, facts = files.load(self.path, "settings", "epochs")
        if facts["settings"] != self.settings:
            found = f"{self.path}: belongs to a training with {facts['settings']}, not {self.settings}"
            raise UserError(f"{found}; remove it, or name another checkpoint")
        saved, own = files.under("model/", tensors), files.model_tensors(self.model)
        for name in sorted(saved.keys() | own.keys()):
            if name not in own or name not in saved or own[name].shape != saved[name].shape:
                raise UserError(f"{self.path}: belongs to another model, whose {name} is another")
        files.load_model(self.model, saved)
        load_tensors(self.optimiser, files.under("optimiser/", tensors))
        for name, one in self.kept.items():
            one.load_state_dict(files.under(f"{name}/", tensors))
        return files.under("best/", tensors), msgspec.convert(facts["epochs"], list[Epoch])


def tensors_of(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser, "PARAMETER/NAME" each; rates and other settings are not in it."""
    state = optimiser.state_dict()["state"].items()
    return {f"{index}/{name}": torch.as_tensor(value) for index, one in state for name, value in one.items()}


def load_tensors(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Take back what `tensors_of` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for place, tensor in tensors.items():
        index, name = place.split("/", 1)
        state.setdefault(int(index), {})[name] = tensor.clone()
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


@contextmanager
def _bar(epochs: int, *, shown: bool) -> Iterator[Callable[[float, list[Epoch]], None]]:
    """A progress bar over epochs, with the validation of the last one."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task("epoch 1", total=epochs)

        def advance(done: float, history: list[Epoch]) -> None:
            last = f", perplexity {history[-1].perplexity:.1f}" if history else ""
            bar.update(task, completed=done, description=f"epoch {min(int(done) + 1, epochs)} of {epochs}{last}")

        yield advance
