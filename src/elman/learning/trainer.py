"""The training loop: windows in, gradient steps, validation, checkpoints, metrics out."""

import enum
import functools
import itertools
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from elman import config
from elman.data.parts import WHOLE, Part, Summed
from elman.data.windows import Span, Windows
from elman.jobs import listening
from elman.learning import prediction
from elman.learning.checkpoint import CHECKPOINT
from elman.learning.constraint import recurrent_spectrum
from elman.learning.course import Course
from elman.learning.log import FollowersLog, Log
from elman.learning.progress import Progress, averages_at_once, phases_of, record_validation
from elman.learning.resumption import Changes, described, read_checkpoint
from elman.learning.saving import Saver
from elman.learning.schedules import rate
from elman.learning.team import ALONE, Team
from elman.learning.update import build_update
from elman.network.fast.precision import products_in
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
        validate: computes the validation NLL (nats over tokens) of a part of the split by the model's present weights.
        folder: the run folder; `checkpoint.safetensors`, `model.safetensors` and `metrics.jsonl` are written there.
        facts: digests of data and vocabulary, stored in models and checkpoints beside the recipe.
        team: the processes that share the slices of each batch and of validation; the first one decides and writes.

    Raises UserError where the text is too short, the constraint or the learning rule does not fit the model, or the
    team does not divide the slices.
    """

    def __init__(
        self,
        recipe: config.Recipe,
        model: LanguageModel,
        windows: Callable[[int | None], Windows],
        validate: Callable[[LanguageModel, Part], Summed],
        folder: Path,
        facts: dict[str, Any],
        team: Team = ALONE,
    ) -> None:
        self.team = team
        self.training, self.model, self.validate = recipe.training, model, validate
        self.windows_for, self.folder, self.recipe = windows, folder, recipe
        self.facts = facts | {"recipe": config.decisive(recipe)}
        self.phases = phases_of(recipe.training)
        self.update = build_update(recipe, model, team)
        self.progress = Progress(averaging=averages_at_once(recipe.training))
        self.log = (Log if team.leads else FollowersLog)(folder / "metrics.jsonl", model.device)
        self.saver = Saver(folder, self.update, self.facts, team)
        self._begun = False
        wanted = recipe.training.log_spectrum
        self.logs_spectrum = self.update.constraint is not None if wanted is None else wanted
        self.course = Course(windows, self.phase.window)

    def begin(self) -> None:
        """Save a first checkpoint, so that a run has one from its beginning, and clear the metrics."""
        self.log.clear()
        self.save()
        self._begun = True

    def resume(self) -> Changes:
        """Continue from `checkpoint.safetensors`: bit for bit, or under a recipe changed in what may change.

        What the recipe changes, beside the one that the checkpoint records, is returned. Raises UserError where the
        checkpoint or the best model is missing, damaged or of another run.
        """
        path = self.folder / CHECKPOINT
        tensors, progress, changes = read_checkpoint(path, self.facts, self.recipe)
        self.progress, self._begun = progress, True
        self._begin_phase()
        self.update.require(path, tensors, self.training.batch_size)
        self.saver.restore_best(progress)
        self.log.resume(progress)
        self.update.restore(tensors, progress.average_count)
        if not progress.finished:
            self._event("resume", f"resumed at step {progress.step}")
        return changes

    def record_changes(self, changes: Changes) -> None:
        """Write changes of the recipe into the metrics and the checkpoint."""
        old, new = ({key: pair[side] for key, pair in changes.items()} for side in (0, 1))
        self._event("recipe", described(changes), old=old, new=new)
        self.save()

    def run(self, max_minutes: float | None = None) -> StopReason:
        """Train until the recipe is finished, the time is over or a signal asks to stop.

        Raises UserError where the loss or a weight is not finite.
        """
        deadline = math.inf if max_minutes is None else time.monotonic() + 60 * max_minutes
        self.log.begin(sum(phase.epochs for phase in self.phases), len(self.course.spans(self.progress)), self.progress)
        try:
            with listening() as stop:
                return self._train(deadline, stop)
        finally:
            self.log.end()
            self.update.optimiser.zero_grad()  # the memory, since the best model is read beside this one

    def _train(self, deadline: float, stop: threading.Event) -> StopReason:
        progress, validate_every = self.progress, self.training.validate_every
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
                late, due = time.monotonic() > deadline, self.log.due_to_save(self.training.checkpoint_minutes)
                stopped, late, due = self.team.any(stop.is_set(), late, due)
                if stopped or late:
                    return self._stop_early(interrupted=stopped)
                if due:
                    self.save()
            else:
                progress.epoch += 1
                progress.window = 0
                progress.by_epoch.append(self._validate())
                progress.finished = progress.finished or progress.epoch >= self.phase.epochs
            if outcome := prediction.compared(progress, self.phase.epochs):
                self._event("outcome", outcome)
            self._begin_fine_tuning_if_due()
            self.save()
        return StopReason.FINISHED

    def _step(self, span: Span) -> None:
        progress, epoch, lr = self.progress, self._epoch(), self._rate() * self.course.rate_share(span)
        loss = self.update.gradient(self.course.batch(span).to(self.model.device), epoch, progress.step)
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

    def _rate(self) -> float:
        phase = self.phase
        return rate(phase.schedule, phase.optimiser.lr, self._epoch(), phase.epochs, self.progress.by_epoch)

    @property
    def _branch_is_due(self) -> bool:
        return self.training.predict_loss and prediction.due(self.progress, self._epoch() / self.phase.epochs)

    def _predict(self, deadline: float, stop: threading.Event) -> bool:
        """Take the branch that is due, and write what it shows; False where training has to stop within it."""
        progress, epochs = self.progress, self.phase.epochs
        if not self._branch_is_due:
            return True
        place = prediction.Place(self._epoch() / epochs, progress.step, self._epoch(), self._rate())
        branching = prediction.Branching(self.update, self.course, self._nll, self.log.branch)
        with self.log.paused():
            taken = branching.take(place, progress, lambda: stop.is_set() or time.monotonic() > deadline, self.team)
        if taken:
            self._event("branch", **prediction.shown(progress.branches, epochs))
        return taken

    def _read_losses(self) -> None:
        """Fold the pending step sums into the progress; raises Diverged where a loss was not finite."""
        self.saver.guard.losses(self.log.read(self.progress), self.progress.step)

    def _check(self) -> None:
        """As `_read_losses`, and raise Diverged where a weight is not finite."""
        self._read_losses()
        self.saver.guard.weights(self.progress.step)

    def _write_train(self, lr: float, norm: Tensor) -> None:
        self._check()
        if not self.progress.count:
            return  # nothing counted yet, as in trees of single words
        constraint = self.update.constraint
        facts = {
            "lr": lr,
            "grad_norm": norm.item(),
            **({} if constraint is None else constraint.mean_counts()),
            **(recurrent_spectrum(self.model.core) if self.logs_spectrum else {}),
        }
        self.log.write_train(self.progress, self._epoch(), facts)

    def _validate(self) -> float:
        """Validate, save the model if it is the best, begin averaging if it is time; the NLL (nats per token).

        Where the step has been validated, as the last one of an epoch may have been, that counts and nothing is done.
        """
        if self.progress.checked == self.progress.step:
            return self.progress.checks[-1]
        self._check()
        nll, averaged = self._nll(), self.update.average is not None
        best = record_validation(self.progress, self.phase, nll, self._epoch())
        self.log.write_valid(self.progress, self._epoch(), nll, best=best, averaged=averaged)
        if best:
            self.saver.save_best(self.progress.step, self._epoch(), nll)
        if self.progress.averaging and not averaged:
            self.update.begin_averaging(self.phase)
            self._event("averaging", "the validation loss stopped falling")
        return nll

    def _nll(self) -> float:
        """The validation NLL (nats per token), shared like a batch where there are slices."""
        score = functools.partial(self.validate, self.model)
        with self.log.paused(), self.update.averaged(), products_in(self.update.precision):
            if self.update.slices is not None:
                return self.update.slices.mean_nll(score, self.model.device)
            whole = score(WHOLE)
            return whole.nll_sum / whole.count

    def _begin_fine_tuning_if_due(self) -> None:
        """Begin the next phase after the main one, from the best model, with a new optimiser and average."""
        if not self.progress.finished or self.progress.phase + 1 == len(self.phases):
            return
        self.saver.load_best()
        self.progress.begin_next_phase()
        self._begin_phase()
        self._event("fine-tune", f"from the best model, of step {self.progress.best_step}")

    def _begin_phase(self) -> None:
        self.progress.averaging = self.progress.averaging or averages_at_once(self.phase)
        self.update.begin_phase(self.phase, averaging=self.progress.averaging)
        self.course = Course(self.windows_for, self.phase.window)

    @property
    def phase(self) -> config.Training:
        """The recipe of the present phase."""
        return self.phases[self.progress.phase]

    def _epoch(self) -> float:
        return self.course.epoch(self.progress)

    def _stop_early(self, *, interrupted: bool) -> StopReason:
        self.save()
        if interrupted:
            return StopReason.INTERRUPTED
        nll, before = self._nll(), self.progress.best
        best = math.isfinite(nll) and (before is None or nll < before)
        self.log.write_valid(self.progress, self._epoch(), nll, best=best, averaged=self.update.average is not None)
        if best:
            self.saver.save_best(self.progress.step, self._epoch(), nll, provisional=True)
        self._event("stop", f"the time is over at validation NLL {nll:.3f}, perplexity {perplexity(nll):.2f}")
        return StopReason.OUT_OF_TIME

    def save(self) -> str:
        """Write the checkpoint and return its digest; the first of several processes writes, the others return "".

        Raises UserError where the loss or a weight is not finite, the folder has been removed, or the weights of two
        processes differ.
        """
        self._check()
        self.log.saving(self.progress)
        return self.saver.save(self.progress)

    def _event(self, name: str, message: str, **facts: Any) -> None:
        self.log.write("event", self.progress, self._epoch(), {"event": name, "message": message, **facts})
