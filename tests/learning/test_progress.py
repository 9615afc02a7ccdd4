"""The effect of a validation on the position of training: the best, patience, averaging, phases."""

import itertools

import numpy as np
import pytest

from elman import config
from elman.data.windows import TrainingWindows
from elman.learning.progress import Course, Progress, record_validation


def phase(**options):
    return config.Training(epochs=9, optimiser=config.SGD(lr=1.0), **options)


def validated(losses, progress=None, **options):
    """Whether each of the losses is the best, and the progress after them."""
    progress, best = progress or Progress(), []
    for step, nll in enumerate(losses, start=1):
        progress.step = step
        best.append(record_validation(progress, phase(**options), nll, step / 2))
    return best, progress


def test_only_a_lower_loss_is_a_new_best():
    best, progress = validated([3.0, 2.0, 2.0, 2.5, 1.5, 1.75])
    assert best == [True, True, False, False, True, False]
    assert (progress.best, progress.best_step, progress.best_epoch, progress.waited) == (1.5, 5, 2.5, 1)
    assert progress.checks == [3.0, 2.0, 2.0, 2.5, 1.5, 1.75]
    assert not progress.finished


@pytest.mark.parametrize(("patience", "finished"), [(2, True), (3, False)])
def test_training_ends_after_so_many_validations_without_a_best(patience, finished):
    _, progress = validated([2.0, 2.5, 2.0], patience=patience)
    assert progress.waited == 2
    assert progress.finished is finished


def test_averaging_begins_by_the_non_monotone_rule():
    averaging = config.NonMonotone(interval=2)
    assert not validated([3.0, 2.0, 2.5], averaging=averaging)[1].averaging
    assert not validated([3.0, 2.0, 2.5, 2.9], averaging=averaging)[1].averaging
    assert validated([3.0, 2.0, 2.5, 2.9, 2.1], averaging=averaging)[1].averaging


def test_every_epoch_of_every_phase_has_windows_of_its_own():
    window = config.Window(length=5, random=True)
    course = Course(lambda most: TrainingWindows(np.arange(400), 2, 5, random=True, max_extra=most), window)
    epochs = [Progress(phase=phase, epoch=epoch, window=1) for phase in (0, 1) for epoch in (0, 1)]
    spans = [[*course.spans(progress)] for progress in epochs]
    assert all(one != other for one, other in itertools.combinations(spans, 2))
    for place in (0, 2):  # within a phase the next epoch follows
        expected = spans[place][1:] + spans[place + 1]
        assert [*itertools.islice(course.ahead(epochs[place]), len(expected))] == expected


def test_a_next_phase_begins_with_no_history_but_keeps_the_best():
    _, progress = validated([3.0, 2.0, 2.5], patience=1)
    progress.average_count, progress.averaging, progress.epoch, progress.window = 7, True, 4, 3
    progress.by_epoch.append(2.5)
    progress.begin_next_phase()
    assert (progress.phase, progress.epoch, progress.window, progress.waited, progress.average_count) == (1, 0, 0, 0, 0)
    assert progress.checks == progress.by_epoch == []
    assert not progress.averaging
    assert not progress.finished
    assert (progress.best, progress.best_step, progress.step) == (2.0, 2, 3)
