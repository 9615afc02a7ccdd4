"""The training loop: windows in, gradient steps, validation, checkpoints, metrics out."""

import enum
import functools
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from elman import config
from elman.data.windows import WHOLE, Part, Span, Summed, Windows
from elman.errors import Diverged, UserError, counted
from elman.jobs import Stop, listening
from elman.learning import checkpoint, prediction
from elman.learning.folder import Folder
from elman.learning.progress import Changes, Course, Progress, averages_at_once, phases_of, record_validation, remark_on
from elman.learning.progress import rate as rate_at
from elman.learning.update import Update
from elman.network.fast.precision import products_in
from elman.network.model import LanguageModel
from elman.objective import perplexity

FALL = 0.2
"""Of the time before a timed stop, in which the rate falls to 0 where its schedule does not follow the clock."""


class StopReason(enum.Enum):
    """Why training returned."""

    FINISHED = "finished"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"


class Trainer:
    """Where a training is, from window to window: `update` changes its weights, `folder` writes what they become.

    Where the recipe has `training.minutes`, the phase ends with its epochs or with that time, whichever is first, and
    schedules follow what is ahead: after a third of the time the rate is at most what it is after a third of the
    epochs. The time is counted over all resumptions, and is part of the checkpoint.

    Args:
        windows: from the cap on random windows (`window.max_extra`) to the windows of the training data.
        validate: computes the validation NLL (nats over tokens) of a part of the split by the model's present weights.
    """

    def __init__(
        self,
        recipe: config.Recipe,
        update: Update,
        windows: Callable[[int | None], Windows],
        validate: Callable[[LanguageModel, Part], Summed],
        folder: Folder,
    ) -> None:
        self.recipe, self.training, self.update, self.folder = recipe, recipe.training, update, folder
        self.model, self.windows_for, self.validate = update.model, windows, validate
        self.phases = phases_of(recipe.training)
        self.progress = Progress(averaging=averages_at_once(recipe.training))
        self._begun, self._limit = False, math.inf
        wanted = recipe.training.log_spectrum
        self.logs_spectrum = update.constraint is not None if wanted is None else wanted
        self.course = Course(windows, self.phase.window)

    def begin(self) -> None:
        """Save a first checkpoint, so that a run has one from its beginning, and clear the metrics."""
        self.folder.clear()
        self.save()
        self._begun = True

    def resume(self) -> Changes:
        """Continue from `checkpoint.safetensors`: bit for bit, or under a recipe changed in what may change.

        What the recipe changes in the one that the checkpoint records is returned. Raises UserError where the
        checkpoint or the best model is missing, damaged or of another run.
        """
        from elman.learning.resumption import read_checkpoint

        path = self.folder.checkpoint
        tensors, progress, changes = read_checkpoint(path, self.folder.facts, self.recipe)
        self.progress, self._begun = progress, True
        self._begin_phase()
        self.update.require(path, tensors, self.training.batch_size)
        self.folder.resume(progress)
        self.update.restore(tensors, progress.average_count)
        if not progress.finished:
            self._event("resume", f"resumed at step {progress.step}")
        return changes

    def record_changes(self, changes: Changes, message: str) -> None:
        old, new = ({key: pair[side] for key, pair in changes.items()} for side in (0, 1))
        self._event("recipe", message, old=old, new=new)
        self.save()

    def run(self, max_minutes: float | None = None) -> StopReason:
        """Train until the recipe is finished, the time is over or a signal asks to stop.

        Raises UserError where the loss or a weight is not finite.
        """
        if self.training.minutes is not None and self.folder.team.size > 1:
            raise UserError("training.minutes: several processes have several clocks; leave it out, and give epochs")
        self._limit = math.inf if max_minutes is None else 60 * max_minutes
        deadline = time.monotonic() + self._limit
        epochs = sum(phase.epochs for phase in self.phases)
        self.folder.begin(epochs, len(self.course.spans(self.progress)), self.progress)
        try:
            with listening() as stop:
                return self._train(deadline, stop)
        finally:
            for watcher in self.folder.watchers:
                watcher.end()
            self.update.optimiser.zero_grad()  # its memory, since the best model is read next to this one

    def _train(self, deadline: float, stop: Stop) -> StopReason:
        progress, validate_every = self.progress, self.training.validate_every
        fall = deadline - FALL * self._limit if self._falls else deadline
        if not self._begun:
            self.begin()
        if progress.step == 0 and self.logs_spectrum:
            nll = self._nll()
            self._event("untrained", f"{nll:.3f} nats per token", nll=nll)
        self._begin_fine_tuning_if_due()  # where it was added to a finished run
        done: list[None] = [None] if self._branch_is_due else []  # the last step, where a branch after it was stopped
        while not progress.finished:
            spans = itertools.chain(done, itertools.islice(self.course.spans(progress), progress.window, None))
            done = []
            for span in spans:
                if span is not None:
                    self._step(span)
                if self._predict(deadline, stop) and validate_every and progress.step % validate_every == 0:
                    self._validate()
                    if progress.finished:
                        break
                if not stop.is_set() and self._clock() >= 1:
                    self._end_by_the_clock()
                    break
                late, due = time.monotonic() > fall, self.folder.due_to_save(self.training.checkpoint_minutes)
                stopped, late, due = self.folder.team.any(stop.is_set(), late, due)
                if stopped or late:
                    return self._stop_early(deadline, stop, interrupted=stopped)
                if due:
                    self.save()
            else:
                progress.epoch += 1
                progress.window = 0
                progress.by_epoch.append(self._validate())
                progress.finished = progress.finished or progress.epoch >= self.phase.epochs
            if outcome := prediction.compared(progress, self._epochs()):
                self._event("outcome", outcome)
            self._begin_fine_tuning_if_due()
            self.save()
        return StopReason.FINISHED

    def _step(self, span: Span) -> None:
        progress, epoch, lr = self.progress, self.now(), self.rate() * self.course.rate_share(span)
        loss = self.update.gradient(self.course.batch(span).to(self.model.device), epoch, progress.step)
        norm = self.update.clip()
        progress.step += 1
        progress.window += 1
        progress.windows_logged += 1
        self.folder.add(loss, norm)
        if self.folder.due:
            self._read_losses()
        self.update.apply(lr)
        if progress.step % self.training.log_every == 0:
            self._write_train(lr, norm)

    def rate(self) -> float:
        phase, clock = self.phase, self._clock()
        epoch = max(self.now(), clock * phase.epochs)
        share = 1.0 if isinstance(phase.schedule, config.Cosine) else min(1.0, max(0.0, 1 - clock) / FALL)
        return share * rate_at(phase.schedule, phase.optimiser.lr, epoch, phase.epochs, self.progress.by_epoch)

    def _clock(self) -> float:
        """The share of `training.minutes` that is over; 0 without them."""
        minutes = self.training.minutes
        return 0.0 if minutes is None else self.folder.seconds(self.progress) / (60 * minutes)

    def _place(self) -> float:
        return max(self.now() / self.phase.epochs, self._clock())

    def _epochs(self) -> int:
        epochs, place = self.phase.epochs, self._place()
        return epochs if self._clock() < place or not place else max(1, round(self.now() / place))

    def _end_by_the_clock(self) -> None:
        """Validate at the end of `training.minutes`, where the rate has fallen."""
        self._validate()
        self.progress.finished = True
        epochs, few = f"epoch {self.now():.2f} of {self.phase.epochs}", remark_on(self.progress.step)
        self._event(
            "clock", f"the {self.training.minutes:g} minutes are over at {epochs}, and the rate has fallen{few}"
        )

    @property
    def _branch_is_due(self) -> bool:
        return self.training.predict_loss and prediction.due(self.progress, self._place())

    def _predict(self, deadline: float, stop: Stop) -> bool:
        if not self._branch_is_due:
            return True
        branches = self.progress.branches
        steps = prediction.steps_of(len(branches), self.progress.step, self._place())
        nll: float | None = math.nan
        if steps:
            with self.folder.paused():
                nll = self._loss_of_branch(steps, lambda: stop.is_set() or time.monotonic() > deadline)
        if nll is not None:
            branches.append(nll if math.isfinite(nll) else None)
            self._event("branch", **prediction.shown(branches, self._epochs()))
        return nll is not None

    def _loss_of_branch(self, steps: int, asked_to_stop: Callable[[], bool]) -> float | None:
        """The loss at the end of a branch, None where a process of the team has to stop within it.

        Weights, moments, averages, states and random numbers are kept.
        """
        with self.update.branched():
            if not prediction.descend(self, lambda taken: 1 - taken / steps, asked_to_stop, steps):
                return None
            nll = self._nll()
            for watcher in self.folder.watchers:
                watcher.branch(steps, steps)
            return nll

    def _read_losses(self) -> None:
        """Fold the pending step sums into the progress; raises Diverged where a loss was not finite."""
        if (figures := self.folder.read(self.progress)) is not None:
            norm = math.hypot(*(one.detach().norm().item() for one in self.update.optimiser.parameters))
            self._diverged(f"the loss is not finite at step {self.progress.step} ({figures}, weight norm {norm:.3g})")

    def _check(self) -> None:
        """As `_read_losses`, and raise Diverged where a weight is not finite."""
        self._read_losses()
        if not self.update.is_finite():
            self._diverged(f"the weights are not finite after step {self.progress.step}")

    def _diverged(self, what: str) -> None:
        raise Diverged(
            f"{what}; the last good checkpoint is kept in {self.folder.path}; try a lower training.optimiser.lr or a"
            " smaller training.clip"
        )

    def _write_train(self, lr: float, norm: Tensor) -> None:
        self._check()
        if not self.progress.count:
            return  # nothing counted yet, as in trees of single words
        facts: dict[str, Any] = {"lr": lr, "grad_norm": norm.item()}
        if self.update.constraint is not None:
            facts |= self.update.constraint.mean_counts()
        if self.logs_spectrum:
            from elman.learning.constraint import recurrent_spectrum

            facts |= recurrent_spectrum(self.model.core)
        self.folder.write_train(self.progress, self.now(), facts)

    def _validate(self) -> float:
        """Validate, save the model if it is the best, begin averaging if it is time; the NLL (nats per token).

        Where the step has been validated, as the last one of an epoch may have been, that counts and nothing is done.
        """
        if self.progress.checked == self.progress.step:
            return self.progress.checks[-1]
        self._check()
        nll, averaged = self._nll(), self.update.average is not None
        self._write_valid(nll, best=record_validation(self.progress, self.phase, nll, self.now()))
        if self.phase.patience and self.progress.waited >= self.phase.patience:
            self._event("patience", f"no better at {counted(self.progress.waited, 'validation')}: training is over")
        if self.progress.averaging and not averaged:
            self.update.begin_averaging(self.phase)
            self._event("averaging", "the validation loss stopped falling")
        return nll

    def _write_valid(self, nll: float, *, best: bool, stopped: bool = False) -> None:
        averaged = self.update.average is not None
        facts = {"nll": nll, "perplexity": perplexity(nll), "best": best, "averaged": averaged}
        self.folder.write("valid", self.progress, self.now(), facts)
        if best:
            self.folder.save_best(self.progress, self.now(), nll, self.update, stopped=stopped)

    def _nll(self) -> float:
        score = functools.partial(self.validate, self.model)
        with self.folder.paused(), self.update.averaged(), products_in(self.update.precision):
            if self.update.slices is not None:
                return self.update.slices.mean_nll(score, self.model.device)
            whole = score(WHOLE)
            return whole.nll_sum / whole.count

    def _begin_fine_tuning_if_due(self) -> None:
        """Begin the next phase after the main one, from the best model, with a new optimiser and average."""
        if not self.progress.finished or self.progress.phase + 1 == len(self.phases):
            return
        self.folder.team.wait()  # until the best model is written
        checkpoint.load_model(self.model, checkpoint.load(self.folder.best.path)[0])
        self.progress.begin_next_phase()
        self._begin_phase()
        self._event("fine-tune", f"from the best model, of step {self.progress.best_step}")

    def _begin_phase(self) -> None:
        self.progress.averaging = self.progress.averaging or averages_at_once(self.phase)
        self.update.begin_phase(self.phase, averaging=self.progress.averaging)
        self.course = Course(self.windows_for, self.phase.window)

    @property
    def phase(self) -> config.Training:
        return self.phases[self.progress.phase]

    def now(self) -> float:
        return self.course.epoch(self.progress)

    @property
    def _falls(self) -> bool:
        """Whether the last of the time before a stop is for a rate that falls; several processes have no one clock."""
        return self.training.minutes is None and self.folder.team.size == 1 and self._limit > 0

    def _stop_early(self, deadline: float, stop: Stop, *, interrupted: bool) -> StopReason:
        """Save, and end before the deadline by steps at a rate that falls to 0, from which nothing is resumed."""
        self.save()
        if interrupted:
            return StopReason.INTERRUPTED
        begun = time.monotonic()
        with self.update.branched():
            if self._falls and begun < deadline:
                length = deadline - begun
                if not prediction.descend(self, lambda _: (deadline - time.monotonic()) / length, stop.is_set, None):
                    return StopReason.INTERRUPTED
            return self._stopped()

    def _stopped(self) -> StopReason:
        nll, before = self._nll(), self.progress.best
        self._write_valid(nll, best=math.isfinite(nll) and (before is None or nll < before), stopped=True)
        measured = f", perplexity {perplexity(nll):.2f}" if self.recipe.data.reporting.in_perplexity else ""
        self._event("stop", f"the time is over at validation NLL {nll:.3f}{measured}{remark_on(self.progress.step)}")
        return StopReason.OUT_OF_TIME

    def save(self) -> str:
        """Write the checkpoint and return its digest; the first of several processes writes, the others return "".

        Raises UserError where the loss or a weight is not finite, the folder has been removed, or the weights of two
        processes differ.
        """
        self._check()
        return self.folder.save(self.progress, self.update)

    def _event(self, name: str, message: str, **facts: Any) -> None:
        self.folder.write("event", self.progress, self.now(), {"event": name, "message": message, **facts})
