"""What a person may get wrong: files, kinds, numbers, names, paths; each gets one line with the cure, and status 2."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.learning import checkpoint
from elman.tasks.experiment import Experiment
from support import text_runs
from support.commands import refusal

REMOVED = "removed"
DEEP = "[" * 20_000
LONG = "1" * 5000

WITHOUT_A_RUN = {
    "train {tmp}/nope.toml": ("no such recipe", "elman recipes"),
    "train recipes/ptb/awd-lst.toml": ("did you mean recipes/ptb/awd-lstm.toml",),
    "train {tmp}/broken.toml": ("broken.toml", "not a readable TOML recipe"),
    "train {tmp}/nested.toml": ("nested.toml", "nested more than"),
    "train {tmp}/long.toml": ("long.toml", "digits"),
    "train {tmp}/bits.toml": ("bits.toml", "at most 64"),
    "train {tmp}/circle.toml": ("cannot be its own base",),
    "train {tmp}/latin.toml": ("latin.toml", "utf-8"),
    "train {recipe} --set training.epoch=3": ("did you mean epochs",),
    "train {recipe} --set training.optimiser.lr=0,01": ("lr = ", "such as 0.01"),
    "train {recipe} --set training.optimiser.lr=inf": ("lr = inf", "finite"),
    "train {recipe} --set training.optimiser.lr=1e400": ("lr = inf", "finite"),
    "train {recipe} --set training.clip=inf": ("clip = inf", "leave the key out"),
    "train {recipe} --set training.penalties.ar=nan": ("ar = nan", "0 or more"),
    "train {recipe} --set training.slices=8": ("slices = 8", "batch_size"),
    "train {recipe} --set training.epochs=0": ("epochs = 0", "1 or more"),
    "train {recipe} --set training.epochs=1.5": ("epochs = 1.5", "whole number"),
    "train {recipe} --set training.optimiser.kind=adamw": ("adamw", '"adam"'),
    "train {recipe} --set training=3": ("training = 3", "a table"),
    "train {recipe} --set title=2020-01-01": ("title", "quotes"),
    "train {recipe} --set epochs": ("--set epochs", "key.path=value"),
    "train {recipe} --set =": ("--set =", "key.path=value"),
    "train {recipe} --set seed=-1": ("seed = -1", "0 or more"),
    'train {recipe} --set model.core.cell={{kind="highway",depth=100000}}': ("depth = 100000", "up to 1000"),
    "train {recipe} --set data.subwords.size=1000000000": ("size = 1000000000", "up to"),
    "train {recipe} --set training.window.length={deep}": ("--set training.window.length", "nested more than"),
    "train {recipe} --set training.clip={long}": ("--set training.clip", "digits"),
    "train {recipe} --seed 18446744073709551616": ("--seed", "64 bits"),
    "train {recipe} --max-minutes nan": ("--max-minutes", "finite"),
    "train {recipe} --max-minutes -1": ("--max-minutes", "0 or more"),
    "train {recipe} --threads 1,5": ("--threads", "whole number"),
    "generate {tmp} --seed -9223372036854775809": ("--seed", "64 bits"),
    "generate {tmp} --temperature 1e-300": ("--temperature", "or 0"),
    "generate {tmp}": ("not a run folder", "elman train --out"),
    "info {tmp}/nope": ("nope is not a run folder", "elman train --out"),
    "report {tmp}/broken.toml": ("not a run folder", "elman train --out"),
    "data prepare pennn": ("pennn", "there are"),
    "data prepare text9": ("did you mean text8",),
    "data info wikitext": ("did you mean wikitext-2",),
    "data trees {tmp}/nope {tmp}/out.tsv": ("nope", "give a text file"),
    "data trees {tmp} {tmp}/out.tsv": ("cannot be read", "give a text file"),
    "grammar generate elman-1990": ("elman-1990", "elman-1991"),
    "metrics {tmp}/nope {tmp}/nope": ("nope", "give a text file"),
    "recipes extra": ("extra", "no recipe has extra"),
    "reports {tmp}": ("did you mean report",),
}
"""Commands that end before a model is read, and words that their one line has."""

WITH_A_RUN = {
    "evaluate {run} --device mps": ("--device mps", "--device cpu"),
    "evaluate {run} --device xpu": ("--device xpu", "--device cpu"),
    "evaluate {run} --device cpu:3": ("--device cpu:3", "cpu:0"),
    "evaluate {run} --device meta": ("--device meta", "auto"),
    "evaluate {run} --split dev": ("no dev split", "valid"),
    "evaluate {run} --data {tmp}": ("no split", "train.txt"),
    "evaluate {run} --data shakespear": ("shakespear", "elman data list"),
    "compose {run} --out {tmp}/a.mid": ("a run on text", "elman generate"),
    "forecast {run}": ("a run on text", "elman generate"),
    "translate {run} --source {recipe}": ("a run on text", "elman generate"),
    "generate {run} --state {run}/model.safetensors": ("model.safetensors", "state of another model"),
    "generate {run} --state {tmp}/nope": ("no such state file", "--save-state"),
    "score {run} {tmp}": ("cannot be read", "give a text file"),
    "score {run} {run}/model.safetensors": ("not UTF-8", "give a text file"),
    "rescore {run} {tmp}": ("cannot be read", "give a text file"),
    "embed {run} {recipe} --out {tmp}/a.xyz": ("--out", ".npz"),
    "embed {run} {recipe} --out {tmp}": ("is a folder", "a file"),
    "embed {run} {recipe} --out {tmp}/a.npz --layers 9": ("--layers", "0 to 2"),
    "analyze neighbours {run} zzz": ("zzz", "vocabulary"),
    "minimal-pairs {run} --pairs {tmp}/nope": ("nope", "give a file of minimal pairs"),
    "report {run} --out {tmp}": ("is a folder", "--out"),
    "score {run} {tmp}/nope --out {tmp}": ("--out", "is a folder; give the name of a file"),
    "generate {run} --out {tmp}": ("--out", "is a folder; give the name of a file"),
    "generate {run} --save-state {tmp}": ("--save-state", "is a folder; give the name of a file"),
    "minimal-pairs {run} --pairs {tmp}/nope --items {tmp}": ("--items", "is a folder; give the name of a file"),
    "ngram train {tmp}/nope --out {tmp}": ("--out", "is a folder; give the name of a file"),
    "train {recipe} --data {data} --out {run}": ("already holds a run", "--resume"),
    "train {recipe} --data {data} --out {recipe}": ("is a file", "choose a folder"),
    "train {recipe} --data {data} --out {tmp}/{name}": ("File name too long", "shorter"),
    "train {recipe} --data {data} --out {tmp}/new --init {tmp}": ("not a run folder", "elman train --out"),
    "train {recipe} --data {tmp}/nope --out {tmp}/new": ("nope", "elman data list"),
    "train {recipe} --data {data} --out {tmp}/new --set model.core.sizes=[1000000000,8]": (
        "model.core.sizes = [1000000000, 8]",
        "bytes",
        "smaller",
    ),
    "train {recipe} --data {data} --out {tmp}/new --set model.encoder.size=1000000000000": (
        "model.encoder.size",
        "bytes",
    ),
    "train {recipe} --data {data} --out {tmp}/new --set training.window.length=9223372036854775807": (
        "too few",
        "lower",
    ),
}
"""Commands that open a run or data."""


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A trained run, its recipe and data, and recipes that are damaged."""
    folder = tmp_path_factory.mktemp("places")
    data = text_runs.write_corpus(folder / "data")
    recipe = text_runs.recipe(epochs=1)
    (folder / "recipe.toml").write_text(config.dump_recipe(recipe))
    Experiment(recipe, folder / "run", data=data).train()
    damaged = folder / "damaged"
    damaged.mkdir()
    (damaged / "broken.toml").write_text("title")
    (damaged / "nested.toml").write_text(f"title = {DEEP}")
    (damaged / "long.toml").write_text(f"title = {LONG}")
    (damaged / "bits.toml").write_text(f"seed = {2**64}")
    (damaged / "circle.toml").write_text('base = "circle.toml"')
    (damaged / "latin.toml").write_bytes('title = "é"'.encode("latin-1"))
    plain = {"tmp": damaged, "recipe": folder / "recipe.toml", "run": folder / "run", "data": data}
    return {**{name: str(path) for name, path in plain.items()}, "deep": DEEP, "long": LONG, "name": "a" * 300}


