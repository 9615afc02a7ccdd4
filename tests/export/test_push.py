"""A folder is sent to the Hub of Hugging Face and opened from there: a server on this machine plays its part."""

import json

import pytest
import torch

import elman
from elman.cli import main
from elman.errors import UserError
from elman.export.hub import push
from elman.tasks.hub import named
from support.commands import output, refusal, trained
from support.hub_server import TOKEN, Hub

pytestmark = pytest.mark.slow

constants = pytest.importorskip("huggingface_hub.constants", reason="the Hub needs elman[hf]")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with Hub() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


def test_sent_and_opened_again(run, hub, tmp_path, monkeypatch, capsys):
    pytest.importorskip("transformers", reason="models of Hugging Face need elman[hf]")
    monkeypatch.chdir(tmp_path)
    options = ("--to", "hf", "--push", "someone/model", "--private", "--threads", "1")
    made = json.loads(output(capsys, "export", run, "--out", tmp_path / "one", *options, "--dry-run", "--json"))
    files = {path.name for path in (tmp_path / "one").iterdir()}
    assert {one["name"] for one in made["pushed"]["files"]} == files
    assert files >= {"model.safetensors", "README.md", "recipe.toml"}
    assert made["pushed"]["commit"] == ""
    assert not hub.asked
    shown = output(capsys, "export", run, "--out", tmp_path / "two", *options)
    assert "sent to someone/model (private)" in shown
    assert f"commit: {hub.address}/someone/model/commit/" in shown
    assert set(hub.repositories["someone/model"]) == files
    assert hub.private["someone/model"] is True
    again = elman.load("someone/model")
    ids, own = torch.tensor([[0], [3], [1]]), elman.load(run)
    assert torch.equal(again.model.log_probs(ids, again.begin())[0], own.model.log_probs(ids, own.begin())[0])
    assert json.loads(output(capsys, "info", "hf://someone/model", "--json"))


def test_a_second_commit_goes_to_the_same_place(run, hub):
    sent = push(run, "someone/public")
    assert sum(one.bytes for one in sent.files) == sum(map(len, hub.repositories["someone/public"].values()))
    assert hub.private["someone/public"] is False
    assert push(run, "someone/public").files == sent.files
    assert elman.load("someone/public").path.name == sent.commit.rpartition("/")[2]


def test_what_goes_wrong_is_told_in_one_line(run, hub, tmp_path, monkeypatch, capsys):
    with pytest.raises(UserError, match="a name of your own"):
        push(run, "other/model")
    monkeypatch.setenv("HF_TOKEN", "wrong")
    with pytest.raises(UserError, match=r"HF_TOKEN to a token that may write.*is complete"):
        push(run, "someone/model")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UserError, match="HF_TOKEN to a token that may write"):
        push(run, "someone/model")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(UserError, match="it could not be sent"):
        push(run, "someone/model")
    with pytest.raises(UserError, match="cannot be fetched from the Hub"):
        elman.load("nobody/model")


def test_options_that_do_not_fit(run, tmp_path, capsys):
    command = ("export", run, "--out", tmp_path / "out")
    assert "write USER/NAME" in refusal(capsys, *command, "--to", "hf", "--push", "model")
    assert "--push belongs to --to hf" in refusal(capsys, *command, "--push", "someone/model")
    assert "--private and --dry-run belong to --push" in refusal(capsys, *command, "--to", "hf", "--private")
    assert "elman ngram train --like RUN" in refusal(capsys, *command, "--to", "arpa")
    assert not (tmp_path / "out").exists()


def test_a_folder_here_comes_before_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named("someone/model") == "hf://someone/model"
    (tmp_path / "someone").mkdir()
    assert named("someone/model") == "someone/model", "a folder that is missing is not looked for elsewhere"
    assert named("a/b/c") == "a/b/c"
    assert named("hf://a/b") == "hf://a/b"
    with pytest.raises(UserError, match="someone/model is not a run folder"):
        elman.load("someone/model")
    assert main(["info", "someone/model"]) == 2
