"""Runs and their store: digests, resumption, divergence, signals, several processes, and stored measurements."""

import dataclasses
import json
import math
import os
import signal
import threading
import time

import pytest

import elman
from elman import config
from elman.errors import UserError
from elman.jobs.locks import FolderLock
from elman.study import conduct, measures, runner, runs
from elman.study.claim import ClaimMeasure, Measurement
from elman.study.claims.output import RANK
from elman.study.measures import PERPLEXITY, measured
from elman.study.runs import Machine, Status, results_by_split
from elman.study.store import Store, canonical
from support import inline, text_runs
from support.claims import row
from support.systems import posix


@pytest.mark.slow
def test_an_interrupted_run_goes_on(experiment, corpus, tmp_path, monkeypatch):
    inline.use(monkeypatch)
    store = Store(tmp_path / "out", str(corpus))
    planned = conduct.plan(experiment, store, "small", range(1, 2), Machine(threads=1))
    (first, second) = planned.waiting
    runs.train_all([first], Machine(threads=1), lambda line: None)
    assert (first.status, second.status) == (Status.DONE, Status.MISSING)
    (first.folder / "results.json").unlink()
    assert first.status is Status.INTERRUPTED
    lines = []
    outcome = conduct.conduct(planned, store, Machine(threads=1), lines.append)
    assert (first.status, second.status) == (Status.DONE, Status.DONE)
    assert outcome.record.answer == "undecided"


@pytest.mark.slow
def test_a_training_that_diverges_is_a_result(experiment, corpus, tmp_path):
    store = Store(tmp_path / "out", str(corpus))
    recipe = experiment.arms[0].small.at(1)
    wild = config.load_recipe(tmp_path / "text_runs.toml", ['training.optimiser={kind = "sgd", lr = 1e39}'])
    run = store.place("wild", wild)
    runs.train_all([run], Machine(threads=1), lambda line: None)
    assert run.status is Status.DIVERGED
    assert measured(run, PERPLEXITY).figures["test perplexity"] == math.inf
    with pytest.raises(UserError, match="diverged"):
        measured(run, RANK)
    assert store.place("other label", recipe).folder != run.folder


def test_a_loss_that_is_not_finite_is_one(tmp_path):
    """JSON has no infinity: such a loss is written as null."""
    rows = [row("test", None, perplexity=None), row("test", method="dynamic")]
    (tmp_path / "results.json").write_text(json.dumps(rows))
    (found,) = results_by_split(tmp_path).values()
    assert (found.split, found.nll, found.perplexity) == ("test", math.inf, math.inf)


@pytest.mark.slow
@posix
def test_a_signal_saves_every_run(experiment, corpus, tmp_path):
    """SIGTERM to the parent: the child saves, and a second call continues the same run."""
    store = Store(tmp_path / "out", str(corpus))
    run = store.place("long", config.load_recipe(tmp_path / "text_runs.toml", ["training.epochs=400"]))

    def stop_soon():
        deadline = time.monotonic() + 60
        while not (run.folder / "metrics.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop_soon)
    stopper.start()
    with pytest.raises(runner.Stopped):
        runs.train_all([run], Machine(threads=1), lambda line: None)
    stopper.join()
    assert run.status is Status.INTERRUPTED
    assert (run.folder / "checkpoint.safetensors").is_file()


def test_what_is_left_at_its_default_is_not_in_a_digest():
    """So the runs of an older elman are found by one whose configuration has more keys."""
    plain = canonical(text_runs.recipe())
    assert plain["training"]["clip"] == 0.5
    assert "constraint" not in plain["training"]
    assert plain["model"]["core"] == {
        "kind": "stack", "sizes": (8, 8), "weight_drop": 0.2, "between_dropout": 0.1, "output_dropout": 0.1,
    }  # fmt: skip


@pytest.fixture
def finished(experiment, corpus, tmp_path):
    """The place of a run that has results."""
    run = Store(tmp_path / "out", str(corpus)).place("one", experiment.arms[0].small.at(1))
    run.folder.mkdir(parents=True)
    (run.folder / "results.json").write_text("[]")
    return run


def test_a_changed_measure_is_measured_again(finished):
    calls = []

    def tokens(folder, count):
        calls.append(count)
        return Measurement({"tokens": float(count)}, {})

    measure = ClaimMeasure("tokens", {"tokens": "tokens"}, tokens, {"count": 3})
    for _ in range(2):
        assert measured(finished, measure).figures == {"tokens": 3.0}
    assert measured(finished, dataclasses.replace(measure, constants={"count": 4})).figures == {"tokens": 4.0}
    assert calls == [3, 4]


@pytest.mark.parametrize(("timed", "times"), [(True, 3), (False, 1)])
def test_times_are_measured_again_on_another_processor_and_by_another_version(timed, times, finished, monkeypatch):
    calls = []

    def seconds(_, count):
        calls.append(count)
        return Measurement({"seconds": 1.0}, {})

    measure = ClaimMeasure("seconds", {"seconds": "seconds"}, seconds, {"count": 3}, timed=timed)
    measured(finished, measure)
    measured(finished, measure)
    monkeypatch.setattr(measures, "processor_name", lambda _: "another")
    measured(finished, measure)
    monkeypatch.setattr(elman, "__version__", "another")
    measured(finished, measure)
    assert calls == [3] * times


def test_a_run_that_another_process_trains_is_waited_for(experiment, corpus, tmp_path):
    run = Store(tmp_path / "out", str(corpus)).place("one", experiment.arms[0].small.at(1))
    lines, lock = [], FolderLock(run.folder)
    lock.__enter__()

    def hear(line):
        lines.append(line)
        if "waiting" in line:
            (run.folder / "results.json").write_text("[]")
            lock.__exit__(None, None, None)

    runs.train_all([run], Machine(threads=1), hear)
    assert [line.split(": ")[1].split(" in ")[0] for line in lines] == [
        "another process trains it", "done by another process",
    ]  # fmt: skip


def test_one_run_serves_every_label(experiment, corpus, tmp_path):
    store = Store(tmp_path / "out", str(corpus))
    recipe = experiment.arms[0].small.at(1)
    first = store.place("softmax", recipe)
    first.folder.mkdir(parents=True)
    assert store.place("twin", recipe).folder == first.folder
