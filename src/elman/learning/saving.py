"""What training writes into its run folder: the checkpoint, and the best model so far."""

from pathlib import Path
from typing import Any

import msgspec

from elman.learning import checkpoint
from elman.learning.checkpoint import CHECKPOINT, BestModel
from elman.learning.guard import Guard
from elman.learning.progress import Progress
from elman.learning.team import Team
from elman.learning.update import Update


class Saver:
    """Writes the checkpoint and the best model of a run; of several processes the first one does.

    Args:
        folder: the run folder.
        update: has the model, and what a checkpoint holds beside it.
        facts: stored in both files.
        team: the processes that train the run.
    """

    def __init__(self, folder: Path, update: Update, facts: dict[str, Any], team: Team) -> None:
        self.folder, self.update, self.facts, self.team = folder, update, facts, team
        self.guard, self.best = Guard(folder, update), BestModel(folder)

    def restore_best(self, progress: Progress) -> None:
        """Undo the best model of an early stop; raises UserError where the one that `progress` has is missing."""
        if self.team.leads:
            self.best.restore()
            if progress.best is not None:
                self.best.require(self.facts)

    def load_best(self) -> None:
        """Give the model the weights of the best one, once it is written."""
        self.team.wait()
        checkpoint.load_model(self.update.model, checkpoint.load(self.best.path)[0])

    def save_best(self, step: int, epoch: float, nll: float, *, provisional: bool = False) -> None:
        """Write the present model, averaged where weights are, as the best one, of a validation NLL (nats per token).

        A provisional one is undone when training is resumed. Raises UserError where the folder has been removed.
        """
        if not self.team.leads:
            return
        facts = {**self.facts, "step": step, "epoch": epoch, "valid_nll": nll}
        if self.update.average is not None:
            facts["averaged"] = True
        self.guard.place()
        with self.update.averaged():
            self.best.save(self.update.model, facts, provisional=provisional)

    def save(self, progress: Progress) -> str:
        """Write the checkpoint and return its digest, or "" where another process writes it.

        Raises UserError where the folder has been removed, or the weights of two processes differ.
        """
        if self.team.size > 1:
            self.team.require_same(checkpoint.digest_of(checkpoint.model_tensors(self.update.model)), "weights")
        if self.update.average is not None:
            progress.average_count = self.update.average.count
        facts, tensors = {**self.facts, "progress": msgspec.to_builtins(progress)}, self.update.tensors()
        if not self.team.leads:  # every process asks for the tensors
            return ""
        self.guard.place()
        return checkpoint.save(self.folder / CHECKPOINT, tensors, facts, parents=False)
