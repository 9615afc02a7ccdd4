"""The trackers themselves, each read back by its own program's means; without a network."""

import json
import struct

import pytest

from elman.cli import main
from elman.errors import said
from elman.tasks.experiment import Experiment
from elman.tasks.tracking.tracker import STATE
from elman.tasks.tracking.trackers import TRACKERS, tracked
from support import text_runs
from support.interruption import StopAt

STEP, LAST = 7, 20
"""Where training is stopped, and the last step that is logged before the end of the second epoch."""


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Everything that a tracker keeps for itself lies in this test's folder, and nothing is sent."""
    said.cache_clear()
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "WANDB_MODE": "offline",
        "WANDB_CACHE_DIR": tmp_path / "cache",
        "WANDB_CONFIG_DIR": tmp_path / "config",
        "WANDB_DATA_DIR": tmp_path / "data",
        "WANDB_ERROR_REPORTING": "false",
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "TRACKIO_DIR": tmp_path / "trackio",
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in ("WANDB_PROJECT", "WANDB_DIR", "MLFLOW_EXPERIMENT_NAME", "TRACKIO_PROJECT", "ELMAN_TRACK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def stopped_and_resumed(tmp_path, capsys):
    """A run that was tracked, stopped, resumed and evaluated, and its lines of metrics."""

    def conduct(name):
        corpus, out = text_runs.write_corpus(tmp_path / "corpus"), tmp_path / "run"
        first = Experiment(text_runs.recipe(), out, data=corpus, extras=[name])
        with tracked(first, "a group") as trackers:
            first.train([*trackers, StopAt(STEP)])
        names = json.loads((out / STATE).read_text())
        assert main(["train", "--resume", "--out", str(out), "--threads", "1"]) == 0
        printed = capsys.readouterr()
        assert "--track" not in printed.err
        assert "this model" in printed.out
        assert "* " not in printed.out  # what trackio prints
        assert json.loads((out / STATE).read_text()) == names
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return out, lines, names[name]

    return conduct


def values(lines, kind, key):
    """A quantity of the metrics, with its steps."""
    return [(line["step"], pytest.approx(line[key], rel=1e-6)) for line in lines if line["kind"] == kind]


@pytest.mark.slow
def test_tensorboard(stopped_and_resumed):
    pytest.importorskip("tensorboard", reason="elman[tensorboard] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out, lines, _ = stopped_and_resumed("tensorboard")
    found = EventAccumulator(str(out / "tensorboard"))
    found.Reload()
    for kind, key in (("train", "perplexity"), ("train", "grad_norm"), ("valid", "nll")):
        assert [(one.step, one.value) for one in found.Scalars(f"{kind}/{key}")] == values(lines, kind, key)
    test = json.loads((out / "results.json").read_text())[1]
    assert found.Scalars("final/test/perplexity")[-1].value == pytest.approx(test["perplexity"], rel=1e-6)
    assert {"recipe/text_summary", "event/text_summary", "files/text_summary"} <= set(found.Tags()["tensors"])


def test_tensorboard_drops_what_is_trained_again(tmp_path):
    """A run that was killed after its checkpoint trains the steps since then once more."""
    pytest.importorskip("tensorboard", reason="elman[tensorboard] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from elman.learning.progress import Progress
    from elman.tasks.tracking.tracker import TrackedRun
    from elman.tasks.tracking.trackers import TensorBoard

    for begin, steps, value in ((0, range(1, 9), 1.0), (5, range(6, 11), 2.0)):
        tracker = TensorBoard(TrackedRun(tmp_path, text_runs.recipe(), {}))
        tracker.begin(1, 10, Progress(step=begin))
        for step in steps:
            tracker.record({"kind": "train", "step": step, "loss": value})
        tracker.close("stopped")
    found = EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert [(one.step, one.value) for one in found.Scalars("train/loss")] == [
        (step, 1.0 if step < 6 else 2.0) for step in range(1, 11)
    ]


def wandb_records(path):
    """The records of a file of wandb: a header of 7 bytes, then a log of LevelDB in blocks of 32 KiB."""
    from wandb.proto import wandb_internal_pb2

    content, place, parts = path.read_bytes(), 7, []
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        length, kind = struct.unpack("<HB", content[place + 4 : place + 7])
        if left < 7 or (length, kind) == (0, 0):
            place += left
            continue
        parts.append(content[place + 7 : place + 7 + length])
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(b"".join(parts))
            parts = []
            yield record


def items(found):
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in found}


def test_wandb(stopped_and_resumed):
    pytest.importorskip("wandb", reason="elman[wandb] is not installed")
    out, lines, names = stopped_and_resumed("wandb")
    assert names["project"] == "elman"
    folders = sorted((out / "wandb").glob(f"offline-run-*-{names['id']}"))
    assert folders
    history, summary, settings, files, groups = [], {}, {}, [], set()
    for path in sorted(path for folder in folders for path in folder.glob("*.wandb")):
        for record in wandb_records(path):
            if record.HasField("history"):
                history.append((record.history.step.num, items(record.history.item)))
            summary |= items(record.summary.update)
            settings |= items(record.config.update) | items(record.run.config.update)
            files += [one.path for one in record.files.files]
            groups |= {record.run.run_group} if record.HasField("run") else set()
    for kind, key in (("train", "perplexity"), ("train", "grad_norm"), ("valid", "nll")):
        name = f"{kind}/{key}"
        assert [(step, row[name]) for step, row in history if name in row] == values(lines, kind, key)
    test = json.loads((out / "results.json").read_text())[1]
    assert summary["final/test/perplexity"] == pytest.approx(test["perplexity"])
    assert settings["training.optimiser.lr"] == 0.01
    assert "report.html" in files
    assert "a group" in groups


def test_mlflow(stopped_and_resumed, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="elman[mlflow] is not installed")
    out, lines, names = stopped_and_resumed("mlflow")
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("elman").experiment_id])
    assert run.info.run_id == names["run_id"]
    assert (run.info.status, run.info.run_name, run.data.tags["group"]) == ("FINISHED", "run", "a group")
    for kind, key in (("train", "perplexity"), ("train", "grad_norm"), ("valid", "nll")):
        found = client.get_metric_history(run.info.run_id, f"{kind}/{key}")
        assert sorted((one.step, one.value) for one in found) == values(lines, kind, key)
    test = json.loads((out / "results.json").read_text())[1]
    assert run.data.metrics["final/test/perplexity"] == pytest.approx(test["perplexity"])
    assert run.data.params["training.optimiser.lr"] == "0.01"
    assert run.data.params["model.core.sizes"] == "[8, 8]"
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["report.html"]


