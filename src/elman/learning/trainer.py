"""The training loop: windows in, gradient steps, validation, checkpoints, metrics out."""

import contextlib
import enum
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from torch import Tensor

from elman import config
from elman.data.windows import Span, Windows
from elman.errors import Diverged
from elman.learning import checkpoint
from elman.learning.checkpoint import BestModel
from elman.learning.constraint import recurrent_spectrum
from elman.learning.log import Log
from elman.learning.progress import Progress, averages_at_once, phases_of, record_validation
from elman.learning.schedules import rate
from elman.learning.update import build_update
from elman.network.model import LanguageModel
from elman.objective import perplexity


class StopReason(enum.Enum):
    """Why training returned."""

    FINISHED = "finished"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"


class Trainer:
    """Trains a model in a run folder.

    Args:
        windows: from the cap on random windows (`window.max_extra`) to the windows of the training data.
        validate: computes the validation NLL (nats per token) of the model with its present weights.
        folder: the run folder; `checkpoint.safetensors`, `model.safetensors` and `metrics.jsonl` are written there.
        facts: stored in checkpoints beside the progress (digests of data and vocabulary).

    Raises:
        UserError: the text is too short, or the constraint or the learning rule does not fit the model.
    """

    def __init__(
        self,
        recipe: config.Recipe,
        model: LanguageModel,
        windows: Callable[[int | None], Windows],
        validate: Callable[[LanguageModel], float],
        folder: Path,
        facts: dict[str, Any],
    ) -> None:
        self.training, self.model, self.validate = recipe.training, model, validate
        self.windows_for, self.folder, self.facts = windows, folder, facts
        self.phases = phases_of(recipe.training)
        self.update = build_update(recipe, model)
        self.progress = Progress(averaging=averages_at_once(recipe.training))
        self.log = Log(folder / "metrics.jsonl", model.device)
        self.best = BestModel(folder)
        wanted = recipe.training.log_spectrum
        self.logs_spectrum = self.update.constraint is not None if wanted is None else wanted
        self._open_windows()

    def resume(self) -> None:
        """Continue from `checkpoint.safetensors`, bit for bit."""
        tensors, facts = checkpoint.load(self.folder / "checkpoint.safetensors")
        self.progress = msgspec.convert(facts["progress"], Progress)
        self.log.resume(self.progress.step)
        self._begin_phase()
        self.update.restore(tensors, self.progress.average_count)
        self.best.restore()
        if not self.progress.finished:
            self._event("resume", f"resumed at step {self.progress.step}")

    def run(self, max_minutes: float | None = None) -> StopReason:
        """Train until the recipe is finished, the time is over or a signal asks to stop.

        Raises UserError where the loss is not finite.
        """
        deadline = math.inf if max_minutes is None else time.monotonic() + 60 * max_minutes
        self.log.begin(sum(phase.epochs for phase in self.phases), len(self._spans()), self.progress)
        try:
            with listening() as stop:
                return self._train(deadline, stop)
        finally:
            self.log.end()

    def _train(self, deadline: float, stop: threading.Event) -> StopReason:
        progress, validate_every = self.progress, self.training.validate_every
        if progress.step == 0 and self.logs_spectrum:
            nll = self._nll()
            self._event("untrained", f"{nll:.3f} nats per token", nll=nll)
        while not progress.finished:
            for span in self._spans()[progress.window :]:
                self._step(span)
                if validate_every and progress.step % validate_every == 0:
                    self._validate()
                    if progress.finished:
                        break
                if stop.is_set() or time.monotonic() > deadline:
                    return self._stop_early(stop)
                if self.log.due_to_save(self.training.checkpoint_minutes):
                    self.save()
            else:
                progress.epoch += 1
                progress.window = 0
                progress.by_epoch.append(self._validate())
                progress.finished = progress.finished or progress.epoch >= self.phase.epochs
            if progress.finished and progress.phase + 1 < len(self.phases):
                self._begin_fine_tuning()
            self.save()
        return StopReason.FINISHED

    def _step(self, span: Span) -> None:
        progress, window = self.progress, self.training.window
        epoch = self._epoch()
        lr = rate(self.phase.schedule, self.phase.optimiser.lr, epoch, self.phase.epochs, progress.by_epoch)
        if window.random:
            lr *= span.length / window.length
        loss = self.update.gradient(self.windows.batch(span).to(self.model.device), epoch)
        norm = self.update.clip()
        progress.step += 1
        progress.window += 1
        progress.windows_logged += 1
        self.log.add(loss, norm)
        if self.log.due:
            self._read_losses()
        self.update.apply(lr)
        if progress.step % self.training.log_every == 0:
            self._write_train(lr, norm)

    def _read_losses(self) -> None:
        """Fold the pending step sums into the progress; raises Diverged where a loss was not finite."""
        if (diverged := self.log.read(self.progress)) is not None:
            raise Diverged(
                f"the loss is not finite at step {self.progress.step} ({diverged}, weight norm"
                f" {self.update.weight_norm():.3g}); the last good checkpoint is kept in {self.folder}; try a lower"
                " training.optimiser.lr or a smaller training.clip"
            )

    def _write_train(self, lr: float, norm: Tensor) -> None:
        self._read_losses()
        constraint = self.update.constraint
        facts = {
            "lr": lr,
            "grad_norm": norm.item(),
            **({} if constraint is None else constraint.mean_counts()),
            **(recurrent_spectrum(self.model.core) if self.logs_spectrum else {}),
        }
        self.log.write_train(self.progress, self._epoch(), facts)

    def _validate(self) -> float:
        """Validate, save the model if it is the best, begin averaging if it is time; the NLL (nats per token)."""
        self._read_losses()
        nll, averaged = self._nll(), self.update.average is not None
        best = record_validation(self.progress, self.phase, nll, self._epoch())
        facts = {"nll": nll, "perplexity": perplexity(nll), "best": best, "averaged": averaged}
        self.log.write("valid", self.progress, self._epoch(), facts)
        if best:
            self._save_best(nll)
        if self.progress.averaging and not averaged:
            self.update.begin_averaging(self.phase)
            self._event("averaging", "the validation loss stopped falling")
        return nll

    def _nll(self) -> float:
        with self.log.paused(), self.update.averaged():
            return self.validate(self.model)

    def _save_best(self, nll: float, *, provisional: bool = False) -> None:
        facts = {**self.facts, "step": self.progress.step, "epoch": self._epoch(), "valid_nll": nll}
        if self.update.average is not None:
            facts["averaged"] = True
        with self.update.averaged():
            self.best.save(self.model, facts, provisional=provisional)

    def _begin_fine_tuning(self) -> None:
        """Begin the next phase, from the best model, with a new optimiser and average."""
        checkpoint.load_model(self.model, checkpoint.load(self.best.path)[0])
        self.progress.begin_next_phase()
        self._begin_phase()
        self._event("fine-tune", f"from the best model, of step {self.progress.best_step}")

    def _begin_phase(self) -> None:
        self.progress.averaging = self.progress.averaging or averages_at_once(self.phase)
        self.update.begin_phase(self.phase, averaging=self.progress.averaging)
        self._open_windows()

    def _open_windows(self) -> None:
        self.windows = self.windows_for(self.phase.window.max_extra)
        self._planned: tuple[int, list[Span]] = (-1, [])

    @property
    def phase(self) -> config.Training:
        """The recipe of the present phase."""
        return self.phases[self.progress.phase]

    def _spans(self) -> list[Span]:
        """The windows of this epoch."""
        number = self.progress.phase * 1_000_000 + self.progress.epoch
        if self._planned[0] != number:
            self._planned = (number, self.windows.spans(number))
        return self._planned[1]

    def _epoch(self) -> float:
        """Epochs done in this phase, with a fraction."""
        return self.progress.epoch + self.progress.window / len(self._spans())

    def _stop_early(self, stop: threading.Event) -> StopReason:
        self.save()
        if stop.is_set():
            return StopReason.INTERRUPTED
        nll = self._nll()
        if self.progress.best is None or nll < self.progress.best:
            self._save_best(nll, provisional=True)
        self._event("stop", f"the time is over at validation NLL {nll:.3f}, perplexity {perplexity(nll):.2f}")
        return StopReason.OUT_OF_TIME

    def save(self) -> str:
        """Write the checkpoint and return its digest."""
        self._read_losses()
        self.log.saving(self.progress)
        if self.update.average is not None:
            self.progress.average_count = self.update.average.count
        facts = {**self.facts, "progress": msgspec.to_builtins(self.progress)}
        return checkpoint.save(self.folder / "checkpoint.safetensors", self.update.tensors(), facts)

    def _event(self, name: str, message: str, **facts: float) -> None:
        self.log.write("event", self.progress, self._epoch(), {"event": name, "message": message, **facts})


@contextlib.contextmanager
def listening() -> Iterator[threading.Event]:
    """Within the block Ctrl-C and SIGTERM set an event, in the main thread; a second Ctrl-C interrupts."""
    stop = threading.Event()

    def receive(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
