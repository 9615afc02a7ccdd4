"""Resuming a run: what its checkpoint must share with its recipe, and what may change from then on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from elman import config
from elman.errors import UserError
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL, recorded_recipe, require_same_inputs
from elman.learning.progress import Changes, Progress, phases_of, read_progress

CHANGEABLE = (
    "training.epochs",
    "training.optimiser.lr",
    "training.schedule",
    "training.clip",
    "training.clip_by",
    "training.weight_decay",
    "training.l1",
    "training.patience",
    "training.fine_tune",
    "training.validate_every",
    "training.log_every",
    "training.log_spectrum",
    "training.checkpoint_minutes",
    "training.predict_loss",
    "training.minutes",
)
"""Keys that a resumed run may change: the tensors of a checkpoint mean the same whatever their values."""

OF_MAIN_PHASE = (
    "training.epochs",
    "training.optimiser.",
    "training.schedule.",
    "training.patience",
    "training.minutes",
)
"""Beginnings of the keys among these for which fine-tuning has values of its own (`phases_of`)."""


def split_changes(old: config.Recipe, new: config.Recipe) -> tuple[Changes, list[str]]:
    """The changes that a resumed run may make to its recipe, and the keys that it may not change."""
    values = [dict(config.flatten(config.decisive(recipe))) for recipe in (old, new)]
    keys = config.changed_keys(old, new)
    allowed = [key for key in keys if any(f"{key}.".startswith(f"{one}.") for one in CHANGEABLE)]
    changes: Changes = {key: (values[0].get(key), values[1].get(key)) for key in allowed}
    return changes, [key for key in keys if key not in allowed and key in values[0].keys() | values[1].keys()]


def read_checkpoint(
    path: Path, own: Mapping[str, Any], recipe: config.Recipe
) -> tuple[dict[str, Tensor], Progress, Changes]:
    """The tensors and the progress of a checkpoint, reopened under the recipe, and what this recipe changes.

    Raises UserError where the file is missing, damaged, no checkpoint or of another run than that with the facts
    `own`, or a change is not allowed.
    """
    if not path.exists():
        raise UserError(
            f"{path}: missing, but {MODEL} is there, so that training cannot begin again without losing it; restore"
            f" the checkpoint, or start a new run with --init {path.parent}"
        )
    tensors, facts = checkpoint.load(path)
    if "progress" not in facts:
        raise UserError(f"{path}: a model, not a checkpoint of training; restore the file of the run")
    require_same_inputs(path, facts, own)
    old = recorded_recipe(path, facts)
    changes, others = split_changes(old, recipe)
    if others:
        raise UserError(
            f"{path}: the checkpoint of another run, whose recipe differs in {', '.join(others)}; restore the file of"
            " the run, or start a new run with --init"
        )
    progress = read_progress(path, facts["progress"], len(phases_of(old.training)))
    if changes:
        reopen(progress, recipe.training, changes)
    return tensors, progress, changes


def reopen(progress: Progress, new: config.Training, changes: Changes) -> None:
    """Continue a run under a changed recipe, also one that had finished.

    Raises UserError where a change has no effect, since nothing is left to train or the phase does not use it.
    """
    number, after = progress.phase, phases_of(new)
    if number and (idle := [key for key in changes if number >= len(after) or key.startswith(OF_MAIN_PHASE)]):
        raise UserError(
            f"{', '.join(idle)}: no effect on a run that is fine-tuning; leave {'them' if idle[1:] else 'it'} out, or"
            " change training.fine_tune.epochs or its lr"
        )
    if progress.finished and len(after) > number + 1:
        if idle := [key for key in changes if key.startswith(OF_MAIN_PHASE)]:
            raise UserError(
                f"{', '.join(idle)}: no effect on a finished run to which fine-tuning is added; leave"
                f" {'them' if idle[1:] else 'it'} out, or train it to its end without fine_tune first"
            )
        return  # the next phase begins
    phase, name = after[number], "training.fine_tune.epochs" if number else "training.epochs"
    if progress.epoch >= phase.epochs:
        raise UserError(
            f"{name} = {phase.epochs}: the run has done {progress.epoch} epochs, so that there is nothing left to"
            f" train; give more, with {'--set ' + name + '=N' if number else '--epochs N'}"
        )
    if phase.minutes is not None and progress.seconds >= 60 * phase.minutes:
        raise UserError(
            f"training.minutes = {phase.minutes:g}: the run has trained for {progress.seconds / 60:.3g}, so that no"
            " time is left; give more, with --set training.minutes=N"
        )
    if phase.patience and progress.waited >= phase.patience:
        raise UserError(
            f"training.patience = {phase.patience}: the run has ended after {progress.waited} validations without a new"
            " best; raise it too, with --set training.patience=N"
        )
    if any(key.startswith(OF_MAIN_PHASE) for key in changes):
        progress.branches = []  # they predict the end of another course
    progress.finished = False
