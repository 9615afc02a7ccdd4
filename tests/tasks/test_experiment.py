"""The whole machine: train, stop, resume, evaluate."""

import errno
import itertools
import json
import os
import shutil
import signal
import time
from types import SimpleNamespace

import msgspec
import pytest
import torch

from elman import config, files
from elman.cli import main
from elman.errors import UserError
from elman.evaluation.result import Result
from elman.jobs.locks import FolderLock
from elman.learning import checkpoint
from elman.learning.trainer import StopReason
from elman.tasks import estimate as costs
from elman.tasks.estimate import estimate
from elman.tasks.experiment import Experiment, build
from elman.tasks.plan import Plan
from elman.tasks.task import Task
from elman.tasks.text.run import TextRun
from support import text_runs
from support.interruption import StopAt, begun, ended

NT_ASGD = {
    "epochs": 4,
    "optimiser": {"kind": "sgd", "lr": 2.0},
    "averaging": {"kind": "non-monotone", "interval": 1},
    "weight_decay": 1e-6,
    "validate_every": 13,
    "fine_tune": {"lr": 1.0, "epochs": 2, "interval": 2},
}
LEARNERS = {
    "adam": {"schedule": {"kind": "cosine", "warm_up": 0.5}},
    "nt-asgd": NT_ASGD,
    "rmsprop": {
        "optimiser": {"kind": "rmsprop", "lr": 0.01},
        "averaging": {"kind": "exponential", "decay": 0.9, "compensated": True},
        "schedule": {"kind": "plateau", "factor": 2.0},
    },
    "momentum": {"optimiser": {"kind": "sgd", "lr": 1.0, "momentum": 0.9}, "slices": 2, "clip_by": "tensor"},
    "muon": {"optimiser": {"kind": "muon", "lr": 0.02, "adam_lr": 0.01}},
}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return text_runs.write_corpus(tmp_path_factory.mktemp("corpus"))


def trained(recipe, out, corpus, stops=()):
    """Train with interruptions at some steps; the run folder."""
    for resume, stop in enumerate([*stops, None]):
        experiment = Experiment(recipe, out, data=corpus, resume=bool(resume))
        outcome = experiment.train([] if stop is None else [StopAt(stop)])
        assert outcome is (StopReason.FINISHED if stop is None else StopReason.INTERRUPTED)
    return out


@pytest.fixture(scope="module")
def plain(tmp_path_factory, corpus):
    """A run of the recipe as it is, which no test changes."""
    return trained(text_runs.recipe(), tmp_path_factory.mktemp("runs") / "plain", corpus)


@pytest.mark.slow
def test_a_second_training_in_one_folder_is_refused(tmp_path, corpus):
    first, second = (Experiment(text_runs.recipe(epochs=1), tmp_path / "run", data=corpus) for _ in range(2))
    with FolderLock(tmp_path / "run"), pytest.raises(UserError, match="is in use"):
        first.train()
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
    first.train()
    with pytest.raises(UserError, match="already holds a run; add --resume"):
        second.train()


@pytest.mark.slow
def test_a_lost_recipe_is_restored_and_nothing_is_replaced(tmp_path, corpus, plain, capsys):
    out = tmp_path / "run"
    trained(text_runs.recipe(), out, corpus)
    kept = {path.name: path.read_bytes() for path in out.iterdir() if path.name != "recipe.toml"}
    recipe = config.load_recipe(out / "recipe.toml")
    for lost in (["recipe.toml"], ["recipe.toml", "checkpoint.safetensors"]):
        for name in lost:
            (out / name).unlink()
        with pytest.raises(UserError, match=r"safetensors of a run whose recipe.toml is missing; add --resume"):
            Experiment(text_runs.recipe(), out, data=corpus)
        plan = Plan.resume(None, out)
        assert config.decisive(plan.recipe) == config.decisive(recipe)
        assert plan.source == str(corpus)
        assert "recipe.toml was missing; restored from" in capsys.readouterr().err
        assert {name: (out / name).read_bytes() for name in kept if name not in lost} == {
            name: body for name, body in kept.items() if name not in lost
        }


