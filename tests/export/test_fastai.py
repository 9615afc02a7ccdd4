"""Language models of fastai become runs: beside torch.nn.LSTM, in the layouts of its versions, and what is refused."""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import elman
from elman.cli import main
from elman.errors import UserError
from elman.export.fastai import import_fastai, read_words
from support.commands import output, refusal

WORDS = ["xxunk", "xxpad", "xxbos", "the", "cat", "sat", "xxfake", "xxfake", "\n"]
SIZES = (3, 5, 5, 3)


class Theirs(nn.Module):
    """AWD-LSTM without its dropout: an embedding, LSTMs of torch, a linear layer."""

    def __init__(self, tied=True, bias=True):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), SIZES[0])
        self.layers = nn.ModuleList(nn.LSTM(below, size) for below, size in itertools.pairwise(SIZES))
        self.linear = nn.Linear(SIZES[-1], len(WORDS), bias=bias)
        for parameter in self.parameters():
            nn.init.normal_(parameter)
        if tied:
            self.linear.weight = self.embedding.weight

    def forward(self, ids):
        """Log-probabilities [T, V] after ids [T]."""
        x = self.embedding(ids).unsqueeze(1)
        for layer in self.layers:
            x, _ = layer(x)
        return self.linear(x.squeeze(1)).log_softmax(-1)


def state_of(model, version=2):
    """Its tensors under the names of a version of fastai; the copy of the raw matrix is one after dropout."""
    found = {"0.encoder.weight": model.embedding.weight}
    found["0.encoder_dp.emb.weight" if version else "0.encoder_with_dropout.embed.weight"] = model.embedding.weight
    for number, layer in enumerate(model.layers):
        place = f"0.rnns.{number}"
        for name, tensor in layer.named_parameters():
            raw = name == "weight_hh_l0"
            found[f"{place}.module.{name}"] = tensor * 0 if raw else tensor
            if raw:
                found[f"{place}.{'' if version else 'module.'}{name}_raw"] = tensor
    found["1.decoder.weight"] = model.linear.weight
    if model.linear.bias is not None:
        found["1.decoder.bias"] = model.linear.bias
    return {name: tensor.detach().clone() for name, tensor in found.items()}


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "itos.json"
    path.write_text(json.dumps(WORDS))
    return path


