"""What all trackers do, with one that records what it receives and one that fails."""

import json
from typing import ClassVar

import pytest

from elman import config
from elman.cli import main
from elman.errors import UserError, said
from elman.learning.progress import Progress
from elman.tasks.experiment import Experiment
from elman.tasks.tracking import tracker
from elman.tasks.tracking.tracker import STATE, TrackedRun, Tracker, closing
from elman.tasks.tracking.trackers import TRACKERS, names_of, tracked
from support import text_runs
from support.interruption import StopAt

CALLS = []


class Fake(Tracker):
    name: ClassVar[str] = "fake"

    def _open(self, known, step):
        self.call("open", known, step)
        return known or {"id": "a"}

    def call(self, *what):
        CALLS.append(what)

    def _send(self, values, step):
        self.call("send", values, step)

    def _tell(self, message, step):
        self.call("tell", message, step)

    def _summarise(self, figures):
        self.call("figures", figures)

    def _keep(self, path):
        self.call("keep", path.name)

    def _close(self, status):
        self.call("close", status)


class Missing(Fake):
    name: ClassVar[str] = "missing"


class Failing(Fake):
    name: ClassVar[str] = "failing"
    at: ClassVar[str] = "send"

    def call(self, *what):
        super().call(*what)
        if what[0] == self.at:
            raise OSError("no space left\non the other machine")


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    monkeypatch.setattr(tracker, "find_spec", lambda name: None if "missing" in name else name)
    for kind in (Fake, Missing, Failing):
        monkeypatch.setitem(TRACKERS, kind.name, kind)
    monkeypatch.delenv("ELMAN_TRACK", raising=False)
    said.cache_clear()
    CALLS.clear()


@pytest.fixture
def corpus(tmp_path):
    return text_runs.write_corpus(tmp_path / "corpus")


def train(corpus, out, names=("fake",), resume=False, stop=None, **training):
    experiment = Experiment(text_runs.recipe(**training), out, data=corpus, extras=names, resume=resume)
    with tracked(experiment) as trackers:
        watchers = [*trackers, stop] if stop is not None else trackers
        experiment.train(watchers)
        if stop is None:
            experiment.finish()
            experiment.attach(out / "recipe.toml")
    return experiment


def sent(kind):
    return [what[1:] for what in CALLS if what[0] == kind]


def test_what_is_written_is_what_is_tracked(corpus, tmp_path):
    out = tmp_path / "run"
    experiment = train(corpus, out, epochs=1)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    numbers = [
        ({f"{line['kind']}/{key}": value for key, value in line.items() if key not in ("kind", "step", "phase")}, step)
        for line in lines
        if (step := line["step"]) and line["kind"] != "event"
    ]
    assert sent("send") == numbers
    assert {"train/loss", "train/perplexity", "train/lr", "train/grad_norm", "train/tokens_per_s"} <= numbers[0][
        0
    ].keys()
    assert {"valid/nll", "valid/perplexity", "valid/best"} <= numbers[-1][0].keys()
    rows = json.loads((out / "results.json").read_text())
    ((figures,),) = sent("figures")
    for row in rows:
        assert figures[f"final/{row['split']}/perplexity"] == row["perplexity"]
    assert "final/test/tokens" not in figures
    assert CALLS[0][0] == "open"
    assert [what[0] for what in CALLS][-3:] == ["figures", "keep", "close"]
    assert sent("close") == [("finished",)]
    assert experiment.extras == ["fake"]
    assert "fake" not in (out / "recipe.toml").read_text()