def test_mlflow_keeps_what_a_resumed_run_changes_and_begins_a_new_run_where_the_store_lacks_it(tmp_path, capsys):
    mlflow = pytest.importorskip("mlflow", reason="elman[mlflow] is not installed")
    from elman.learning.progress import Progress
    from elman.tasks.tracking.tracker import TrackedRun
    from elman.tasks.tracking.trackers import MLflow

    for epochs in (2, 4):
        tracker = MLflow(TrackedRun(tmp_path, text_runs.recipe(epochs=epochs), {}))
        tracker.begin(1, 10, Progress())
        tracker.close("stopped")
    run_id = json.loads((tmp_path / STATE).read_text())["mlflow"]["run_id"]
    run = mlflow.MlflowClient().get_run(run_id)
    assert (run.data.params["training.epochs"], run.data.tags["resumed.training.epochs"]) == ("2", "4")
    assert run.info.status == "KILLED"
    (tmp_path / STATE).write_text(json.dumps({"mlflow": {"run_id": "0" * 32}}))
    tracker.__init__(tracker.run)
    tracker.begin(1, 10, Progress())
    tracker.close("failed")
    assert f"the run {'0' * 32} of {tmp_path} is not in" in capsys.readouterr().err
    run_id = json.loads((tmp_path / STATE).read_text())["mlflow"]["run_id"]
    assert mlflow.MlflowClient().get_run(run_id).info.status == "FAILED"


def test_trackio(stopped_and_resumed):
    pytest.importorskip("trackio", reason="elman[trackio] is not installed")
    from trackio.sqlite_storage import SQLiteStorage

    out, lines, names = stopped_and_resumed("trackio")
    (run,) = SQLiteStorage.get_run_records("elman")
    assert run["name"] == names["name"]
    rows = SQLiteStorage.get_logs("elman", names["name"], run_id=run["id"])
    for kind, key in (("train", "perplexity"), ("train", "grad_norm"), ("valid", "nll")):
        name = f"{kind}/{key}"
        assert [(row["step"], row[name]) for row in rows if name in row] == values(lines, kind, key)
    test = json.loads((out / "results.json").read_text())[1]
    assert rows[-1]["final/test/perplexity"] == pytest.approx(test["perplexity"])
    assert SQLiteStorage.get_run_config("elman", names["name"], run_id=run["id"])["training.optimiser.lr"] == 0.01


def test_every_tracker_names_its_extra():
    import tomllib
    from pathlib import Path

    project = Path(__file__).parents[3] / "pyproject.toml"
    assert set(TRACKERS) <= set(tomllib.loads(project.read_text())["project"]["optional-dependencies"])
