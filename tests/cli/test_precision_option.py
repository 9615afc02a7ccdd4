"""--precision, and elman info --machine."""

import json

import pytest

from elman.cli import main
from elman.network.fast import policy, precision
from elman.tasks.experiment import Experiment
from support import text_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("precision")
    corpus = text_runs.write_corpus(folder / "corpus")
    experiment = Experiment(text_runs.recipe(epochs=1), folder / "run", data=corpus)
    experiment.train()
    experiment.finish()
    return str(folder / "run")


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
    monkeypatch.setattr(policy, "LEAST_ROWS", 1)
    yield
    precision.use("float32")


def told(words, capsys, status=0):
    assert main(words) == status
    captured = capsys.readouterr()
    return captured.err if status else json.loads(captured.out)


@pytest.mark.slow
def test_a_model_is_evaluated_in_every_precision_and_the_next_command_in_float32(run, capsys):
    exact = told(["evaluate", run, "--json"], capsys)["nll"]
    for name in ("bf16", "int8"):
        found = told(["evaluate", run, "--json", "--precision", name], capsys)["nll"]
        assert 1e-8 < abs(found - exact) < 1e-2
    assert told(["evaluate", run, "--json"], capsys)["nll"] == exact


@pytest.mark.slow
def test_int8_does_not_adapt_and_claims_have_the_precision_of_their_recipes(run, capsys):
    words = ["evaluate", run, "--method", "dynamic", "--precision"]
    assert "runs a model as it is" in told([*words, "int8"], capsys, status=2)
    assert told([*words, "bf16", "--json"], capsys)["nll"] > 0
    assert "leave it out" in told(["reproduce", "rank-bound", "--precision", "bf16"], capsys, status=2)
    refused = told(["train", "recipes/shakespeare/demo.toml", "--precision", "int8"], capsys, status=2)
    assert "training.precision" in refused


@pytest.mark.slow
def test_info_needs_a_run_or_the_machine(run, capsys):
    found = told(["info", "--machine", "--json"], capsys)
    assert found["auto"] == ("bf16" if found["gain"] >= 1.3 else "float32")
    assert {peak["library"] for peak in found["peaks"]} >= {"torch.mm"}
    for words in (["info"], ["info", run, "--machine"]):
        assert "or --machine" in told(words, capsys, status=2)
