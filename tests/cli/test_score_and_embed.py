"""Questions by command, of a small trained model of words and one of characters."""

import itertools
import json
import shutil

import numpy as np
import pytest
from safetensors import safe_open

from elman.cli import main
from elman.cli.score_rows import sentence_row
from elman.config.text import TextOptions
from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import Vocabulary
from elman.evaluation.scoring import Unknown
from support.commands import TEXTS, column, complaint, output, table, trained
from support.parameters import slow_except


@pytest.fixture(scope="module", params=slow_except(tuple(TEXTS)[:1], TEXTS))
def run(request, tmp_path_factory):
    return trained(request.param, tmp_path_factory)


@pytest.fixture
def words_run(run):
    if "characters" in (run / "recipe.toml").read_text():
        pytest.skip("of words")
    return run


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("w1 w12 w3\nw3 w1\n")
    return file


@pytest.fixture
def strange(tmp_path):
    file = tmp_path / "strange.txt"
    file.write_text("w1 q7 w3\nq8 q7 w2\n")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--document",), ("--adapt", "--rule", "sgd")])
def test_words_sum_to_their_sentence(capsys, run, text, how):
    words = table(output(capsys, "score", run, text, "--by", "word", *how))
    sentences = table(output(capsys, "score", run, text, "--by", "sentence", *how))
    for sentence in sentences:
        part = [row for row in words if row["sentence"] == sentence["sentence"]]
        assert sum(column(part, "surprisal")) == pytest.approx(float(sentence["surprisal"]), abs=1e-4)
        assert [int(row["position"]) for row in part] == list(range(1, len(part) + 1))
    assert [row["word"] for row in words if row["word"] != "<eos>"] == ["w1", "w12", "w3", "w3", "w1"]
    before, after = column(words, "entropy"), column(words, "entropy_reduction")
    assert min(after) >= 0 < min(before)
    if not how:  # the words of this run are single tokens
        same = [one["sentence"] == other["sentence"] for one, other in itertools.pairwise(words)]
        falls = [max(0.0, one - other) for one, other in itertools.pairwise(before)]
        assert sum(same) > 2
        assert [one for one, inside in zip(after, same, strict=False) if inside] == pytest.approx(
            [fall for fall, inside in zip(falls, same, strict=True) if inside], abs=2e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("--method", "dynamic", "--rule", "sgd")])
def test_words_of_a_document_sum_to_the_evaluation(capsys, run, how):
    file = run.parent / "corpus" / "test.txt"
    row = json.loads(output(capsys, "evaluate", run, "--json", *how))
    reading = ("--adapt", "--rule", "sgd") if how else ("--document",)
    words = table(output(capsys, "score", run, file, "--by", "word", *reading))
    assert sum(column(words, "surprisal")) * np.log(2) == pytest.approx(row["nll"] * row["tokens"], rel=1e-5)


def test_frequency_and_length(capsys, words_run, text):
    counts = Vocabulary.load(words_run / "vocabulary.tsv")
    for line in output(capsys, "score", words_run, text, "--by", "word", "--json").splitlines():
        row = json.loads(line)
        assert row["frequency"] == counts.counts[counts.ids[row["word"]]]
        assert row["length"] == len(row["word"])


@pytest.mark.parametrize("by", ["token", "word"])
def test_unknown_words(capsys, words_run, strange, by):
    def rows(*how):
        return table(output(capsys, "score", words_run, strange, "--by", by, *how))

    plain, excluded, spread = rows(), rows("--unknown", "exclude"), rows("--unknown", "spread")
    assert rows("--unknown", "score") == plain
    for one, without, shared in zip(plain, excluded, spread, strict=True):
        assert without["surprisal"] == ("" if one["unknown"] == "1" else one["surprisal"])
        more = float(shared["surprisal"]) - float(one["surprisal"])
        assert more == pytest.approx(float(one["unknown"]), abs=1e-5)
    (eight, *_) = (row for row in rows("--unknown", "spread", "--unknown-types", 8) if row["unknown"] == "1")
    (first, *_) = (row for row in plain if row["unknown"] == "1")
    assert float(eight["surprisal"]) == pytest.approx(float(first["surprisal"]) + 3, abs=1e-5)