def test_a_folder_with_files_of_others_is_never_trained_in(tmp_path, corpus):
    for name in ("data.json", "metrics.jsonl", "results.json", "report.html", "notes.txt"):
        out = tmp_path / name.partition(".")[0]
        out.mkdir()
        (out / name).write_text("mine")
        with pytest.raises(UserError, match=f"holds other files .{name}., which could be replaced"):
            Experiment(text_runs.recipe(), out, data=corpus)
        with pytest.raises(UserError, match=f"holds other files .{name}., which could be replaced"):
            Experiment(None, out, data=corpus)
        assert (out / name).read_text() == "mine"
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / ".lock").touch()
    (begun / "data.json").write_text("{}")  # killed before the recipe was written
    Experiment(text_runs.recipe(), begun, data=corpus)


def test_equal_weights_are_equal_files(tmp_path):
    tensors = {"b": torch.ones(2, 3), "a": torch.zeros(3, dtype=torch.int64)}
    for number in range(8):
        checkpoint.save(tmp_path / str(number), tensors, {"a name": 'é\n\t\x7f\x01"\\', "recipe": {"x": 1}})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    found, facts = checkpoint.load(tmp_path / "0")
    assert torch.equal(found["b"], tensors["b"])
    assert facts["a name"] == 'é\n\t\x7f\x01"\\'


def same_tensors(a, b):
    return checkpoint.digest_of(checkpoint.load(a)[0]) == checkpoint.digest_of(checkpoint.load(b)[0])


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_interrupted_run_is_the_same_run_bit_for_bit(learner, corpus, tmp_path):
    recipe = text_runs.recipe(**LEARNERS[learner])
    whole = trained(recipe, tmp_path / "whole", corpus)
    broken = trained(recipe, tmp_path / "broken", corpus, stops=[7, 31, 50])
    for name in ("checkpoint.safetensors", "model.safetensors"):
        assert same_tensors(whole / name, broken / name)
    assert text_runs.metrics(whole) == text_runs.metrics(broken)


@pytest.mark.slow
def test_a_run_in_bf16_is_resumed_bit_for_bit_and_auto_is_settled_once(corpus, plain, tmp_path, monkeypatch, capsys):
    for least in ("LEAST_MULTIPLY_ADDS", "LEAST_ROWS"):
        monkeypatch.setattr(f"elman.network.fast.policy.{least}", 0)
    monkeypatch.setattr("elman.network.fast.preference.automatic", lambda _: "bf16")
    whole = trained(text_runs.recipe(precision="bf16"), tmp_path / "whole", corpus)
    capsys.readouterr()
    broken = trained(text_runs.recipe(precision="auto"), tmp_path / "broken", corpus, stops=[7])
    assert capsys.readouterr().err.count("training.precision = auto: bf16") == 1
    assert config.load_recipe(broken / "recipe.toml").training.precision == "bf16"
    for name in ("checkpoint.safetensors", "model.safetensors"):
        assert same_tensors(whole / name, broken / name)
        assert not same_tensors(whole / name, plain / name)
    with pytest.raises(UserError, match=r"training\.precision differ"):
        Experiment(text_runs.recipe(), whole, data=corpus, resume=True)


@pytest.mark.slow
def test_losses_may_be_read_now_and_then(corpus, plain, tmp_path, monkeypatch):
    """As on a GPU, which is not asked at every step: the same run, records and all, interrupted or not."""
    monkeypatch.setattr("elman.learning.folder.STEPS_BETWEEN_READINGS", {"cpu": 7})
    seldom = trained(text_runs.recipe(), tmp_path / "seldom", corpus, stops=[15])
    assert same_tensors(plain / "checkpoint.safetensors", seldom / "checkpoint.safetensors")
    assert text_runs.metrics(plain) == text_runs.metrics(seldom)


@pytest.mark.slow
def test_nt_asgd_averages_and_fine_tunes(corpus, tmp_path):
    out = trained(text_runs.recipe(**NT_ASGD), tmp_path / "run", corpus)
    events = [record["event"] for record in text_runs.metrics(out) if record["kind"] == "event"]
    assert events[0] == "averaging"
    assert "fine-tune" in events
    assert any(record["averaged"] for record in text_runs.metrics(out) if record["kind"] == "valid")