@pytest.mark.parametrize("command", [*WITHOUT_A_RUN, *WITH_A_RUN])
def test_a_wrong_input_gets_one_line_with_its_cure(capsys, places, command):
    line = refusal(capsys, *(word.format(**places) for word in command.split()))
    assert line.startswith("elman: ")
    assert len(line) <= 1100
    for word in {**WITHOUT_A_RUN, **WITH_A_RUN}[command]:
        assert word in line
    assert not Path(places["tmp"], "new").exists()


@pytest.fixture
def run(places, tmp_path):
    """A copy of the run, to be damaged."""
    return shutil.copytree(places["run"], tmp_path / "run")


def resumed(capsys, run):
    """The last line of a resumption that is refused; the lines before it describe the run."""
    assert main(["train", "--resume", "--out", str(run)]) == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_a_model_in_the_place_of_a_checkpoint_and_the_reverse(capsys, run):
    model, last = run / "model.safetensors", run / "checkpoint.safetensors"
    saved = model.read_bytes()
    model.write_bytes(last.read_bytes())
    assert "model.safetensors" in refusal(capsys, "evaluate", run)
    model.write_bytes(saved)
    last.write_bytes(saved)
    assert "checkpoint.safetensors" in resumed(capsys, run)
    assert "checkpoint.safetensors" in refusal(capsys, "info", run)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors, facts: (tensors, None), "its header"),
        (lambda tensors, facts: (tensors, [1]), "its header"),
        (lambda tensors, facts: (tensors, {**facts, "vocabulary": None}), "without vocabulary"),
        (lambda tensors, facts: (tensors, {**facts, "step": "x"}), "header"),
        (lambda tensors, facts: ({name: one.double() for name, one in tensors.items()}, facts), "float64"),
        (lambda tensors, facts: ({name: one * float("nan") for name, one in tensors.items()}, facts), "not finite"),
        (lambda tensors, facts: (dict(list(tensors.items())[1:]), facts), "missing"),
    ],
)
def test_a_forged_model_with_a_valid_digest(capsys, run, change, words):
    path = run / "model.safetensors"
    checkpoint.save(path, *change(*checkpoint.load(path)))
    for command in ("evaluate", "info"):
        line = refusal(capsys, command, run)
        assert str(path) in line
        assert words in line


