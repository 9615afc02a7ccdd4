"""The training loop: windows in, gradient steps, validation, checkpoints, metrics out."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from elman import config
from elman.data.windows import Span, Windows
from elman.errors import Diverged
from elman.learning import checkpoint
from elman.learning.checkpoint import BestModel
from elman.learning.log import Outcome, Recorder
from elman.learning.progress import Progress, judge
from elman.learning.schedules import Phase, phases_of, rate
from elman.learning.update import Descent
from elman.network.model import LanguageModel
from elman.objective.perplexity import perplexity


# FOLDED learning/interrupts.py: Ctrl-C and SIGTERM ask for a stop at the end of the step; a second Ctrl-C stops at once.
class StopRequest:
    """Whether a stop was asked for, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """A signal handler."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def listening() -> Iterator[StopRequest]:
    """Within the block signals set the request; outside the main thread nothing is listened to."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, request.receive) for number in numbers]
    try:
        yield request
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


# TARGET
class Trainer:
    """Trains a model in a run folder.

    Args:
        recipe: the experiment.
        model: the network, on its device.
        windows: gives what is read in training; its argument caps random windows (`Phase.max_extra`).
        validate: gives the validation NLL (nats a token) of the model as it is.
        folder: the run folder; `checkpoint.safetensors`, `model.safetensors` and `metrics.jsonl` are written there.
        facts: what checkpoints say beside progress (digests of data and vocabulary).

    Attributes:
        recorder: what writes metrics.jsonl and tells the watchers.

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
        self.training, self.model = recipe.training, model
        self.read, self.validate, self.folder, self.facts = windows, validate, folder, facts
        self.descent = Descent(recipe, model)
        self.phases = phases_of(recipe.training)
        self.progress = Progress()
        self.recorder = Recorder(folder / "metrics.jsonl", model.device)
        self.best = BestModel(folder)
        self._enter_phase()

    @property
    def phase(self) -> Phase:
        """The phase of training now."""
        return self.phases[self.progress.phase]

    def resume(self) -> None:
        """Go on from `checkpoint.safetensors`, bit for bit."""
        tensors, facts = checkpoint.load(self.folder / "checkpoint.safetensors")
        self.progress = Progress.from_facts(facts["progress"])
        self.recorder.resume(self.progress.step)
        self._enter_phase()
        self.descent.restore(tensors, self.progress.average_count)
        self.best.forget_for_now()
        if not self.progress.finished:
            self._event("resume", f"resumed at step {self.progress.step}")

    def run(self, max_minutes: float | None = None) -> Outcome:
        """Train until the recipe is done, the time is over or a signal asks to stop.

        Raises:
            UserError: the loss is not finite.

        """
        deadline = math.inf if max_minutes is None else time.monotonic() + 60 * max_minutes
        self.recorder.begin(sum(phase.epochs for phase in self.phases), len(self._spans()), self.progress)
        if self.progress.step == 0 and self.descent.tells_spectrum:
            nll = self._validate()
            self._event("untrained", f"{nll:.3f} nats a token", nll=nll)
        try:
            with listening() as stop:
                return self._run(deadline, stop)
        finally:
            self.recorder.end()

    def _run(self, deadline: float, stop: StopRequest) -> Outcome:
        while not self.progress.finished:
            for span in self._spans()[self.progress.window :]:
                self._step(span)
                every = self.training.validate_every
                if every and self.progress.step % every == 0:
                    self._check()
                    if self._end_phase_if_due():
                        break
                if stop or time.monotonic() > deadline:
                    return self._stop_early(stop)
                if self.recorder.due_to_save(self.training.checkpoint_minutes):
                    self.save()
            else:
                self._end_epoch()
        self.save()
        return Outcome.FINISHED

    def _step(self, span: Span) -> None:
        training, progress = self.training, self.progress
        batch = self.windows.batch(span).to(self.model.device)
        loss, norm = self.descent.gradient(batch, self._epoch())
        lr = self._rate() * (span.length / training.window.length if training.window.random else 1.0)
        progress.step += 1
        progress.window += 1
        progress.windows_logged += 1
        if self.recorder.add(loss, norm):
            self._settle()
        self.descent.step(lr)
        if self.descent.average is not None:
            progress.average_count = self.descent.average.count
        if progress.step % training.log_every == 0:
            self._log(lr, norm)

    def _settle(self) -> None:
        """Take what the last steps came to into the progress.

        Raises:
            UserError: a loss or a gradient was not finite.

        """
        sums = self.recorder.settle(self.progress)
        if sums is not None and not sums.finite:
            raise Diverged(
                f"the loss is not finite at step {self.progress.step} (loss {sums.loss:.3g}, gradient norm"
                f" {sums.norm:.3g}, weight norm {self.descent.weight_norm():.3g}); the last good checkpoint is kept in"
                f" {self.folder}; try a lower training.optimiser.lr or a smaller training.clip"
            )

    def _log(self, lr: float, norm: torch.Tensor) -> None:
        self._settle()
        facts = {"lr": lr, "grad_norm": norm.item(), **self.descent.spectrum()}
        self.recorder.stretch(self.progress, self._epoch(), facts)

    def _end_epoch(self) -> None:
        progress = self.progress
        progress.epoch += 1
        progress.window = 0
        nll = self._check()
        progress.by_epoch.append(nll)
        if progress.epoch >= self.phase.epochs:
            progress.finished = True
        self._end_phase_if_due()
        self.save()

    def _check(self) -> float:
        """Validate, keep the best model, and see whether averaging should begin or the phase should end."""
        self._settle()
        nll, averaged = self._validate(), self.descent.average is not None
        verdict = judge(self.progress, self.phase, nll, self._epoch())
        facts = {"nll": nll, "perplexity": perplexity(nll), "best": verdict.best, "averaged": averaged}
        self.recorder.write("valid", self.progress, self._epoch(), facts)
        if verdict.best:
            self.best.keep(self.model, self.descent.average, self._facts(nll))
        if verdict.averages:
            self.descent.begin_averaging()
            self._event("averaging", "validation stopped falling")
        return nll

    def _validate(self) -> float:
        with self.recorder.aside(), self.descent.averaged():
            return self.validate(self.model)

    def _end_phase_if_due(self) -> bool:
        """When a phase is over begin the next, or leave `finished` set after the last; whether it was over."""
        if not self.progress.finished:
            return False
        if self.progress.phase + 1 < len(self.phases):
            self._next_phase()
        return True

    def _next_phase(self) -> None:
        """Fine-tuning: from the best model, with a new optimiser and average."""
        self.best.load_into(self.model)
        self.progress.next_phase()
        self.progress.finished = False
        self._enter_phase()
        self._event("fine-tune", f"from step {self.progress.best_step}")

    def _enter_phase(self) -> None:
        starts = not isinstance(self.phase.averaging, config.NonMonotone | None)
        self.progress.averaging = self.progress.averaging or starts
        self.descent.enter(self.phase, averaging=self.progress.averaging)
        self.windows = self.read(self.phase.max_extra)
        self._plan: tuple[int, list[Span]] = (-1, [])

    def _spans(self) -> list[Span]:
        number = self.progress.phase * 1_000_000 + self.progress.epoch
        if self._plan[0] != number:
            self._plan = (number, self.windows.spans(number))
        return self._plan[1]

    def _rate(self) -> float:
        phase, progress = self.phase, self.progress
        return rate(phase.schedule, phase.optimiser.lr, self._epoch(), phase.epochs, progress.by_epoch)

    def _epoch(self) -> float:
        return self.progress.epoch + self.progress.window / len(self._spans())

    def _stop_early(self, stop: StopRequest) -> Outcome:
        self.save()
        if stop:
            return Outcome.INTERRUPTED
        nll = self._validate()
        if self.progress.best is None or nll < self.progress.best:
            self.best.keep_for_now(self.model, self.descent.average, self._facts(nll))
        message = f"the time is over at validation NLL {nll:.3f}, perplexity {perplexity(nll):.2f}"
        self._event("stop", message)
        return Outcome.OUT_OF_TIME

    def save(self) -> str:
        """Write the checkpoint and return its digest."""
        self._settle()
        self.recorder.saving(self.progress)
        path = self.folder / "checkpoint.safetensors"
        return checkpoint.save(path, self.descent.tensors(), {**self.facts, "progress": self.progress.to_facts()})

    def _facts(self, nll: float) -> dict[str, Any]:
        return {**self.facts, "step": self.progress.step, "epoch": self._epoch(), "valid_nll": nll}

    def _event(self, name: str, message: str, **facts: float) -> None:
        self.recorder.write("event", self.progress, self._epoch(), {"event": name, "message": message, **facts})