def test_sentences_without_their_unknown_words(capsys, words_run, strange):
    tokens = table(output(capsys, "score", words_run, strange, "--unknown", "exclude"))
    sentences = table(output(capsys, "score", words_run, strange, "--unknown", "exclude", "--by", "sentence"))
    for sentence in sentences:
        bits = column([row for row in tokens if row["sentence"] == sentence["sentence"]], "surprisal")
        assert float(sentence["surprisal"]) == pytest.approx(sum(bits), abs=1e-4)
        assert float(sentence["bits_per_token"]) == pytest.approx(np.mean(bits), abs=1e-4)


def test_a_sentence_of_unknown_words_alone_has_no_probability():
    ids = np.zeros(2, dtype=np.int32)
    sentence = Sentence(["a", "b"], [True] * 2, [True] * 2, frozenset(), ["a", "b"], ids, 1)
    excluded, scored = (
        sentence_row(1, sentence, np.float32([-1, -2]), Unknown(treatment=one), Tokeniser(TextOptions(eos="none")))
        for one in ("exclude", "score")
    )
    assert [excluded[name] for name in ("log_prob", "surprisal", "bits_per_token")] == [None] * 3
    assert [scored[name] for name in ("log_prob", "bits_per_token")] == [-3, pytest.approx(1.5 / np.log(2), abs=1e-6)]


def test_score_writes_a_page_with_every_word(capsys, run, text, tmp_path):
    page = tmp_path / "page.html"
    output(capsys, "score", run, text, "--by", "word", "--html", page)
    html = page.read_text()
    assert html.count('class="word"') >= 5
    assert "w12" in html
    assert "--html shows words; add --by word" in complaint(capsys, "score", run, text, "--html", page)
    assert "--unknown-types belongs to" in complaint(capsys, "score", run, text, "--unknown-types", 3)


@pytest.mark.parametrize("document", [False, True])
def test_hidden_states(capsys, run, text, tmp_path, document):
    how = ["--document"] if document else []
    output(capsys, "embed", run, text, "--layers", "all", "--out", tmp_path / "a.npz", *how)
    told = json.loads(output(capsys, "embed", run, text, "--out", tmp_path / "a.safetensors", "--json", *how))
    assert told["layers"] == [2]
    whole = np.load(tmp_path / "a.npz")
    count = len(whole["tokens"])
    assert told["tokens"] == count
    assert [whole[f"layer{level}"].shape for level in range(3)] == [(count, 8)] * 3
    assert whole["sentence"].tolist() == sorted(whole["sentence"])
    with safe_open(tmp_path / "a.safetensors", "np") as file:
        assert sorted(file.keys()) == ["ids", "layer2", "sentence"]
        np.testing.assert_array_equal(file.get_tensor("layer2"), whole["layer2"])
        assert json.loads(file.metadata()["tokens"]) == whole["tokens"].tolist()


def test_a_state_predicts_what_comes_next(capsys, words_run, text, tmp_path):
    """The tied output matrix times the top state, and its softmax, are the scores of the next word."""
    output(capsys, "embed", words_run, text, "--out", tmp_path / "a.npz")
    output(capsys, "embed", words_run, "--vectors", "output", "--out", tmp_path / "v.txt")
    states = np.load(tmp_path / "a.npz")
    header, *lines = (tmp_path / "v.txt").read_text().splitlines()
    vocabulary = Vocabulary.load(words_run / "vocabulary.tsv")
    assert header == f"{len(vocabulary)} 8"
    assert [line.split()[0] for line in lines] == list(vocabulary.words)
    vectors = np.array([[float(x) for x in line.split()[1:]] for line in lines])
    with safe_open(words_run / "model.safetensors", "np") as file:
        bias = file.get_tensor("output.choice.bias")
    scores = states["layer2"][0] @ vectors.T + bias
    expected = scores[states["ids"][1]] - np.log(np.exp(scores).sum())
    second = table(output(capsys, "score", words_run, text))[1]
    assert float(second["log_prob"]) == pytest.approx(expected, abs=1e-3)