@pytest.mark.parametrize(
    ("name", "progress"),
    [
        ("optimiser/step/0", {}),
        ("random/cpu", {}),
        ("", {"phase": 7}),
        ("", {"step": "x"}),
        ("", {"finished": REMOVED}),
    ],
)
def test_a_forged_checkpoint_with_a_valid_digest(capsys, run, name, progress):
    path = run / "checkpoint.safetensors"
    tensors, facts = checkpoint.load(path)
    tensors.pop(name, None)
    told = {key: value for key, value in {**facts["progress"], **progress}.items() if value != REMOVED}
    checkpoint.save(path, tensors, {**facts, "progress": told})
    before = (run / "metrics.jsonl").read_bytes()
    assert str(path) in resumed(capsys, run)
    assert (run / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("line", ["5", "null", DEEP, LONG, '{"kind": 5}', '{"kind": "train", "step": "x"}'])
def test_a_damaged_line_of_metrics(capsys, run, line):
    path = run / "metrics.jsonl"
    path.write_text(f"{line}\n{path.read_text()}")
    if line == "null":
        assert main(["report", str(run)]) == 0
        return
    found = refusal(capsys, "report", run)
    assert f"{path}, line 1" in found
    assert "remove the line" in found


@pytest.mark.parametrize("file", ["data.json", "results.json", "samples.json", "surprisal.json", "environment.json"])
def test_damaged_facts_of_a_run(capsys, run, file):
    for content in ("5", DEEP, f'{{"a": {LONG}}}', '{"a": NaN}'):
        (run / file).write_text(content)
        status = main(["report", str(run)])
        lines = capsys.readouterr().err.strip().splitlines()
        assert status == 0 or (status == 2 and len(lines) == 1 and str(run / file) in lines[0]), content


def test_a_count_of_400_digits(capsys, run):
    path = run / "vocabulary.tsv"
    path.write_text(path.read_text().replace("\t", "\t" + "9" * 400, 1))
    for command in ("evaluate", "report"):
        assert f"{path}:1" in refusal(capsys, command, run)


@pytest.mark.slow
def test_titles_and_paths_are_shown_as_they_are(capsys, places, tmp_path):
    out = tmp_path / "[b]run[/b]"
    title = 'title="a [/b] :smile: [red]c"'
    command = ["train", places["recipe"], "--data", places["data"], "--out", str(out), "--set", title]
    assert main([*command, "--max-minutes", "0"]) == 0
    shown = capsys.readouterr()
    assert "a [/b] :smile: [red]c: " in shown.err
    assert f"elman train --resume --out {out}" in shown.err.replace("'", "")
    assert "a [/b] :smile: [red]c" in shown.out


def test_a_line_break_in_a_path_stays_one_line(capsys):
    assert "a\\nb is not a run folder" in refusal(capsys, "info", "a\nb")


def test_more_threads_than_cores(capsys, run, monkeypatch):
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    assert main(["generate", str(run), "--tokens", "1", "--threads", "100000"]) == 0
    assert capsys.readouterr().err.startswith("elman: --threads 100000: the machine has ")


class Full:
    """An output whose disk is full."""

    def write(self, text):
        raise OSError(28, "No space left on device")

    def flush(self):
        self.write("")

    def isatty(self):
        return False

    def fileno(self):
        raise OSError(9, "Bad file descriptor")


def test_an_output_that_is_full(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["data", "list"]) == 2
    monkeypatch.undo()
    line = capsys.readouterr().err
    assert "No space left on device" in line
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 800 bytes"),
        RuntimeError("could not create a primitive"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_cannot_be_had(capsys, run, monkeypatch, error):
    def evaluate(*_):
        raise error

    monkeypatch.setattr("elman.tasks.text.run.TextRun.evaluate", evaluate)
    assert "out of memory" in refusal(capsys, "evaluate", run)


@pytest.mark.parametrize("digest", [None, True, -1, 0.5, [], {}])
@pytest.mark.parametrize("key", ["digest", "source"])
def test_facts_of_data_of_another_type(capsys, run, tmp_path, key, digest):
    copy = shutil.copytree(run, tmp_path / "copy")
    path = copy / "data.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: digest}))
    for command in (["evaluate", copy], ["info", copy], ["compare", run, copy]):
        assert f"{path}: damaged (Expected `str" in refusal(capsys, *command)


def test_arrays_in_the_place_of_a_text(capsys, places, run, tmp_path):
    np.savez(tmp_path / "a.npz", np.arange(5))
    assert "not UTF-8" in refusal(capsys, "score", run, tmp_path / "a.npz")
    (tmp_path / "b.json").write_text(json.dumps({"a": 1}))
    assert "b.json" in refusal(capsys, "rescore", run, tmp_path / "b.json")


@pytest.mark.parametrize(
    "command",
    [
        "score RUN TEXT --out OUT",
        "score RUN TEXT --by word --html OUT",
        "score RUN TEXT --adapt --save-state OUT",
        "embed RUN TEXT --out OUT.npz",
        "generate RUN --save-state OUT",
        "generate RUN --out OUT",
        "analyze rank RUN --out OUT",
        "analyze outputs --out OUT",
        "report RUN --out OUT",
        "table RUN --out OUT",
        "minimal-pairs RUN --pairs TEXT --items OUT",
        "ngram train TEXT --out OUT",
        "export RUN --to onnx --out OUT",
        "models publish RUN --name tiny --licence MIT --out OUT",
        "models publish RUN --name tiny --licence MIT --out NEW --registry OUT",
        "train RECIPE --out OUT",
        "demo --out OUT",
        "sweep RECIPE --set training.clip=1,2 --out OUT",
        "lab compare --tasks parity --cells elman --out OUT",
        "reproduce rank-bound --out OUT",
        "reproduce summary --into OUT",
        "grammar generate elman-1991 --out OUT",
        "data programs OUT",
        "compose RUN --out OUT.mid",
        "tag RUN TEXT --out OUT",
        "parse RUN TEXT --vectors OUT",
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(command, capsys, tmp_path, monkeypatch):
    """Nothing but the place is looked at: no run, no text, no recipe is there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    line = refusal(capsys, *command.replace("OUT", "file/in/it").split())
    assert re.match(r"elman: .*file/in/it[.\w]*: cannot be written \(Not a directory\); choose another folder", line)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
