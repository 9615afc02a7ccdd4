"""Every mistake of a user gets one line on stderr, exit status 2, and nothing written."""

import errno
import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from elman import config
from elman.cli import main
from elman.learning import checkpoint
from elman.tasks.experiment import Experiment
from support import text_runs
from support.commands import refusal


@pytest.fixture(scope="module")
def trained(tmp_path_factory, corpus):
    out = tmp_path_factory.mktemp("runs") / "run"
    Experiment(text_runs.recipe(epochs=1), out, data=corpus).train()
    return out


@pytest.fixture
def run(trained, tmp_path):
    """A copy of a trained run, to be damaged."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    return path


def train(capsys, recipe, data, out, *more):
    return refusal(capsys, "train", recipe, "--data", data, "--out", out, *more)


def corpus_with(tmp_path, **splits):
    folder = text_runs.write_corpus(tmp_path / "damaged")
    for split, content in splits.items():
        if content is None:
            (folder / f"{split}.txt").unlink()
        else:
            (folder / f"{split}.txt").write_bytes(content)
    return folder


def test_an_empty_text_is_refused(capsys, recipe, tmp_path):
    data = corpus_with(tmp_path, train=b"")
    line = train(capsys, recipe, data, tmp_path / "out")
    assert line == f"elman: {data}/train.txt: the file is empty; give a text of at least two different words"
    assert not (tmp_path / "out").exists()


def test_not_utf8_names_the_byte(capsys, recipe, tmp_path):
    data = corpus_with(tmp_path, valid="abc é".encode("latin-1"))
    line = train(capsys, recipe, data, tmp_path / "out")
    assert line.startswith(f"elman: {data}/valid.txt: not UTF-8 at byte 4 (0xe9); it looks like ")


def test_a_text_of_blank_lines_is_refused(capsys, recipe, tmp_path):
    data = corpus_with(tmp_path, test=b"\n \n\n")
    line = train(capsys, recipe, data, tmp_path / "out")
    assert line == f"elman: {data}/test.txt: only blank lines; give a text of at least two different words"


def test_shorter_than_one_window(capsys, recipe, tmp_path):
    data = corpus_with(tmp_path, train=b"a b c\nd e f\n")
    line = train(capsys, recipe, data, tmp_path / "out", "--set", "data.vocabulary_from=all")
    assert line == (
        "elman: the training text has 8 tokens, too few for 4 columns of one window of 10 steps (44 tokens); use more"
        " text, or lower training.batch_size or training.window.length (of elman.fit: batch_size or bptt)"
    )
    assert not (tmp_path / "out").exists()


def test_one_token_vocabulary(capsys, recipe, tmp_path):
    data = corpus_with(tmp_path, train=b"a a a a\n" * 100)
    line = train(capsys, recipe, data, tmp_path / "out")
    assert line == (
        f"elman: {data}: the text has only the word 'a' besides <eos> and <unk>; a vocabulary needs two words or more"
    )


def test_missing_split(capsys, recipe, tmp_path):
    data = corpus_with(tmp_path, valid=None, test=None)
    line = train(capsys, recipe, data, tmp_path / "out")
    assert line.startswith(f"elman: {data}: no valid split; looked for valid.txt, or one file with 'valid'")


def test_no_such_data(capsys, recipe, tmp_path):
    line = train(capsys, recipe, tmp_path / "nowhere", tmp_path / "out")
    assert line.startswith(f"elman: {tmp_path}/nowhere: no such file or folder, and no known corpus has this name")


@pytest.mark.parametrize("command", ["evaluate", "generate", "info", "report"])
def test_not_a_run_folder(capsys, command, tmp_path):
    line = refusal(capsys, command, tmp_path)
    assert line.startswith(f"elman: {tmp_path} is not a run folder: it has no recipe.toml")


def test_a_truncated_model_is_refused(capsys, run):
    file = run / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    line = refusal(capsys, "evaluate", run)
    assert line.startswith(f"elman: {file}: truncated or not a model file (")
    assert line.endswith("restore it or train again")


def test_an_altered_model_is_refused(capsys, run):
    file = run / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    line = refusal(capsys, "evaluate", run)
    assert line == (
        f"elman: {file}: altered since it was written (its digest does not match); restore it or train again"
    )


def test_foreign_model(capsys, run):
    file = run / "model.safetensors"
    with safe_open(file, framework="pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    save_file(tensors, file)
    line = refusal(capsys, "evaluate", run)
    assert line == f"elman: {file}: not written by elman (its header has no digest); give a run folder"


@pytest.mark.parametrize("command", ["evaluate", "info"])
def test_the_reason_why_a_model_cannot_be_read(capsys, run, monkeypatch, command):
    opened, file = Path.open, run / "model.safetensors"

    def denied(path, *how, **more):
        if path == file:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *how, **more)

    monkeypatch.setattr(Path, "open", denied)
    assert refusal(capsys, command, run) == f"elman: {file}: cannot be read (Permission denied)"


def test_a_run_without_a_model_is_refused(capsys, run):
    (run / "model.safetensors").unlink()
    line = refusal(capsys, "evaluate", run)
    assert line.startswith(f"elman: {run}/model.safetensors: no such model file")


def test_model_of_another_vocabulary(capsys, run):
    with (run / "vocabulary.tsv").open("a") as file:
        file.write("extra\t1\n")
    line = refusal(capsys, "evaluate", run)
    assert line.startswith(f"elman: {run}/model.safetensors: trained with another vocabulary")


def test_model_that_does_not_fit_the_recipe(capsys, run):
    file = run / "recipe.toml"
    file.write_text(file.read_text().replace("    8,\n    8,\n", "    9,\n    8,\n"))
    line = refusal(capsys, "evaluate", run)
    assert line.startswith(f"elman: {file}: model.core.sizes is [9, 8], but the model was trained with [8, 8];")
    tensors, facts = checkpoint.load(run / "model.safetensors")
    facts["recipe"]["model"]["core"]["sizes"] = [9, 8]
    checkpoint.save(run / "model.safetensors", tensors, facts)
    line = refusal(capsys, "info", run)
    assert line.startswith(f"elman: {run}/model.safetensors: does not fit {file}: core.layers.0.")
    del facts["recipe"]
    checkpoint.save(run / "model.safetensors", tensors, facts)
    assert f"{run}/model.safetensors: it does not say by which recipe" in refusal(capsys, "info", run)


def test_out_that_holds_a_run(capsys, recipe, corpus, run):
    line = train(capsys, recipe, corpus, run)
    assert line.startswith(f"elman: {run} already holds a run; add --resume")


def test_out_that_is_a_file(capsys, recipe, corpus, tmp_path):
    (tmp_path / "out").write_text("")
    line = train(capsys, recipe, corpus, tmp_path / "out")
    assert line == f"elman: {tmp_path}/out is a file; choose a folder for --out"


@pytest.mark.usefixtures("run")  # so that the corpus is in the cache already
def test_out_that_cannot_be_written(capsys, recipe, corpus, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("elman.files.Path.touch", refuse)
    status = main(["train", str(recipe), "--data", str(corpus), "--out", str(tmp_path / "out")])
    assert status == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(f"elman: {tmp_path}/out")
    assert "cannot be written (Permission denied); choose another folder, with --out or" in last


def test_resume_with_a_changed_recipe(capsys, recipe, corpus, run):
    line = train(capsys, recipe, corpus, run, "--resume", "--set", "training.clip=1.0", "--seed", "9")
    assert line.startswith(f"elman: --resume with a changed recipe: seed differ from {run}/recipe.toml, and only")


def test_resume_with_other_data(capsys, recipe, run, tmp_path):
    other = corpus_with(tmp_path, test=b"w1 w2 w3\n" * 20)
    line = train(capsys, recipe, other, run, "--resume")
    assert line.startswith(f"elman: --resume with other data: the text of {other} has changed since {run} was started")


def test_resume_without_a_run(capsys, recipe, corpus, tmp_path):
    line = train(capsys, recipe, corpus, tmp_path / "out", "--resume")
    assert line == (
        f"elman: {tmp_path}/out is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume"
    )


def test_init_from_another_network(capsys, recipe, corpus, run, tmp_path):
    line = train(capsys, recipe, corpus, tmp_path / "out", "--init", run, "--set", "model.core.sizes=[9, 8]")
    assert line.startswith(f"elman: --init {run}: its network differs: core.layers.0.weight_ih is (32, 8) there")


def test_score_of_bad_text(capsys, trained, tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes(b"")
    assert refusal(capsys, "score", trained, file) == f"elman: {file}: the file is empty; give a file with text"
    file.write_bytes(b"\n\n")
    assert refusal(capsys, "score", trained, file) == f"elman: {file}: only blank lines; give a file with text"
    file.write_bytes(b"w1 \xff")
    assert refusal(capsys, "score", trained, file).startswith(f"elman: {file}: not UTF-8 at byte 3 (0xff)")


def test_unknown_split(capsys, trained):
    line = refusal(capsys, "evaluate", trained, "--split", "dev")
    assert line.endswith("no dev split; it has train, valid, test")


def test_an_ensemble_of_different_vocabularies(capsys, trained, run):
    words = (run / "vocabulary.tsv").read_text().splitlines()
    (run / "vocabulary.tsv").write_text("\n".join([words[1], words[0], *words[2:]]) + "\n")
    line = refusal(capsys, "evaluate", trained, run, "--ensemble")
    assert "have different vocabularies (21 and 21 words)" in line


@pytest.mark.parametrize(("weights", "message"), [("1 -1", "-1 must be 0 or more"), ("0 0", "all are 0")])
def test_weights_of_an_ensemble_that_make_no_distribution(capsys, trained, weights, message):
    line = refusal(capsys, "evaluate", trained, trained, "--ensemble", "--weights", *weights.split())
    assert message in line


def test_damaged_state_file(capsys, trained, tmp_path):
    state = tmp_path / "state.safetensors"
    state.write_bytes(b"nonsense")
    assert refusal(capsys, "generate", trained, "--state", state).startswith(f"elman: {state}: truncated or not")


def test_written_files_are_readable_by_others(trained):
    assert stat.S_IMODE((trained / "model.safetensors").stat().st_mode) == 0o644
    assert json.loads((trained / "data.json").read_text())["splits"]["train"]["tokens"] == 1200


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"source": "x"}'])
def test_data_facts_missing_or_damaged(capsys, recipe, corpus, run, content):
    file = run / "data.json"
    file.unlink() if content is None else file.write_text(content)
    message = refusal(capsys, "evaluate", run)
    assert message.startswith(f"elman: {file}: {'missing or ' if content is None else ''}damaged (")
    assert message.endswith("); restore the file of the run, or train again")
    assert train(capsys, recipe, corpus, run, "--resume") == message
    assert refusal(capsys, "train", "--resume", "--out", run) == message