def test_srilm(capsys, run, tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "u.nbest").write_text("-10 -2 2 w1 w2\n-1 -3 1 w3\n")
    got = output(capsys, "rescore", run, tmp_path / "lists", "--srilm", "--given-weights", 1, 0, "--all")
    (first, second) = table(got)
    assert first["text"] == "w3"
    assert float(second["given_1"]) == pytest.approx(-10 * np.log(10))
    assert float(first["score"]) == pytest.approx(float(first["given_1"]) + float(first["log_prob"]), abs=1e-5)


def test_a_score_that_is_not_finite_is_null_in_json(capsys, run, tmp_path):
    (tmp_path / "nbest.tsv").write_text("u\t1e308\tw1\nu\t-1e308\tw2\n")
    lines = output(capsys, "rescore", run, tmp_path / "nbest.tsv", "--given-weights", 100, "--all", "--json")
    assert [json.loads(line)["score"] for line in lines.splitlines()] == [None, None]
    assert "Infinity" not in lines


def test_references_that_cannot_be_right_are_reported(capsys, run, tmp_path):
    (tmp_path / "nbest.tsv").write_text("u 1\tw1 w2\nu 1\tw3\n")
    arguments = ["rescore", run, tmp_path / "nbest.tsv", "--references", tmp_path / "references"]
    (tmp_path / "references").write_text("u 1\t\n")
    assert "no reference has a word" in complaint(capsys, *arguments, "--tune")
    (tmp_path / "references").write_text("u 1\tW1 w4\n")
    assert main([str(one) for one in arguments]) == 0
    captured = capsys.readouterr().err
    assert "in other capitals" in captured
    assert "word error rate 100.00 %" in captured
    (tmp_path / "references").write_text("u 1\tw1 w2\n")
    assert main([str(one) for one in arguments]) == 0
    assert "in other capitals" not in capsys.readouterr().err


def test_hypotheses_that_gain_by_unknown_words_are_reported(capsys, words_run, tmp_path):
    (tmp_path / "nbest.tsv").write_text("u\tw1 w2\nu\tw1 zz\nu\tw1 zzz\n")
    arguments = ["rescore", str(words_run), str(tmp_path / "nbest.tsv")]
    for options, said in (((), False), (("--unknown", "exclude"), True)):
        assert main([*arguments, *options]) == 0
        assert ("log p leaves out the unknown words of 2 hypotheses" in capsys.readouterr().err) == said


def test_a_hyphen_is_standard_output(capsys, run, text):
    assert output(capsys, "score", run, text, "--out", "-") == output(capsys, "score", run, text)
    assert "--out is --json; no such option" in complaint(capsys, "score", run, text, "--out", "--json")


def test_embed_mistakes_are_one_line(capsys, run, text, tmp_path):
    assert "layers 0 to 2" in complaint(capsys, "embed", run, text, "--layers", 3, "--out", tmp_path / "a.npz")
    assert "must end in .npz" in complaint(capsys, "embed", run, text, "--out", tmp_path / "a.txt")
    assert "FILE is missing" in complaint(capsys, "embed", run, "--out", tmp_path / "a.npz")
    assert "leave FILE" in complaint(capsys, "embed", run, text, "--vectors", "input", "--out", tmp_path / "a.txt")


def test_a_damaged_run_stays_one_line(capsys, run, text, tmp_path):
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "model.safetensors").unlink()
    for command in (["embed", broken, text, "--out", tmp_path / "a.npz"], ["score", broken, text, "--by", "word"]):
        assert len(complaint(capsys, *command).strip().splitlines()) == 1