@pytest.mark.slow
def test_out_of_time_keeps_the_best_so_far_and_resumes_exactly(corpus, plain, tmp_path):
    recipe = text_runs.recipe()
    out = tmp_path / "short"
    experiment = Experiment(recipe, out, data=corpus)
    assert experiment.train(max_minutes=0) is StopReason.OUT_OF_TIME
    assert TextRun(out).model is not None
    trained_on = Experiment(recipe, out, data=corpus, resume=True)
    assert trained_on.train() is StopReason.FINISHED
    assert same_tensors(plain / "model.safetensors", out / "model.safetensors")


@pytest.mark.slow
def test_resuming_a_finished_run_changes_nothing(corpus, plain, tmp_path):
    out = shutil.copytree(plain, tmp_path / "run")
    before = checkpoint.load(out / "checkpoint.safetensors")[0]
    assert Experiment(text_runs.recipe(), out, data=corpus, resume=True).train() is StopReason.FINISHED
    assert checkpoint.digest_of(before) == checkpoint.digest_of(checkpoint.load(out / "checkpoint.safetensors")[0])


@pytest.mark.slow
def test_sigkill_at_any_moment_is_survived(corpus, tmp_path):
    recipe = text_runs.recipe(epochs=4, checkpoint_minutes=0)
    whole = trained(recipe, tmp_path / "whole", corpus)
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(recipe))
    out = tmp_path / "killed"
    command = ["train", tmp_path / "recipe.toml", "--data", corpus, "--out", out, "--threads", 1]
    for resume in ([], ["--resume"]):
        words = [str(word) for word in (*command, *resume)]
        child = begun(lambda words=words: main(words))
        wait_for_steps(out, steps_done(out) + 20)
        os.kill(child, signal.SIGKILL)
        ended(child)
    trained_on = Experiment(recipe, out, data=corpus, resume=True)
    assert trained_on.train() is StopReason.FINISHED
    assert same_tensors(whole / "model.safetensors", out / "model.safetensors")
    assert same_tensors(whole / "checkpoint.safetensors", out / "checkpoint.safetensors")


def steps_done(out):
    try:
        return checkpoint.load(out / "checkpoint.safetensors")[1]["progress"]["step"]
    except UserError:
        return 0


def wait_for_steps(out, steps, seconds=60):
    deadline = time.monotonic() + seconds
    while steps_done(out) < steps and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
def test_two_runs_with_one_seed_are_equal_and_another_seed_differs(corpus, plain, tmp_path):
    b = trained(text_runs.recipe(), tmp_path / "b", corpus)
    other = text_runs.recipe()
    other = config.parse_recipe({**_plain(other), "seed": 4}, "toy")
    c = trained(other, tmp_path / "c", corpus)
    assert same_tensors(plain / "model.safetensors", b / "model.safetensors")
    assert not same_tensors(plain / "model.safetensors", c / "model.safetensors")


def _plain(recipe):
    import msgspec

    return msgspec.to_builtins(recipe, str_keys=True)


def test_diverging_run_stops_with_advice_and_keeps_the_checkpoint(corpus, tmp_path):
    recipe = text_runs.recipe(optimiser={"kind": "sgd", "lr": 1e39}, clip=None)
    message = r"the loss is not finite at step \d+ .*gradient norm.*lower training.optimiser.lr"
    with pytest.raises(UserError, match=message):
        Experiment(recipe, tmp_path / "run", data=corpus).train()


@pytest.mark.slow
def test_full_disk_keeps_the_previous_checkpoint(corpus, tmp_path, monkeypatch):
    out = tmp_path / "run"
    assert Experiment(text_runs.recipe(), out, data=corpus).train([StopAt(5)]) is StopReason.INTERRUPTED
    before = (out / "checkpoint.safetensors").read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    message = "the disk is full; the previous file, if any, is untouched; free some space and continue with --resume"
    with pytest.raises(UserError, match=message):
        Experiment(text_runs.recipe(), out, data=corpus, resume=True).train()
    assert (out / "checkpoint.safetensors").read_bytes() == before
    assert not list(out.glob("*.tmp"))
    assert not list(out.glob(".*.tmp"))