@pytest.mark.slow
def test_a_resumed_run_is_the_same_run_of_the_tracker(corpus, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(corpus, whole, names=())
    assert CALLS == []
    train(corpus, cut, stop=StopAt(7))
    assert sent("close") == [("stopped",)]
    assert json.loads((cut / STATE).read_text()) == {"fake": {"id": "a"}}
    CALLS.clear()
    resumed = Experiment(text_runs.recipe(), cut, data=corpus, resume=True)
    with tracked(resumed) as trackers:
        resumed.train(trackers)
    assert CALLS[0] == ("open", {"id": "a"}, 7)
    assert ("resume: resumed at step 7", 7) in sent("tell")
    assert text_runs.same_files(whole, cut)
    assert config.load_recipe(whole / "recipe.toml") == config.load_recipe(cut / "recipe.toml")


def test_a_tracker_that_fails_is_reported_once_and_training_goes_on(corpus, tmp_path, capsys):
    out = tmp_path / "run"
    train(corpus, out, names=("failing", "fake"), epochs=1)
    told = [line for line in capsys.readouterr().err.splitlines() if "--track failing" in line]
    assert told == [f"elman: --track failing: no space left; {out} continues without this tracker"]
    assert (out / "results.json").is_file()
    assert sent("close") == [("finished",)]


@pytest.mark.parametrize("at", ["open", "send", "tell", "figures", "keep", "close"])
def test_wherever_a_tracker_fails(at, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Failing, "at", at)
    with closing([Failing(TrackedRun(tmp_path, text_runs.recipe(), {}))]) as (failing,):
        failing.begin(1, 1, Progress())
        for step in (1, 2):
            failing.record({"kind": "train", "step": step, "loss": 1.0})
            failing.record({"kind": "event", "step": step, "event": "averaging", "message": "begun"})
        failing.conclude({"valid/nll": 1.0})
        failing.attach(tmp_path / "report.html")
    assert capsys.readouterr().err.count("--track failing: no space left") == 1
    assert CALLS[-1][0] == at
    assert [what[0] for what in CALLS].count(at) == 1


def test_an_error_of_training_is_seen_by_the_tracker(tmp_path):
    run = TrackedRun(tmp_path, text_runs.recipe(), {})
    for error, status in ((UserError, "failed"), (KeyboardInterrupt, "stopped")):
        with pytest.raises(error), closing([Fake(run)]) as (fake,):  # noqa: PT012
            fake.begin(1, 1, Progress())
            raise error
        assert sent("close")[-1] == (status,)


def test_a_tracker_that_was_never_opened_is_not_closed(tmp_path):
    with closing([Fake(TrackedRun(tmp_path, text_runs.recipe(), {}))]):
        pass
    assert CALLS == []


def test_numbers_that_are_not_finite_are_left_out(tmp_path):
    fake = Fake(TrackedRun(tmp_path, text_runs.recipe(), {"parameters": 5, "device": None}))
    fake.record({"kind": "train", "step": 3, "phase": 0, "loss": float("nan"), "lr": 0.5, "note": "x"})
    fake.conclude({"valid/nll": float("inf"), "test/nll": 1.0})
    assert CALLS == [("open", {}, 3), ("send", {"train/lr": 0.5}, 3), ("figures", {"final/test/nll": 1.0})]
    assert fake.run.settings["parameters"] == 5
    assert fake.run.settings["training.optimiser.lr"] == 0.01
    assert "device" not in fake.run.settings


def test_names():
    assert names_of("fake, fake") == ("fake",)
    assert names_of("none") == ()
    with pytest.raises(
        UserError, match=r"--track wandv: no such tracker \(did you mean wandb\?\); choose among tensor"
    ):
        names_of("wandv")
    with pytest.raises(UserError, match=r"--track missing needs the package missing: pip install 'elman\[missing\]'"):
        names_of("fake,missing")


@pytest.mark.slow
def test_the_command_and_the_environment_variable(corpus, tmp_path, capsys, monkeypatch):
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    out = tmp_path / "run"
    command = ["train", str(tmp_path / "recipe.toml"), "--data", str(corpus), "--threads", "1"]
    assert main([*command, "--out", str(out), "--track", "missing"]) == 2
    assert "pip install 'elman[missing]'" in capsys.readouterr().err
    assert not out.exists()
    monkeypatch.setenv("ELMAN_TRACK", "fake")
    assert main([*command, "--out", str(out), "--max-minutes", "0"]) == 0
    assert ("keep", "report.html") in CALLS
    monkeypatch.delenv("ELMAN_TRACK")
    CALLS.clear()
    assert main(["train", "--resume", "--out", str(out), "--track", "none", "--threads", "1"]) == 0
    assert CALLS == []


def test_a_tracker_that_a_run_remembers_may_be_missing_elsewhere(corpus, tmp_path, capsys):
    out = tmp_path / "run"
    Experiment(text_runs.recipe(epochs=1), out, data=corpus, extras=["missing"]).train()
    resumed = Experiment(text_runs.recipe(epochs=1), out, data=corpus, resume=True)
    with tracked(resumed) as trackers:
        assert trackers == []
    assert "continues without this tracker" in capsys.readouterr().err


def test_damaged_names_begin_a_new_run(tmp_path):
    for content in ("[", "[]", '{"fake": 3}', '{"fake": {"id": 3}}', '{"other": {"id": "b"}}'):
        (tmp_path / STATE).write_text(content)
        Fake(TrackedRun(tmp_path, text_runs.recipe(), {})).begin(1, 1, Progress())
        assert CALLS.pop() == ("open", {}, 0)
        assert json.loads((tmp_path / STATE).read_text())["fake"] == {"id": "a"}
    assert json.loads((tmp_path / STATE).read_text()) == {"other": {"id": "b"}, "fake": {"id": "a"}}
