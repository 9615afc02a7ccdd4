"""elman models: the model that comes with elman in the place of a run, and a run published and fetched again."""

import json
import re
import shlex
import tomllib

import numpy as np
import pytest

import elman
from elman.cli import main, models
from elman.errors import UserError
from elman.export import publishing
from elman.files import sha256_file
from elman.learning import checkpoint
from elman.tasks.experiment import Experiment
from elman.tasks.models import registry, store
from support import every_kind
from support.commands import output, refusal, trained
from support.server import serving


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(registry.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


def publish(run, out, *more):
    return main(
        ["models", "publish", str(run), "--name", "tiny", "--out", str(out), "--licence", "MIT", *map(str, more)]
    )


class TestShakespeare:
    def test_it_generates(self, capsys):
        words = output(capsys, "generate", "shakespeare", "--tokens", "20", "--seed", "1", "--raw")
        assert len(words.split()) + words.count("\n") in (20, 21)  # a line break is a token

    def test_its_weights_and_log_probabilities_are_those_of_its_card(self, capsys):
        """The digest of the float32 weights is exact; log-probabilities differ by rounding between processors."""
        facts = json.loads(output(capsys, "info", "shakespeare", "--json"))
        card = output(capsys, "models", "info", "shakespeare")
        assert facts["parameters"] == 2_190_818
        assert f"float32 (`elman info` shows it): {facts['model_digest']}" in card
        assert "public domain" in card
        (tokens, log_probs), *_ = elman.score("shakespeare", ["To be, or not to be, that is the question."])
        assert tokens[:4] == ["To", "be", ",", "or"]
        assert len(tokens) == LOG_PROBS[0]
        np.testing.assert_allclose(log_probs[:4], LOG_PROBS[1], atol=1e-3)
        assert float(log_probs.sum()) == pytest.approx(LOG_PROBS[2], abs=0.01)

    def test_its_results_are_those_of_the_card(self, capsys):
        card = output(capsys, "models", "info", "shakespeare")
        rows = json.loads((store.open_model("shakespeare") / "results.json").read_text())
        assert [row["split"] for row in rows] == ["valid", "test"]
        for row in rows:
            assert f"| {row['split']} | {row['perplexity']:.2f} |" in card

    @pytest.mark.slow
    def test_a_report_is_written_beside_the_copy_in_the_cache(self, tmp_path, capsys):
        output(capsys, "report", "shakespeare")
        assert (tmp_path / "cache/models/shakespeare/report.html").is_file()
        assert "2,190,818" in (tmp_path / "cache/models/shakespeare/report.html").read_text()

    @pytest.mark.slow
    def test_the_page_of_an_analysis_is_written_there_too(self, tmp_path, capsys):
        """A folder of its name here would hide the model from then on."""
        (tmp_path / "lines.txt").write_text("my lord , the king is dead\n" * 20)
        output(capsys, "analyze", "words", "shakespeare", "--data", tmp_path / "lines.txt", "--split", "all")
        assert (tmp_path / "cache/models/shakespeare/words.html").is_file()
        output(capsys, "analyze", "dynamics", "shakespeare", "--trials", "1", "--steps", "2")
        assert (tmp_path / "cache/models/shakespeare/dynamics.html").is_file()
        output(capsys, "analyze", "rank", "shakespeare", "--data", tmp_path / "lines.txt", "--split", "all")
        assert (tmp_path / "cache/models/shakespeare/rank.html").is_file()
        assert not (tmp_path / "shakespeare").exists()

    def test_scores_of_a_text(self, tmp_path, capsys):
        (tmp_path / "lines.txt").write_text("my lord, the king is dead\n")
        assert "king" in output(capsys, "score", "shakespeare", tmp_path / "lines.txt")


LOG_PROBS = (14, [-3.74812, -2.40448, -4.8361, -5.07636], -47.001)


def test_list(capsys):
    rows = json.loads(output(capsys, "models", "list", "--json"))
    assert [(row["name"], row["where"]) for row in rows] == [("shakespeare", "comes with elman")]
    assert "shakespeare" in output(capsys, "models", "list")


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_run_is_published_fetched_and_opened(run, tmp_path, capsys, weights, monkeypatch):
    served = tmp_path / "served"
    assert publish(run, served, "--weights", weights, "--registry", tmp_path / "registry.toml") == 0
    assert sorted(path.name for path in served.iterdir()) == ["tiny", "tiny.toml", "tiny.zip"]
    (tmp_path / "registry.toml").replace(served / "registry.toml")
    monkeypatch.chdir(tmp_path)
    with serving(served) as server:
        monkeypatch.setenv(registry.VARIABLE, f"{server.url}/registry.toml")
        capsys.readouterr()
        rows = json.loads(output(capsys, "models", "list", "--json"))
        assert rows[-1]["where"] == "elman models fetch tiny"
        output(capsys, "models", "fetch", "tiny")
    monkeypatch.delenv(registry.VARIABLE)
    original, opened = elman.load(run), elman.load("tiny")
    found, expected = (checkpoint.model_tensors(one.model) for one in (opened, original))
    for name, tensor in expected.items():
        np.testing.assert_allclose(
            found[name], tensor, atol=float(tensor.abs().max()) / (200 if weights == "int8" else 1e9)
        )
    card = output(capsys, "models", "info", "tiny")
    assert checkpoint.digest_of(found) in card
    assert output(capsys, "generate", "tiny", "--tokens", "5", "--seed", "1")


def test_a_damaged_model_is_fetched_again_by_the_command_that_is_told(run, tmp_path, capsys):
    served = tmp_path / "served"
    assert publish(run, served, "--registry", tmp_path / "registry.toml") == 0
    (tmp_path / "registry.toml").replace(served / "registry.toml")
    with serving(served) as server:
        listing = "--registry", f"{server.url}/registry.toml"
        capsys.readouterr()
        where = json.loads(output(capsys, "models", "list", *listing, "--json"))[-1]["where"]
        output(capsys, *shlex.split(where)[1:])
        (store.place("tiny") / "vocabulary.tsv").write_text("")
        line = refusal(capsys, "info", "tiny")
        output(capsys, *shlex.split(line.partition("run again: ")[2])[1:])
    assert "tiny" in output(capsys, "info", "tiny")


def test_publishing_keeps_nothing_of_this_machine(run, tmp_path, tmp_path_factory, capsys):
    assert publish(run, tmp_path / "out", "--weights", "half") == 0
    here = str(tmp_path_factory.getbasetemp())
    assert here in (run / "data.json").read_text()
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or here.encode() not in path.read_bytes(), path
    entry = tomllib.loads((tmp_path / "out/tiny.toml").read_text())["tiny"]
    assert entry["archive"]["bytes"] == (tmp_path / "out/tiny.zip").stat().st_size
    assert entry["archive"]["sha256"] == sha256_file(tmp_path / "out/tiny.zip")
    assert not {"environment.json", "checkpoint.safetensors"} & entry["files"].keys()


def test_the_same_files_give_the_same_archive(run, tmp_path, capsys):
    assert publish(run, tmp_path / "a") == 0
    publishing.write_zip(tmp_path / "a/tiny", tmp_path / "again.zip")
    assert sha256_file(tmp_path / "a/tiny.zip") == sha256_file(tmp_path / "again.zip")


def test_what_is_refused(run, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("")
    assert "it exists" in refusal(capsys, *f"models publish {run} --name tiny --licence MIT --out full".split())
    assert "--out .: it exists" in refusal(capsys, *f"models publish {run} --name tiny --licence MIT --out .".split())
    assert "cannot be the name" in refusal(capsys, *f"models publish {run} --name Tiny --licence MIT --out new".split())
    assert "--licence is empty" in refusal(
        capsys, "models", "publish", run, "--name", "a", "--licence", "", "--out", "x"
    )
    assert "did you mean shakespeare?" in refusal(capsys, "models", "fetch", "shakespare")
    assert "did you mean shakespeare?" in refusal(capsys, "generate", "shakespare")
    assert "cannot be read" in refusal(capsys, "models", "list", "--registry", "nowhere.toml")
    assert "nonnumeric port" in refusal(capsys, "models", "list", "--registry", "http://127.0.0.1:80a/x")
    assert "is not an address" in refusal(capsys, "models", "list", "--registry", "http://[::1")
    assert not (tmp_path / "new").exists()


def test_a_registry_that_cannot_be_written_loses_no_entry(run, tmp_path, capsys, monkeypatch):
    """The model is there, and the line names the file of the entry, which can still be added."""

    def full(path, text):
        raise UserError(f"{path}: the disk is full")

    monkeypatch.setattr(models, "write_atomic", full)
    words = f"models publish {run} --name tiny --licence MIT --out {tmp_path}/a --registry {tmp_path}/registry.toml"
    line = refusal(capsys, *words.split())
    entry = tmp_path / "a/tiny.toml"
    assert "registry.toml: the disk is full; the model is written" in line
    assert line.endswith(f"is {entry}")
    assert tomllib.loads(entry.read_text()).keys() == {"tiny"}


def test_an_entry_is_added_and_the_registry_is_kept_as_it_is(run, tmp_path, capsys):
    registry = tmp_path / "registry.toml"
    registry.write_text("# models of ours\n")
    assert publish(run, tmp_path / "a", "--registry", registry) == 0
    assert registry.read_text().startswith("# models of ours\n")
    assert tomllib.loads(registry.read_text()).keys() == {"tiny"}
    registry.write_bytes(b"\xff")
    capsys.readouterr()
    words = f"models publish {run} --name tiny --licence MIT --out b --registry {registry}".split()
    assert "is not UTF-8" in refusal(capsys, *words)


def test_a_name_is_not_taken_twice(run, tmp_path, capsys):
    assert publish(run, tmp_path / "a", "--registry", tmp_path / "registry.toml") == 0
    capsys.readouterr()
    line = refusal(
        capsys, *f"models publish {run} --name tiny --licence MIT --out b --registry {tmp_path}/registry.toml".split()
    )
    assert re.search("a model tiny is there already", line)


@pytest.mark.slow
def test_the_card_of_a_series_states_nats(tmp_path, capsys):
    write, recipe = every_kind.KINDS["series"]
    experiment = Experiment(recipe(tmp_path), tmp_path / "run", data=write(tmp_path))
    experiment.train()
    rows = experiment.finish()
    shown = output(capsys, *f"models publish {tmp_path}/run --name walk --licence MIT --out {tmp_path}/new".split())
    card = (tmp_path / "new/walk/README.md").read_text()
    assert "| split | nats per step | steps | nats per step as trained |\n|---|---|---|---|\n" in card
    assert f"| test | {rows[1].nll:.4f} | {rows[1].tokens} | {rows[1].nll:.4f} |" in card
    assert f"{rows[1].nll:.3f}" in shown
    assert "walk: nats per step" in shown
    assert "perplexity" not in card + shown