@pytest.mark.slow
def test_finish_counts_every_token_once_and_writes_what_a_report_needs(corpus, tmp_path):
    out = tmp_path / "run"
    experiment = Experiment(text_runs.recipe(), out, data=corpus)
    experiment.train()
    results = experiment.finish()
    assert [row.tokens for row in results] == [len(experiment.task.corpus.split(s).tokens) for s in ("valid", "test")]
    assert experiment.baselines()[0].name == "unigram"
    for name in ("results", "samples", "surprisal", "baselines", "data", "environment"):
        assert json.loads((out / f"{name}.json").read_text())


@pytest.mark.slow
def test_learns_the_chain_better_than_a_unigram(corpus, tmp_path):
    out = tmp_path / "run"
    experiment = Experiment(text_runs.recipe(epochs=12), out, data=corpus)
    experiment.train()
    unigram = experiment.baselines(order=1, splits=("test",))[0]
    assert experiment.finish()[1].perplexity < 0.8 * unigram.perplexity


@pytest.mark.slow
def test_init_maps_words_by_spelling(plain, tmp_path):
    other = text_runs.write_corpus(tmp_path / "other", {"train": 100, "valid": 20, "test": 20})
    (other / "train.txt").write_text("brand new words\n" + (other / "train.txt").read_text())
    experiment = Experiment(text_runs.recipe(), tmp_path / "second", data=other, init=plain)
    ours, theirs = experiment.model.encoder.weight, TextRun(plain).model.encoder.weight
    here, there = experiment.task.corpus.vocabulary.ids, TextRun(plain).vocabulary.ids
    assert here["w3"] != there["w3"]
    assert ours[here["w3"]].equal(theirs[there["w3"]])


