"""The trackers of an experiment, by their names."""

from contextlib import AbstractContextManager
from importlib import import_module

from elman.errors import UserError, did_you_mean, notice
from elman.tasks.experiment import Experiment
from elman.tasks.tracking.tracker import TrackedRun, Tracker, closing

TRACKERS = {
    "tensorboard": "elman.tasks.tracking.tensorboard:TensorBoard",
    "wandb": "elman.tasks.tracking.wandb:WeightsAndBiases",
    "mlflow": "elman.tasks.tracking.mlflow:MLflow",
    "trackio": "elman.tasks.tracking.trackio:Trackio",
}
"""By name; a module is imported when its tracker is used."""

OFF = "none"
"""The name that stands for no tracker, whatever the run remembers."""


def names_of(track: str) -> tuple[str, ...]:
    """The names in `NAME[,NAME]`; raises UserError where one is unknown or its package is missing.

    >>> names_of("none")
    ()
    """
    names = tuple(dict.fromkeys(name.strip() for name in track.split(",")))
    if names == (OFF,):
        return ()
    for name in names:
        if name not in TRACKERS:
            known = ", ".join(TRACKERS)
            raise UserError(f"--track {name}: no such tracker{did_you_mean(name, TRACKERS)}; choose among {known}")
        _tracker(name).require()
    return names


def tracked(
    experiment: Experiment, group: str | None = None, *, off: bool = False
) -> AbstractContextManager[list[Tracker]]:
    """The trackers among the extras of an experiment, closed after the block; none with `off`.

    One that the run remembers, and whose package is missing here, is left out with a notice.
    """
    model, task = experiment.model, experiment.task
    parameters = sum(parameter.numel() for parameter in model.parameters())
    facts = {"parameters": parameters, "data_digest": task.digest, "device": str(experiment.device)}
    run, trackers = TrackedRun(experiment.out, experiment.recipe, facts, group), list[Tracker]()
    for name in experiment.extras if not off else ():
        if name in TRACKERS:
            try:
                trackers.append(_tracker(name)(run))
            except UserError as error:
                notice(f"{error}; {experiment.out} continues without this tracker")
    return closing(trackers)


def _tracker(name: str) -> type[Tracker]:
    module, _, part = TRACKERS[name].partition(":")
    found: type[Tracker] = getattr(import_module(module), part)
    return found