@pytest.mark.parametrize(
    ("tied", "bias", "version", "form"),
    [(True, True, 2, "pth"), (False, True, 2, "safetensors"), (True, False, 0, "pth"), (True, True, 2, "learner")],
)
def test_the_same_probabilities(tied, bias, version, form, words, tmp_path):
    theirs = Theirs(tied, bias)
    state = state_of(theirs, version)
    path = tmp_path / f"weights.{'safetensors' if form == 'safetensors' else 'pth'}"
    if form == "safetensors":
        save_file(state, path)
    else:
        torch.save({"model": state, "opt": {}} if form == "learner" else state, path)
    made = import_fastai(path, words, tmp_path / "run")
    assert (made.tied, made.bias, made.sizes) == (tied, bias, list(SIZES[1:]))
    run, ids = elman.load(tmp_path / "run"), torch.tensor([2, 3, 4, 5, 0, 8])
    ours, _ = run.model.log_probs(ids[:, None], run.begin())
    torch.testing.assert_close(ours[:, 0], theirs(ids), rtol=1e-5, atol=1e-5)
    assert made.parameters == sum(one.numel() for one in run.model.parameters())
    assert run.first == 2
    assert run.recipe.training.optimiser == elman.config.Adam(lr=1e-3)
    assert (run.recipe.training.epochs, run.recipe.training.batch_size, run.recipe.training.clip) == (1, 32, 0.25)
    encoder, core = run.recipe.model.encoder, run.recipe.model.core
    assert (encoder.dropout, encoder.word_dropout) == (0.25, 0.02)
    assert (core.weight_drop, core.between_dropout, core.output_dropout, core.input_dropout) == (0.2, 0.15, 0.1, 0.0)
    assert run.vocabulary.words == ("<unk>", "xxpad", "<eos>", "the", "cat", "sat", "xxfake", "xxfake-2", "\n")
    ((_, log_probs),) = run.score(["the cat dog\n"])
    read = torch.tensor([2, 3, 4, 0, 2])
    np.testing.assert_allclose(
        log_probs, theirs(read[:-1]).gather(1, read[1:, None]).squeeze(1).detach(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.slow
def test_what_a_run_can_do(words, tmp_path, capsys, monkeypatch):
    """Evaluated, sampled, and the start of a training whose text brings a word of its own."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    theirs = Theirs()
    torch.save(state_of(theirs), tmp_path / "weights.pth")
    run, text = tmp_path / "run", tmp_path / "text"
    shown = output(capsys, "import", "fastai", tmp_path / "weights.pth", "--vocabulary", words, "--out", run, "--json")
    assert json.loads(shown)["words"] == len(WORDS)
    text.mkdir()
    for split in ("train", "valid", "test"):
        (text / f"{split}.txt").write_text("the cat sat\nthe dog sat\n" * 20)
    found = json.loads(output(capsys, "evaluate", run, "--data", text, "--json"))
    symbols = torch.tensor([2, *[3, 4, 5, 2, 3, 0, 5, 2] * 20])
    expected = -theirs(symbols[:-1]).gather(1, symbols[1:, None]).mean().item()
    assert found["perplexity"] == pytest.approx(math.exp(expected), rel=1e-4)
    assert "weights.pth, which is not there; give the place" in refusal(capsys, "evaluate", run)
    assert output(capsys, "generate", run, "--tokens", "5", "--seed", "1").strip()
    assert "weights (fastai)" in output(capsys, "info", run)
    tuned = tmp_path / "tuned"
    command = ["train", run / "recipe.toml", "--init", run, "--data", text, "--out", tuned, "--threads", "1"]
    command += ["--set", "training.batch_size=2", "--set", "training.window.length=10"]
    assert main(list(map(str, command))) == 0
    vocabulary, own = elman.load(tuned).vocabulary, elman.load(run)
    assert {"dog", "the", "<eos>"} <= set(vocabulary.words)
    weight = elman.load(tuned).model.encoder.weight[vocabulary.ids["the"]]
    assert (weight - own.model.encoder.weight[3]).abs().max() < 0.05, "it began there"


def test_what_is_refused(words, tmp_path, capsys):
    state, path = state_of(Theirs()), tmp_path / "weights.pth"

    def told(changed, vocabulary=words):
        torch.save(changed, path)
        return refusal(capsys, "import", "fastai", path, "--vocabulary", vocabulary, "--out", tmp_path / "run")

    without = {name: tensor for name, tensor in state.items() if name != "1.decoder.weight"}
    assert "1.decoder.weight is missing" in told(without)
    bare = {name.removeprefix("0."): tensor for name, tensor in state.items() if name.startswith("0.")}
    assert "an encoder alone" in told(bare)
    quasi = {name: tensor for name, tensor in state.items() if not name.startswith("0.rnns.1.")}
    assert "quasi-recurrent" in told({**quasi, "0.rnns.1.layers.0.linear.weight": torch.ones(2, 2)})
    assert "0.rnns.N are numbered [0, 2]" in told(quasi)
    both = {**state, "0.rnns.0.module.weight_ih_l0_reverse": torch.ones(20, 3)}
    assert "weight_ih_l0_reverse is not part" in told(both)
    assert "bias_ih (as elman calls it) is (3,), and the other tensors imply (20,)" in told(
        {**state, "0.rnns.1.module.bias_ih_l0": torch.ones(3)}
    )
    assert "not finite" in told({**state, "1.decoder.bias": torch.full((9,), torch.nan)})
    assert "should be matrices" in told({**state, "0.rnns.0.weight_hh_l0_raw": torch.ones(20)})
    assert "damaged or holds Python objects" in told({**state, "opt": Theirs})
    assert "no table of tensors" in told([torch.ones(1)])
    (tmp_path / "short.json").write_text('["a", "b"]')
    assert "2 words, but" in told(state, tmp_path / "short.json")
    (tmp_path / "twice.txt").write_text("\n".join([*"abcdefgh", "a"]) + "\n")
    assert "word 9, 'a', appears twice" in told(state, tmp_path / "twice.txt")
    (tmp_path / "bad.json").write_text("{}")
    assert "not a JSON list of words" in told(state, tmp_path / "bad.json")
    for damaged in (b"every\tD\nlord\tN\n", b"R.", b"0", b"tt."):
        path.write_bytes(damaged)
        assert str(path) in refusal(capsys, "import", "fastai", path, "--vocabulary", words, "--out", tmp_path / "run")
    path.write_bytes(b"nothing")
    assert "damaged or" in refusal(capsys, "import", "fastai", path, "--vocabulary", words, "--out", tmp_path / "run")
    safe = tmp_path / "weights.safetensors"
    safe.write_bytes(b"nothing")
    assert "not a file of weights" in refusal(
        capsys, "import", "fastai", safe, "--vocabulary", words, "--out", tmp_path / "run"
    )
    assert not (tmp_path / "run").exists()


def test_pickled_words_are_not_loaded(tmp_path):
    for name, protocol in itertools.product(("itos.pkl", "itos"), range(2, pickle.HIGHEST_PROTOCOL + 1)):
        (tmp_path / name).write_bytes(pickle.dumps(WORDS, protocol))
        with pytest.raises(UserError, match="a pickled list, which is not loaded; where you trust it"):
            read_words(tmp_path / name)
    (tmp_path / "itos.txt").write_text("a\nb\n")
    assert read_words(tmp_path / "itos.txt") == ["a", "b"]
