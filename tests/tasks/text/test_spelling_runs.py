"""A run that reads spelling, asked by command: every question reads words it never saw by their letters."""

import json

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.cli import main
from elman.learning import checkpoint
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import text_runs

pytestmark = pytest.mark.slow

TEXT = "w1 w12 unseen w3\nw3 Mew w1\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spelling")
    corpus = text_runs.write_corpus(folder / "corpus")
    with (corpus / "test.txt").open("a") as file:
        file.write("w1 anew w2\n" * 4)
    raw = msgspec.to_builtins(text_runs.recipe(epochs=1), str_keys=True)
    raw["data"] = {"kind": "text", "tokenisation": "words", "min_count": 2, "lowercase": True}
    raw["model"]["encoder"] = {"kind": "characters", "size": 4, "widths": [1, 2], "filters": [4, 4]}
    raw["model"]["output"] = {
        "contexts": {"kind": "mixture", "heads": {"2": 2}, "size": 6},
        "choice": {"kind": "flat"},
    }
    raw["model"]["core"] |= {"between_dropout": 0.0, "output_dropout": 0.0}
    experiment = Experiment(config.parse_recipe(raw, "toy"), folder / "run", data=corpus)
    experiment.train()
    experiment.finish()
    return folder / "run"


@pytest.fixture
def ask(run, capsys):
    """JSON of a command about the run."""

    def answer(*arguments):
        capsys.readouterr()
        command, *rest = map(str, arguments)
        assert main([*command.split(), str(run), *rest, "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return answer


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def by_hand(run, line, read):
    """Log-probabilities of a line's tokens where `read` are the words that the model reads."""
    loaded = TextRun(run)
    model, size = loaded.model.knowing(read), len(loaded.vocabulary)
    ids = loaded.vocabulary.encode([*line.lower().split(), "<eos>"]).astype(np.int64)
    inputs = torch.tensor([loaded.first, *range(size, size + len(read))]).unsqueeze(1)
    with torch.inference_mode():
        return model.log_prob(inputs, torch.from_numpy(ids).unsqueeze(1), model.begin(1))[0][:, 0].numpy()


def test_tokens_and_words_are_scored_after_what_was_spelled(run, ask, text):
    rows = ask("score", text)
    expected = [by_hand(run, line, line.lower().split()) for line in TEXT.splitlines()]
    np.testing.assert_allclose([row["log_prob"] for row in rows], np.concatenate(expected), atol=1e-5)
    words = ask("score", text, "--by", "word")
    np.testing.assert_allclose([row["surprisal"] for row in words], [row["surprisal"] for row in rows], atol=1e-5)
    whole = ask("score", text, "--document")
    again = ask("score", text, "--document", "--by", "word")
    np.testing.assert_allclose([row["surprisal"] for row in again], [row["surprisal"] for row in whole], atol=1e-5)
    assert [row["word"] for row in words if row["unknown"]] == ["unseen", "Mew"]


def test_what_follows_depends_on_the_spelling(run, ask, tmp_path):
    (tmp_path / "a.txt").write_text("zzz w1\nmmm w1\nmmm w1\n")
    after = [row["log_prob"] for row in ask("score", tmp_path / "a.txt") if row["position"] == 2]
    assert after[0] == after[1], "neither has a letter of the vocabulary, both have three"
    (tmp_path / "a.txt").write_text("w1w w1\nmmm w1\n<unk> w1\n")
    assert len({row["log_prob"] for row in ask("score", tmp_path / "a.txt") if row["position"] == 2}) == 3
    loaded = TextRun(run)
    assert loaded.next_words("w1w", k=3) != loaded.next_words("<unk>", k=3)


def test_hypotheses_states_and_mixtures_read_spelling(run, ask, text, tmp_path):
    lines = TEXT.splitlines()
    rows = ask("score", text, "--by", "sentence")
    (tmp_path / "nbest.tsv").write_text("".join(f"a\t{line}\n" for line in lines))
    found = {row["text"]: row for row in ask("rescore", tmp_path / "nbest.tsv", "--all")}
    for line, row in zip(lines, rows, strict=True):
        assert found[line]["score"] == pytest.approx(row["log_prob"], abs=1e-4)
    carried = ask("rescore", tmp_path / "nbest.tsv", "--all", "--carry")
    assert {row["text"]: pytest.approx(row["score"], abs=1e-4) for row in carried} == {
        line: row["score"] for line, row in found.items()
    }
    assert main(["embed", str(run), str(text), "--layers", "0", "--out", str(tmp_path / "s.npz")]) == 0
    with np.load(tmp_path / "s.npz") as states, torch.inference_mode():
        vector = TextRun(run).model.encoder.encode_words(["unseen"])[0]
        np.testing.assert_allclose(states["layer0"][2], vector.numpy(), atol=1e-6)
    (page,) = ask("analyze mixture", text, "--out", tmp_path / "m.html")
    assert len(page["components"]) == 2


def test_evaluation_reads_spelling_unless_told(ask):
    (spelled,), (as_unk,) = ask("evaluate"), ask("evaluate", "--unknown-as-unk")
    assert spelled["unknown"] == as_unk["unknown"] >= 4
    assert spelled["tokens"] == as_unk["tokens"]
    assert spelled["nll"] != as_unk["nll"]
    for alone, option in ((spelled, []), (as_unk, ["--unknown-as-unk"])):
        (ensemble,) = ask("evaluate", "--ensemble", *option)
        assert ensemble["nll"] == pytest.approx(alone["nll"], abs=1e-5)


STILL = ("--rule", "sgd", "--lr", "0")
"""A rule that learns nothing, so that what adapts is held against what does not."""


def test_what_adapts_reads_spelling_unless_told(ask):
    for option in ([], ["--unknown-as-unk"]):
        (static,) = ask("evaluate", *option)
        (dynamic,) = ask("evaluate", "--method", "dynamic", *STILL, *option)
        (cache,) = ask("evaluate", "--method", "cache", "--cache-weight", "0", *option)
        assert dynamic["nll"] == pytest.approx(static["nll"], abs=1e-5)
        assert cache["nll"] == pytest.approx(static["nll"], abs=1e-5)
    (learnt,) = ask("evaluate", "--method", "dynamic+cache", "--rule", "sgd")
    assert learnt["nll"] != pytest.approx(dynamic["nll"], abs=1e-5)
    (tuned,) = ask("evaluate", "--method", "cache", "--tune", "--tune-tokens", "40")
    assert tuned["settings"]["cache"]


def test_rows_that_are_read_otherwise_are_not_kept(run, ask):
    ask("evaluate", "--method", "cache")
    before = (run / "results.json").read_bytes()
    ask("evaluate", "--method", "cache", "--cache-weight", "0.3", "--unknown-as-unk")
    assert (run / "results.json").read_bytes() == before


@pytest.mark.parametrize("by", ["token", "word"])
def test_a_stream_that_adapts_reads_spelling(ask, text, by):
    still, document = ask("score", text, "--by", by, "--adapt", *STILL), ask("score", text, "--by", by, "--document")
    figures = [[row["surprisal"] for row in rows] for rows in (still, document)]
    np.testing.assert_allclose(*figures, atol=1e-5)
    learnt = ask("score", text, "--by", by, "--adapt", "--rule", "sgd", "--lr", "2")
    assert [row["surprisal"] for row in learnt] != figures[0]


def test_a_prompt_of_unknown_words_is_learnt_from_and_kept_as_unk(run, ask, tmp_path):
    adapt, state = ("--adapt", "--rule", "sgd", "--segment", "3"), tmp_path / "state"
    (drawn,) = ask("generate", "--prompt", "w1 unseen w2 mew", *adapt, "--tokens", "3", "--temperature", "0")
    assert len(drawn["words"]) == 3
    for options in (adapt, ()):
        ask("generate", "--prompt", "w1 unseen w2 mew", *options, "--tokens", "0", "--save-state", state)
        unread = checkpoint.load(state)[1]["unread"]
        assert unread[-1] == TextRun(run).vocabulary.unk
        ask("generate", "--prompt", "w1", *options, "--tokens", "2", "--state", state)


def test_minimal_pairs_read_spelling_unless_told(run, ask, tmp_path):
    good, bad = "w1 unseen w3", "w1 Mew w3"
    (tmp_path / "pairs.tsv").write_text(f"{good}\t{bad}\tunseen\n")
    options = ("--pairs", tmp_path / "pairs.tsv")
    (spelled,), (as_unk,) = ask("minimal-pairs", *options), ask("minimal-pairs", *options, "--unknown-as-unk")
    assert [found["phenomena"][0]["not_distinguished"] for found in (spelled, as_unk)] == [0, 1]
    right, wrong = (by_hand(run, line, line.lower().split()).sum() for line in (good, bad))
    assert spelled["phenomena"][0]["accuracy"] == float(right > wrong)


def test_the_rank_is_that_of_the_model_as_it_reads_the_text(run, ask):
    ask("analyze rank", "--dtype", "float64")
    loaded = TextRun(run)
    split = loaded.split(loaded.corpus(), "test")
    model = loaded.model.double().knowing(split.unknown_words)
    inputs = torch.tensor([loaded.first, *split.inputs[:-1].tolist()]).unsqueeze(1)
    with torch.inference_mode():
        rows = model.log_probs(inputs, model.begin(1))[0][:, 0].numpy()
    (found,) = json.loads((run / "rank.json").read_text())
    expected = np.linalg.svd(rows, compute_uv=False)
    np.testing.assert_allclose(found["singular_values"], expected, atol=1e-8 * expected[0])


def test_more_neighbours_than_there_are_words(run, capsys):
    assert main(["analyze", "neighbours", str(run), "w1w", "w12", "-k", "999"]) == 0
    assert "nearest words" in capsys.readouterr().out


def test_neighbours_in_and_out_of_the_vocabulary(run, ask, capsys):
    (found,) = ask("analyze neighbours", "w12", "W1w", "-k", "3")
    known, unknown = found["words"]
    assert (known["word"], known["known"], unknown["word"], unknown["known"]) == ("w12", True, "w1w", False)
    assert [len(row["neighbours"]) for row in found["words"]] == [3, 3]
    cosines = [near["cosine"] for near in unknown["neighbours"]]
    assert cosines == sorted(cosines, reverse=True)
    assert main(["analyze", "neighbours", str(run), "w1w", "-k", "0"]) == 2
    assert "-k" in capsys.readouterr().err
