"""Questions by command, of a small trained model of words and one of characters."""

import csv
import io
import json
import shutil

import msgspec
import numpy as np
import pytest
from safetensors import safe_open

import toy
from elman.cli import main
from elman.data.options import TextOptions
from elman.data.vocabulary import Vocabulary
from elman.experiment import Experiment

RAW = TextOptions(tokenisation="raw", min_count=2)
CHARACTERS = TextOptions(tokenisation="characters")


@pytest.fixture(scope="module", params=[RAW, CHARACTERS], ids=["words", "characters"])
def run(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        out = tmp_path_factory.mktemp("runs") / "run"
        recipe = toy.recipe(epochs=1)
        recipe = msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, text=request.param))
        experiment = Experiment(recipe, out, data=toy.write_corpus(out.parent / "corpus"))
        experiment.train()
        experiment.finish()
        yield out


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


def output(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def complaint(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def table(text):
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def column(rows, name):
    return [float(row[name]) for row in rows if row[name]]


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


def test_a_page(capsys, run, text, tmp_path):
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
    output(capsys, "embed", run, text, "--out", tmp_path / "a.safetensors", *how)
    whole = np.load(tmp_path / "a.npz")
    count = len(whole["tokens"])
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


def test_mistakes_of_embed(capsys, run, text, tmp_path):
    assert "layers 0 to 2" in complaint(capsys, "embed", run, text, "--layers", 3, "--out", tmp_path / "a.npz")
    assert "must end in .npz" in complaint(capsys, "embed", run, text, "--out", tmp_path / "a.txt")
    assert "give FILE" in complaint(capsys, "embed", run, "--out", tmp_path / "a.npz")
    assert "leave FILE" in complaint(capsys, "embed", run, text, "--vectors", "input", "--out", tmp_path / "a.txt")


@pytest.fixture
def nbest(tmp_path):
    file = tmp_path / "nbest.tsv"
    file.write_text("b\t-1\tw1 w2 w3\nb\t0\tw3 w3\na\t-2\tw5 w6\na\t-2\tw6\na\t-3\t\n")
    return file


def test_the_order_of_rescoring(capsys, run, nbest, tmp_path):
    rows = table(output(capsys, "rescore", run, nbest, "--all", "--weight", "0.5", "--word-penalty", "0.25"))
    scored = tmp_path / "one.txt"
    for row in rows:
        words = len(row["text"].split())
        expected = float(row["given_1"]) + 0.5 * float(row["log_prob"]) - 0.25 * words
        assert float(row["score"]) == pytest.approx(expected, abs=1e-5)
        if row["text"]:
            scored.write_text(row["text"] + "\n")
            (alone,) = table(output(capsys, "score", run, scored, "--by", "sentence"))
            assert float(row["log_prob"]) == pytest.approx(float(alone["log_prob"]), abs=1e-4)
    assert [row["id"] for row in rows] == ["b"] * 2 + ["a"] * 3
    for name in "ba":
        scores = column([row for row in rows if row["id"] == name], "score")
        assert scores == sorted(scores, reverse=True)
    best = [f"{row['id']}\t{row['text']}" for row in rows if row["rank"] == "1"]
    again = ("--weight", "0.5", "--word-penalty", "0.25", "--batch-size", "1")
    assert output(capsys, "rescore", run, nbest, *again).splitlines() == best


def test_carried_states_follow_what_was_chosen(capsys, run, nbest, tmp_path):
    """As the chosen texts in one document, where nothing but the given scores choose."""
    rows = table(output(capsys, "rescore", run, nbest, "--carry", "--all", "--weight", "0"))
    best = [row for row in rows if row["rank"] == "1"]
    document = tmp_path / "document.txt"
    document.write_text("".join(row["text"] + "\n" for row in best))
    sentences = table(output(capsys, "score", run, document, "--by", "sentence", "--document"))
    assert column(best, "log_prob") == pytest.approx(column(sentences, "log_prob"), abs=1e-4)


def test_tuning(capsys, run, nbest, tmp_path):
    references = tmp_path / "references.txt"
    references.write_text("a\tw5 w6\nb\tw3 w3\n")
    arguments = ["rescore", str(run), str(nbest), "--references", str(references)]
    assert main([*arguments, "--tune"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["b\tw3 w3", "a\tw5 w6"]
    assert "word error rate 0.00 %; without the model 0.00 %" in captured.err
    assert "tuned: --weight 0 " in captured.err
    references.write_text("a\tw5 w6\n")
    assert "no reference of b" in complaint(capsys, *arguments)
    assert "--tune needs --references" in complaint(capsys, "rescore", run, nbest, "--tune")


def test_kaldi(capsys, run, tmp_path):
    (tmp_path / "text").write_text("u-1 w1 w2\nu-2 w3\n")
    (tmp_path / "ac").write_text("u-1 100\nu-2 0\n")
    got = output(capsys, "rescore", run, tmp_path / "text", "--kaldi", "--costs", tmp_path / "ac")
    assert got == "u w3\n"


def test_a_damaged_run_stays_one_line(capsys, run, text, tmp_path):
    broken = shutil.copytree(run, tmp_path / "broken")
    (broken / "model.safetensors").unlink()
    for command in (["embed", broken, text, "--out", tmp_path / "a.npz"], ["score", broken, text, "--by", "word"]):
        assert len(complaint(capsys, *command).strip().splitlines()) == 1
