"""elman sweep: what is trained, chosen and written; folders, failures, signals, mistakes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from elman import config
from elman.cli import main
from elman.jobs.locks import FolderLock, is_taken
from elman.learning import checkpoint
from elman.study import runs
from support import inline
from support.claims import row
from support.systems import posix

LR = "training.optimiser.lr"


def command(recipe, corpus, out, *more):
    return ["sweep", str(recipe), "--data", str(corpus), "--out", str(out), "--threads", "1", *more]


def digest(folder):
    return checkpoint.digest_of(checkpoint.load(folder / "model.safetensors")[0])


@pytest.mark.slow
def test_from_the_command_line_to_the_best_recipe(recipe, corpus, tmp_path, monkeypatch, capsys, drawn):
    """Trained once, compared by seed and by token, written; best.toml gives the same run by `elman train`."""
    inline.use(monkeypatch)
    out = tmp_path / "out"
    words = command(recipe, corpus, out, "--set", "model.output.activation=softmax,sigsoftmax", "--seeds", "1,2")
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert [row["state"] for row in found["rows"]] == ["done", "done"]
    means = [row["mean"] for row in found["rows"]]
    assert means == sorted(means)
    assert found["rows"][0]["test"] is None
    test = found["rows"][1]["test"]
    assert test["by_seed"]["mean"] == pytest.approx(means[0] - means[1])
    assert test["by_token"]["tokens"] == 200
    assert "vocabularies" not in told.err
    assert len(found["best_test_nll"]) == 2
    assert found["best"]["settings"] == found["rows"][0]["settings"]
    page = (out / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert json.loads((out / "sweep.json").read_text())["rows"] == found["rows"]

    run = out / "runs" / Path(found["rows"][0]["folders"][0]).name
    assert main(["train", str(out / "best.toml"), "--out", str(tmp_path / "again"), "--threads", "1"]) == 0
    assert digest(tmp_path / "again") == digest(run)
    assert tomllib.loads((out / "best.toml").read_text())["seed"] == 1

    capsys.readouterr()
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/model.safetensors")}
    assert main(["sweep", "--resume", "--out", str(out), "--threads", "1"]) == 0
    again = capsys.readouterr()
    assert "training into" not in again.err
    assert "Best of 2" in again.out
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("runs/*/model.safetensors")}


@pytest.mark.slow
def test_the_best_is_chosen_without_test_figures(recipe, corpus, tmp_path, written, capsys):
    """The setting that is worst on the test split is best on the validation split, and is taken."""
    out = tmp_path / "out"
    words = command(recipe, corpus, out, "--set", f"{LR}=0.3,0.1,0.2", "--seeds", "1-2")
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["settings"][LR] for row in found["rows"]] == ["0.1", "0.2", "0.3"]
    assert found["best_test_nll"] == pytest.approx([9 - 0.101, 9 - 0.102])
    for path in out.glob("runs/*/results.json"):
        path.write_text(json.dumps([row for row in json.loads(path.read_text()) if row["split"] == "valid"] + [
            row("test", 0.0 if "lr=0.3" in path.parent.name else 5.0)
        ]))  # fmt: skip
    assert main([*words, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["best"] == found["best"]
    assert again["rows"] == found["rows"]
    assert len(written.trained) == 6


def test_settings_with_other_vocabularies_are_not_tested(recipe, corpus, tmp_path, written, capsys):
    words = command(recipe, corpus, tmp_path / "out", "--set", "data.max_vocabulary=8,16", "--seeds", "1-2")
    assert main([*words, "--json"]) == 0
    told = capsys.readouterr()
    assert [row["test"] for row in json.loads(told.out)["rows"]] == [None, None]
    assert told.err.count("other texts or vocabularies") == 1


@pytest.mark.slow
def test_a_run_that_fails_is_begun_again_and_reported(recipe, corpus, tmp_path, written, capsys):
    """Once: the sweep is complete. More often than --retries: the others are trained, status 1, and again later."""
    out = tmp_path / "out"
    words = command(recipe, corpus, out, "--set", f"{LR}=0.1,0.2", "--seeds", "1-3")
    written.failing = {2: 1, 3: 3}
    assert main(words) == 1
    told = capsys.readouterr()
    assert "lr=0.1, seed 2: failed (OSError: the disk was away); it is begun again" in told.err
    assert "lr=0.1, seed 3: failed (OSError: the disk was away; see " in told.err
    assert "1 runs failed; the same command tries them again" in told.err
    assert "Best of 1: lr=0.2" in told.out
    record = json.loads((out / "sweep.json").read_text())
    assert [(row["state"], row["mean"] is None) for row in record["rows"]] == [("done", False), ("failed", True)]
    assert record["rows"][1]["states"] == ["done", "done", "failed"]
    (log,) = (out / "runs").glob("*.log")
    assert "Traceback" in log.read_text()
    assert main(words) == 0
    assert "Best of 2: lr=0.1" in capsys.readouterr().out
    assert len(written.trained) == 6 + 1 + 3


@pytest.mark.slow
def test_a_training_that_diverges_is_last_and_no_failure(recipe, corpus, tmp_path, written, capsys, monkeypatch):
    def train(run, machine):
        if run.recipe.training.optimiser.lr > 0.15:
            run.folder.mkdir(parents=True)
            (run.folder / "diverged.json").write_text("{}")
        else:
            written(run, machine)

    monkeypatch.setattr(runs, "_train", train)
    assert main([*command(recipe, corpus, tmp_path / "out", "--set", f"{LR}=0.2,0.1"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["state"], row["settings"][LR]) for row in rows] == [("done", "0.1"), ("diverged", "0.2")]
    assert [row["states"] for row in rows] == [["done"], ["diverged"]]
    assert main(command(recipe, corpus, tmp_path / "out", "--set", f"{LR}=0.2,0.1")) == 0
    shown = [re.split(r"\W*│\W*", line) for line in capsys.readouterr().out.splitlines() if "0.2" in line]
    assert shown[-1].count("diverged") == 2, "its figure and its state"
    assert main(command(recipe, corpus, tmp_path / "none", "--set", f"{LR}=0.2,0.3")) == 0
    assert "No setting has a finite loss; 2 diverged." in capsys.readouterr().out


@pytest.mark.slow
def test_seeds_and_values_may_be_added(recipe, corpus, tmp_path, written, capsys):
    out = tmp_path / "out"
    assert main(command(recipe, corpus, out, "--set", f"{LR}=0.1,0.2")) == 0
    assert main(command(recipe, corpus, out, "--set", f"{LR}=0.2,0.3,0.1", "--seeds", "1-2")) == 0
    assert len(written.trained) == 6
    assert main(["sweep", "--resume", "--out", str(out), "--seeds", "1-3"]) == 0
    assert len(written.trained) == 9
    assert len({(recipe.seed, recipe.training.optimiser.lr) for recipe in written.trained}) == 9
    assert "left out" not in capsys.readouterr().err
    assert main(command(recipe, corpus, out, "--set", f"{LR}=0.2,0.3", "--seeds", "1,3")) == 0
    assert f"this sweep had seed 2, {LR}=0.1 too, left out now; their runs are kept" in capsys.readouterr().err


def test_a_key_within_a_table_that_is_varied_is_kept(recipe, corpus, tmp_path, written, capsys):
    tables = ",".join(f"{{kind = 'adam', lr = {rate}}}" for rate in (0.1, 0.2))
    words = ["--set", "training.optimiser.eps=1e-5", "--set", f"training.optimiser={tables}"]
    assert main(command(recipe, corpus, tmp_path / "out", *words)) == 0
    assert [one.training.optimiser.eps for one in written.trained] == [1e-5, 1e-5]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", f"{LR}=0.1,0.2", "--set", "training.clip=1"], "--set differ (training.clip=1)"),
        (["--set", "training.clip=0.1,0.2"], f"the keys that are varied differ ({LR})"),
        (["--set", f"{LR}=0.1,0.2", "--search", "random"], "--search differ (grid)"),
        (["--set", f"{LR}=0.1,0.2", "--data", "shakespeare"], "--data differ"),
    ],
)
def test_another_question_in_a_folder_is_refused(more, message, recipe, corpus, tmp_path, written, capsys):
    out = tmp_path / "out"
    assert main(command(recipe, corpus, out, "--set", f"{LR}=0.1,0.2")) == 0
    capsys.readouterr()
    assert main(command(recipe, corpus, out, *more)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"out holds another sweep: {message}" in line.replace(str(tmp_path), "")


def test_a_changed_recipe_is_another_question(recipe, corpus, tmp_path, written, capsys):
    words = command(recipe, corpus, tmp_path / "out", "--set", f"{LR}=0.1,0.2")
    assert main(words) == 0
    recipe.write_text(recipe.read_text().replace("epochs = 1", "epochs = 2").replace('"toy"', '"another name"'))
    capsys.readouterr()
    assert main(words) == 2
    assert "holds another sweep: the recipe differ (training.epochs)" in capsys.readouterr().err


def test_one_driver_at_a_time(recipe, corpus, tmp_path, written, capsys):
    out = tmp_path / "out"
    with FolderLock(out):
        assert main(command(recipe, corpus, out, "--set", f"{LR}=0.1,0.2")) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"{out} is in use" in line
    assert written.trained == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--set", "training.optimizer.lr=0.1,0.2"], "toy.toml, lr=0.1: unknown key training.optimizer"),
        (["--set", f"{LR}=0.1,fast"], "toy.toml, lr=fast: training.optimiser.lr"),
        (["--set", "training.batch_size=4,4000"], "batch_size=4000: "),
        (["--set", "training.clip=0.5,0.50"], "clip=0.5 and clip=0.50 are the same recipe"),
        (["--set", f"{LR}=log:1e-4..1e-1"], "a range is for --search random or optuna"),
        (["--search", "random"], "there is nothing to vary"),
        (["--search", "annealing"], "choose grid, random or optuna"),
        (["--set", f"{LR}=1,2", "--trials", "3"], "--trials belongs to --search random or optuna"),
        (["--resume", "--out", "nowhere"], "there is no folder nowhere"),
        (["--precision", "bf16"], "--precision: the runs have"),
        (["--slurm", "partition=gpu"], "--slurm belongs to --launcher slurm"),
        (["--launcher", "ray", "--ray", "num_cpus"], "--ray num_cpus: write KEY=VALUE"),
    ],
)
def test_mistakes_are_one_line_before_anything_is_trained(more, message, recipe, corpus, tmp_path, written, capsys):
    assert main(command(recipe, corpus, tmp_path / "out", *more)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert written.trained == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("package", "more"),
    [
        ("optuna", ["--set", f"{LR}=log:1e-4..1e-1", "--search", "optuna"]),
        ("submitit", ["--set", f"{LR}=1,2", "--launcher", "slurm"]),
        ("ray", ["--set", f"{LR}=1,2", "--launcher", "ray"]),
    ],
)
def test_no_folder_is_left_where_a_package_is_missing(
    package, more, recipe, corpus, tmp_path, written, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, package, None)
    assert main(command(recipe, corpus, tmp_path / "out", *more)) == 2
    assert f"needs the package {package}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "RECIPE is missing"),
        (["--resume"], "--resume needs --out DIR"),
        (["--resume", "--out", "here"], "here holds no sweep"),
        (["--resume", "--out", "here", "--set", "a=1"], "--set: the sweep in here has its own"),
    ],
)
def test_what_is_continued_must_be_there(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_dry_run_lists_the_runs_and_their_time(recipe, corpus, tmp_path, capsys):
    out = tmp_path / "out"
    words = command(recipe, corpus, out, "--set", f"{LR}=log:0.01..0.1", "--search", "random", "--trials", "2")
    assert main([*words, "--seeds", "1-2", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["seed"] for run in found["runs"]] == [1, 2, 1, 2]
    assert {run["state"] for run in found["runs"]} == {"not trained"}
    assert 0 < found["minutes"] == pytest.approx(sum(run["minutes"] for run in found["runs"]))
    assert not out.exists()


@pytest.mark.slow
def test_the_run_of_a_random_search_is_that_of_its_settings(recipe, corpus, tmp_path, written, capsys):
    words = command(recipe, corpus, tmp_path / "out", "--set", f"{LR}=log:0.01..1", "--search", "random")
    assert main([*words, "--trials", "4", "--seed", "7", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["rows"]
    assert main([*words, "--trials", "6", "--seed", "7", "--json"]) == 0
    more = json.loads(capsys.readouterr().out)["rows"]
    assert {row["label"] for row in first} < {row["label"] for row in more}
    assert len(written.trained) == 6
    values = sorted(float(row["settings"][LR]) for row in more)
    assert [recipe.training.optimiser.lr for recipe in sorted(written.trained, key=written.nll)] == values
    assert main([*words, "--seed", "8"]) == 2
    assert "--seed differ (7)" in capsys.readouterr().err


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()


@posix
@pytest.mark.slow
def test_a_killed_driver_is_continued(recipe, corpus, tmp_path, monkeypatch, capsys):
    """Its runs end with it; the same command continues them, to the same weights as of a training without an end."""
    out, settings = tmp_path / "out", ["--set", "training.epochs=10"]
    words = command(recipe, corpus, out, *settings, "--seeds", "6")
    driver = subprocess.Popen([sys.executable, "-m", "elman", *words], stderr=subprocess.DEVNULL)
    until(lambda: any(path.stat().st_size for path in out.glob("runs/*/metrics.jsonl")))
    driver.kill()
    driver.wait()
    (run,) = (path for path in out.glob("runs/*") if path.is_dir())
    until(lambda: not is_taken(run))
    assert not (run / "results.json").exists()
    inline.use(monkeypatch)
    assert main(["sweep", "--resume", "--out", str(out), "--threads", "1"]) == 0
    plain = command(recipe, corpus, tmp_path / "plain", *settings, "--seed", "6")
    assert main(["train", *plain[1:]]) == 0
    assert digest(tmp_path / "plain") == digest(run)
    capsys.readouterr()


@pytest.mark.slow
@posix
def test_a_signal_stops_the_sweep_and_what_is_found_is_written(recipe, corpus, tmp_path, written, monkeypatch, capsys):
    def train(run, machine):
        if run.recipe.training.optimiser.lr > 0.15:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            written(run, machine)

    monkeypatch.setattr(runs, "_train", train)
    out = tmp_path / "out"
    assert main(command(recipe, corpus, out, "--set", f"{LR}=0.1,0.2,0.3")) == 130
    assert f"stopped and saved; continue with: elman sweep --resume --out {out}" in capsys.readouterr().err
    record = json.loads((out / "sweep.json").read_text())
    assert [row["state"] for row in record["rows"]] == ["done", "unfinished", "unfinished"]
    assert (record["over"], record["best_test_nll"]) == (False, None)
    monkeypatch.setattr(runs, "_train", written)
    assert main(["sweep", "--resume", "--out", str(out)]) == 0
    assert "Best of 3" in capsys.readouterr().out


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "options"),
    [("submitit", ["slurm", "--slurm", "cluster=local"]), ("ray", ["ray", "--ray", "cluster_cpus=2"])],
)
def test_runs_of_other_launchers_are_equal(package, options, recipe, corpus, tmp_path):
    """To the bit those of `elman train`."""
    pytest.importorskip(package, reason=f"needs the package {package}")
    out = tmp_path / "out"
    words = [*command(recipe, corpus, out, "--seeds", "5"), "--launcher", *options]
    done = subprocess.run([sys.executable, "-m", "elman", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # a process of its own: launchers close files of the one they are in
    (run,) = (path for path in out.glob("runs/*") if path.is_dir())
    plain = ["train", str(recipe), "--data", str(corpus), "--set", "seed=5", "--threads", "1"]
    assert main([*plain, "--out", str(tmp_path / "plain")]) == 0
    assert digest(run) == digest(tmp_path / "plain")
    assert config.load_recipe(run / "recipe.toml").seed == 5