@pytest.mark.slow
def test_the_words_of_the_run_to_start_from_stay_in_the_vocabulary(plain, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for name in ("train", "valid", "test"):
        (other / f"{name}.txt").write_text("brand new words of w3\n" * 40)
    recipe = text_runs.recipe(epochs=1)
    recipe = msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, vocabulary_from="init"))
    with pytest.raises(UserError, match=r'data\.vocabulary_from = "init" .* give that run with --init'):
        Experiment(recipe, tmp_path / "none", data=other)
    whole, known = tmp_path / "whole", TextRun(plain).vocabulary
    experiment = Experiment(recipe, whole, data=other, init=plain)
    words = experiment.task.corpus.vocabulary
    assert {*words.words} == {*known.words, "brand", "new", "words", "of"}
    assert words.counts[words.ids["w5"]] == 0
    ours, theirs = experiment.model.encoder.weight, TextRun(plain).model.encoder.weight
    for word in known.words:
        assert ours[words.ids[word]].equal(theirs[known.ids[word]])
    experiment.train()
    stopped = tmp_path / "stopped"
    experiment = Experiment(recipe, stopped, data=other, init=plain)
    assert experiment.train([StopAt(3)]) is StopReason.INTERRUPTED
    Experiment(None, stopped, resume=True).train()
    assert (stopped / "vocabulary.tsv").read_bytes() == (whole / "vocabulary.tsv").read_bytes()
    assert (stopped / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_command_line_from_training_to_scoring(corpus, tmp_path, capsys):
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    out = tmp_path / "run"
    assert main(["train", f"{tmp_path}/recipe.toml", "--data", str(corpus), "--out", str(out), "--json"]) == 0
    trained_results = json.loads(capsys.readouterr().out.splitlines()[-1])["results"]
    assert main(["evaluate", str(out), "--split", "test", "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["nll"] == pytest.approx(trained_results[1]["nll"], rel=1e-6)
    assert main(["score", str(out), str(corpus / "test.txt"), "--document", "--by", "sentence", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert -sum(row["log_prob"] for row in rows) / evaluated["tokens"] == pytest.approx(evaluated["nll"], rel=1e-4)
    state = tmp_path / "state.safetensors"
    assert main(["generate", str(out), "--tokens", "12", "--seed", "5", "--raw"]) == 0
    at_once = capsys.readouterr().out.split()
    assert main(["generate", str(out), "--tokens", "5", "--temperature", "0", "--save-state", str(state)]) == 0
    assert main(["generate", str(out), "--tokens", "5", "--temperature", "0", "--state", str(state)]) == 0
    in_parts = capsys.readouterr().out.split()
    assert main(["generate", str(out), "--tokens", "10", "--temperature", "0"]) == 0
    assert capsys.readouterr().out.split() == in_parts
    assert at_once
    assert main(["info", str(out), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert sum(info["blocks"].values()) == info["parameters"]
    assert main(["compare", str(out), str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["difference"] == 0
    assert main(["evaluate", str(out), str(out), "--ensemble", "--mix", "3-gram=0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["perplexity"] > 1


SMALL = [
    "training.epochs=1",
    "training.batch_size=4",
    "training.window.length=10",
    "model.encoder.size=8",
    "model.core.sizes=[8,8]",
    "model.output.contexts.size=8",
    "data.min_count=1",
]


@pytest.mark.slow
def test_demo_prints_baselines_and_samples_and_can_be_run_again(corpus, tmp_path, capsys):
    out = tmp_path / "demo"
    settings = [part for setting in SMALL for part in ("--set", setting)]
    arguments = ["demo", "--data", str(corpus), "--out", str(out), *settings]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    for expected in (
        "unigram",
        "Kneser-Ney 5-gram",
        "this model",
        f"report: {out}/report.html",
        "use it: elman generate",
    ):
        assert expected in first
    assert (out / "report.html").stat().st_size > 10_000
    assert main(arguments) == 0
    assert capsys.readouterr().out == first


def test_dry_run_tells_the_cost_and_begins_no_run(corpus, tmp_path, capsys):
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    out = tmp_path / "run"
    command = ["train", f"{tmp_path}/recipe.toml", "--data", str(corpus), "--out", str(out), "--dry-run", "--json"]
    assert main(command) == 0
    cost = json.loads(capsys.readouterr().out)
    assert cost["parameters"] == sum(
        p.numel() for p in Experiment(text_runs.recipe(), out, data=corpus).model.parameters()
    )
    assert cost["minutes"] == pytest.approx(cost["minutes_per_epoch"] * 2)
    assert not out.exists()


def test_the_cost_by_value(corpus, monkeypatch):
    """Each step takes a second: an epoch takes as many as it has steps, and a second reads what a window counts."""
    monkeypatch.setattr(costs, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    recipe = text_runs.recipe(fine_tune={"lr": 1.0, "epochs": 3})
    task = build(Plan.trial(recipe, corpus, torch.device("cpu"))).task
    spans, steps = task.steps(task.windows(recipe.training.window.max_extra).spans(0))
    cost = estimate(recipe, corpus, torch.device("cpu"))
    assert (cost["title"], cost["epochs"]) == (recipe.title, 2 + 3)
    assert cost["minutes_per_epoch"] == pytest.approx(steps / 60)
    assert cost["minutes"] == pytest.approx(5 * steps / 60)
    counted = [recipe.training.batch_size * spans[index % len(spans)].length for index in range(1, costs.STEPS + 1)]
    assert cost["tokens_per_s"] == pytest.approx(sum(counted) / len(counted))
    a_step = 2 * sum(counted) / len(counted) / 4 * 55e-6 + 6 * cost["parameters"] * sum(counted) / len(counted) / 1e14
    assert cost["gpu_minutes"] == pytest.approx(5 * steps * a_step / 60)


@pytest.mark.parametrize("alike", [True, False])
def test_a_busy_moment_does_not_count(corpus, monkeypatch, alike):
    """Of steps that take as long as they have tokens most take four times as long, as beside another process."""
    clock, taken = [0.0], itertools.count()

    def timed(recipe, *args):
        parts = build(recipe, *args)

        def update(batch, lr):
            loss = parts.update(batch, lr)
            clock[0] += int(loss.num_counted) * (1 if 11 <= next(taken) <= 35 else 4) / 4000
            return loss

        return parts._replace(update=update)

    monkeypatch.setattr(costs, "build", timed)
    monkeypatch.setattr(costs, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    if not alike:  # as batches of pairs and trees are
        monkeypatch.setattr("elman.tasks.text.task.TextTask.steps", lambda self, spans: (spans, 1))
    recipe = text_runs.recipe()
    seconds = 40 * recipe.training.batch_size * recipe.training.window.length / 1000
    cost = estimate(recipe, corpus, torch.device("cpu"), least_seconds=seconds)
    assert next(taken) > 30
    assert cost["tokens_per_s"] == pytest.approx(4000)


@pytest.mark.parametrize("fine_tune", [None, {"lr": 1.0, "epochs": 3}])
def test_a_dry_run_counts_the_branches_of_a_prediction(corpus, fine_tune):
    """3/32 more steps in the main phase, of two epochs, by the tokens per second of the same timing."""
    recipes = [text_runs.recipe(predict_loss=one, fine_tune=fine_tune) for one in (False, True)]
    plain, predicting = (estimate(recipe, corpus, torch.device("cpu")) for recipe in recipes)
    tokens = [one["minutes_per_epoch"] * one["tokens_per_s"] for one in (plain, predicting)]
    assert tokens[1] == pytest.approx(tokens[0] * (1 + 3 / 32))
    whole, epochs = predicting["minutes"] * (1 + 3 / 32) / predicting["minutes_per_epoch"], predicting["epochs"]
    assert whole == pytest.approx(epochs + 2 * 3 / 32)


@pytest.mark.slow
def test_stop_by_time_says_how_to_go_on(corpus, tmp_path, capsys):
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    out = tmp_path / "run"
    assert (
        main(["train", f"{tmp_path}/recipe.toml", "--data", str(corpus), "--out", str(out), "--max-minutes", "0"]) == 0
    )
    captured = capsys.readouterr()
    assert f"the time is over; continue with: elman train --resume --out {out}" in captured.err
    assert main(["train", "--resume", "--out", str(out)]) == 0


@pytest.mark.slow
def test_a_run_finds_its_text_from_any_folder(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(corpus.parent)
    Experiment(text_runs.recipe(epochs=1), tmp_path / "run", data=corpus.name).train()
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == 200


@pytest.mark.parametrize(
    ("figure", "own", "others", "best"),
    [
        ("nll", 3.0, [3.5, 2.5, 2.7], 2.5),
        ("nll", 3.0, [3.0], 3.0),
        ("nll", 3.0, [3.1, 4.0], None),
        ("nll", 0.5, [0.6], None),
        ("accuracy", 60.0, [50.0, 65.0], 65.0),
        ("accuracy", 60.0, [59.0, 10.0], None),
        ("nrmse", 0.5, [0.4, 0.6], 0.4),
        ("nrmse", 0.5, [], None),
    ],
)
def test_a_baseline_that_is_not_exceeded_is_remarked_on(figure, own, others, best):
    """By the measure of the kind of data; figures of other splits do not count."""

    def row(name, split, value):
        measures = {} if figure == "nll" else {figure: value}
        nll = value if figure == "nll" else 9.0
        return Result(name=name, split=split, tokens=10, nll=nll, perplexity=1.0, measures=measures)

    baselines = [row(f"base {value:g}", "valid", value) for value in others]
    baselines += [row("elsewhere", "test", 100.0 if figure == "accuracy" else 0.0)]
    methods = dict.fromkeys(Task.__abstractmethods__, lambda self: None)
    kind = type("Kind", (Task,), methods | {"judged": (figure,)})()
    said = kind.remark([row("own", "test", 0.0), row("own", "valid", own)], baselines)
    if best is None:
        assert said is None
    else:
        assert said.startswith(
            f"no better than the baseline base {best:g} on the valid split ({figure} {own:.4g}, there"
        )
    assert kind.remark([row("own", "test", own)], baselines) is None
