"""elman export: what a folder holds, ONNX beside the model, forms of fewer bits, and what is refused."""

import json

import msgspec
import numpy as np
import pytest
import torch

import elman
from elman import config
from elman.cli import main
from elman.export import folder
from support import text_runs
from support.commands import output, refusal, trained

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
    out = tmp_path_factory.mktemp("exported") / "folder"
    assert main(["export", str(run), "--out", str(out), "--int8", "--half", "--threads", "1"]) == 0
    return out


def facts_of(path):
    return json.loads((path / "config.json").read_text())


def test_the_folder(run, exported):
    vocabulary = elman.load(run).vocabulary
    facts = facts_of(exported)
    assert [one["name"] for one in facts["files"]] == ["model.onnx", "model.int8.onnx", "model.half.onnx"]
    whole, int8, half = facts["files"]
    assert whole["difference"] < 1e-4
    assert whole["compared"] == min(200, facts["tokens"])
    assert whole["perplexity"] == pytest.approx(facts["perplexity"], rel=1e-4)
    for small in (int8, half):
        assert small["perplexity"] == pytest.approx(facts["perplexity"], rel=0.02)
    assert facts["first"] == vocabulary.eos
    lines = (exported / "tokens.txt").read_text().splitlines()
    assert [line.split(" ")[0] for line in lines] == list(vocabulary.words)
    assert facts["beginning"] == "zeros"
    readme = (exported / "README.md").read_text()
    assert f"{whole['bytes']:,}" in readme


def assert_readme_begins_as(run, folder, monkeypatch):
    """The lines of Python in the README of a folder give the first log-probabilities of the run; their names."""
    monkeypatch.chdir(folder)
    names = {}
    exec((folder / "README.md").read_text().split("```python")[1].split("```")[0], names)
    model = elman.load(run).model
    expected, _ = model.step(torch.tensor([names["facts"]["first"]]), model.begin(1))
    np.testing.assert_allclose(np.asarray(names["log_probs"].tolist()), expected.detach().numpy(), atol=1e-5)
    return names


def test_the_readme_s_lines_work(run, exported, monkeypatch):
    names = assert_readme_begins_as(run, exported, monkeypatch)
    assert set(names["state"]) == {one["input"] for one in names["facts"]["states"]}


def test_a_machine_whose_memory_does_not_begin_with_zeros(tmp_path, monkeypatch):
    """A neural Turing machine: the lines of the READMEs begin where the model does, and eight bits suffice."""
    pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
    corpus, file = text_runs.write_corpus(tmp_path / "corpus"), tmp_path / "recipe.toml"
    machine = config.TuringMachine(size=6, rows=5, width=2)
    made = text_runs.recipe(epochs=1)
    made = msgspec.structs.replace(made, model=msgspec.structs.replace(made.model, core=machine))
    file.write_text(config.dump_recipe(made))
    assert main(["train", str(file), "--data", str(corpus), "--out", str(tmp_path / "run"), "--threads", "1"]) == 0
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--int8", "--threads", "1"]) == 0
    facts = facts_of(tmp_path / "out")
    assert facts["beginning"] == "beginning.npz"
    assert facts["files"][1]["perplexity"] == pytest.approx(facts["perplexity"], rel=0.02)
    assert_readme_begins_as(tmp_path / "run", tmp_path / "out", monkeypatch)
    program = tmp_path / "program"
    assert main(["export", str(tmp_path / "run"), "--out", str(program), "--to", "torch", "--threads", "1"]) == 0
    assert_readme_begins_as(tmp_path / "run", program, monkeypatch)


def test_the_graph_of_a_recogniser(run, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
    shown = output(capsys, "export", run, "--out", tmp_path / "out", "--sherpa", "--json", "--threads", 1)
    assert json.loads(shown)["files"][0]["difference"] < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    facts = session.get_modelmeta().custom_metadata_map
    shape = int(facts["num_layers"]), 1, int(facts["hidden_size"])
    zeros = np.zeros(shape, np.float32)
    inputs = [one.name for one in session.get_inputs()]
    log_probs, h, c = session.run(
        None, dict(zip(inputs, (np.array([[int(facts["sos_id"])]]), zeros, zeros), strict=True))
    )
    assert log_probs.shape == (1, 1, int(facts["vocab_size"]))
    assert np.exp(log_probs).sum() == pytest.approx(1, abs=1e-5)
    assert h.shape == c.shape == shape


def test_a_program_of_torch(run, tmp_path, capsys, monkeypatch):
    shown = output(capsys, "export", run, "--out", tmp_path / "out", "--to", "torch", "--json", "--threads", 1)
    made = json.loads(shown)
    assert_readme_begins_as(run, tmp_path / "out", monkeypatch)
    assert made["files"][0]["name"] == "model.pt2"
    assert made["files"][0]["difference"] < 1e-4
    assert made["files"][0]["perplexity"] == pytest.approx(made["perplexity"], rel=1e-4)


def test_without_the_data_drawn_tokens_are_compared(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(folder.TextRun, "corpus", refuse_data)
    assert main(["export", str(run), "--out", str(tmp_path / "out"), "--to", "torch", "--threads", "1"]) == 0
    told = capsys.readouterr()
    assert "tokens that the model draws are compared: gone" in told.err
    facts = facts_of(tmp_path / "out")
    assert facts["perplexity"] is None
    assert facts["files"][0]["compared"] == 200


def refuse_data(self, data=None):
    raise elman.UserError("gone")


def test_a_graph_that_is_not_the_model_is_not_written(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(folder, "TOLERANCE", -1.0)
    line = refusal(capsys, "export", run, "--out", tmp_path / "out", "--to", "torch", "--threads", 1)
    assert "the graph is not the model" in line
    assert not list(tmp_path.iterdir())


def test_what_is_refused(run, tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    assert "it exists" in refusal(capsys, "export", run, "--out", taken, "--to", "torch")
    assert "belong to --to onnx" in refusal(capsys, "export", run, "--out", tmp_path / "x", "--to", "torch", "--half")
    assert list(tmp_path.iterdir()) == [taken]


def test_a_missing_package_is_named(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    assert "pip install 'elman[onnx]'" in refusal(capsys, "export", run, "--out", tmp_path / "out")
