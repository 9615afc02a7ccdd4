"""The trackers of many runs: those of the command, with those that an interrupted run remembers, or none."""

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from elman.cli.options import trackers_of_runs
from elman.learning.trainer import StopReason
from elman.study import runs
from elman.study.runs import Machine, Status


@pytest.mark.parametrize(
    ("track", "extras", "off"), [(None, (), False), ("tensorboard", ("tensorboard",), False), ("none", (), True)]
)
def test_the_option(track, extras, off, monkeypatch):
    given = {}

    def tracked(_, group, **more):
        given.update(more, group=group)
        return contextlib.nullcontext([])

    def experiment(*_, **more):
        given.update(more)
        return SimpleNamespace(lock=contextlib.nullcontext(), train=lambda _: StopReason.INTERRUPTED)

    monkeypatch.setattr(runs, "tracked", tracked)
    monkeypatch.setattr(runs, "Experiment", experiment)
    monkeypatch.setattr("elman.tasks.tracking.tracker.find_spec", lambda _: object())
    run = SimpleNamespace(status=Status.INTERRUPTED, is_open=True, label="arm", recipe=None, folder=Path("run"))
    runs.train(run, Machine(track=trackers_of_runs(track), device="cpu"))
    assert given == {"device": given["device"], "resume": True, "extras": extras, "group": "arm", "off": off}
