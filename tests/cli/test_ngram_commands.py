"""elman ngram, and n-gram models in evaluate, score, rescore and generate."""

import json
import math
import re
import shutil

import numpy as np
import pytest

from elman.cli import main
from elman.data.text.corpus import open_corpus
from elman.evaluation.ngram import kneser_ney
from elman.evaluation.ngram.alignment import AlignedNGram
from elman.evaluation.ngram.arpa import read_arpa
from elman.evaluation.perplexity import average_probabilities
from elman.learning import checkpoint
from elman.tasks.text.ensemble import member_log_probs, run_log_probs
from elman.tasks.text.run import TextRun
from support.commands import column, output, refusal, table, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


@pytest.fixture(scope="module")
def arpa(run, tmp_path_factory):
    """A model of the training text of the run, by its vocabulary."""
    file = tmp_path_factory.mktemp("ngram") / "own.arpa.gz"
    assert main(["ngram", "train", "--like", str(run), "--order", "3", "--out", str(file)]) == 0
    return file


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("the cat sat\nthe dog sat\n\nthe cat ran\n" * 3)
    return file


def ngram(capsys, *arguments):
    return json.loads(output(capsys, "ngram", *arguments, "--json"))


def test_a_text_is_read_whole(capsys, text, tmp_path):
    out = tmp_path / "new" / "model.arpa"
    found = ngram(capsys, "train", text, "--order", "2", "--out", out)
    assert found["tokens"] == 3 * 13
    assert found["ngrams"] == [8, 9]
    assert ngram(capsys, "info", out) == {
        "model": str(out),
        "bytes": out.stat().st_size,
        "order": 2,
        "ngrams": [8, 9],
        "words": 5,
        "marks": ["</s>", "<s>", "<unk>"],
        "unk": True,
        "reads": "sentence by sentence",
    }
    assert "sentence by sentence" in output(capsys, "ngram", "info", out)


def test_sums_of_a_text(capsys, text, tmp_path):
    out, other = tmp_path / "model.arpa", tmp_path / "other.txt"
    ngram(capsys, "train", text, "--out", out)
    other.write_text("the bird sat\n\nno\n")
    found = ngram(capsys, "score", out, other)
    model = read_arpa(out)
    log_prob = model.score(model.encode(["the", "bird", "sat", "<eos>", "<eos>", "no", "<eos>"]))[0]
    known = np.delete(log_prob, [1, 5])
    assert (found["sentences"], found["tokens"], found["unknown"], found["impossible"]) == (3, 7, 2, 0)
    assert found["log_prob"] == pytest.approx(log_prob.sum())
    assert found["perplexity"] == pytest.approx(np.exp(-log_prob.mean()))
    assert found["known_perplexity"] == pytest.approx(np.exp(-known.mean()))
    assert found["word_perplexity"] == pytest.approx(np.exp(-known.sum() / 2))
    words = table(output(capsys, "ngram", "score", out, other, "--by", "word"))
    assert [row["word"] for row in words] == ["the", "bird", "sat", "<eos>", "<eos>", "no", "<eos>"]
    np.testing.assert_allclose(column(words, "log_prob"), log_prob, atol=1e-6)
    np.testing.assert_allclose(column(words, "surprisal"), -log_prob / math.log(2), atol=1e-5)
    assert [int(row["unknown"]) for row in words] == [0, 1, 0, 0, 0, 1, 0]
    assert main(["ngram", "score", str(out), str(other), "--by", "sentence"]) == 0
    captured = capsys.readouterr()
    assert "tokens 7; unknown 2" in captured.err
    sentences = table(captured.out)
    assert [row["text"] for row in sentences] == ["the bird sat", "", "no"]
    assert sum(column(sentences, "log_prob")) == pytest.approx(log_prob.sum(), abs=1e-5)
    assert "known perplexity" in output(capsys, "ngram", "score", out, other)


def scored(capsys, tmp_path, unigrams, words):
    """The figures of a text by a model of single words, what standard error has, and both files."""
    model, text = tmp_path / "model.arpa", tmp_path / "text.txt"
    rows = "".join(f"{row}\n" for row in unigrams)
    model.write_text(f"\\data\\\nngram 1={len(unigrams)}\n\\1-grams:\n{rows}\\end\\\n")
    text.write_text(f"{words}\n")
    assert main(["ngram", "score", str(model), str(text), "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err, model, text


def test_marks_that_are_left_out_are_not_counted_in_a_text_and_are_said(capsys, tmp_path):
    plain, model = tmp_path / "plain.txt", tmp_path / "model.arpa"
    plain.write_text("the cat sat\nthe dog sat\n" * 3)
    ngram(capsys, "train", plain, "--out", model)
    found = []
    for name, written in (("same", "the cat sat\n\nno\n"), ("marks", "The cat , sat .\n\nNo !\n")):
        file = tmp_path / f"{name}.txt"
        file.write_text(written)
        assert main(["evaluate", str(model), "--data", str(file), "--split", "all", "--json"]) == 0
        read = capsys.readouterr()
        found.append(json.loads(read.out))
        assert ("3 marks left out that the vocabulary lacks" in read.err) == (name == "marks")
        assert "1 of" in read.err
    same, marks = ({name: value for name, value in one.items() if name != "data"} for one in found)
    assert same == marks
    assert (marks["tokens"], marks["unknown"], marks["words"], marks["characters"]) == (
        7,
        1,
        7,
        len("the cat sat\n\nno\n"),
    )


def test_words_without_a_probability(capsys, tmp_path):
    found, err, model, text = scored(capsys, tmp_path, ["-99 <s>", "-0.5 </s>", "-0.2 a"], "a b")
    assert "1 word has no probability, since the model has no <unk>" in err
    assert found["impossible"] == found["unknown"] == 1
    assert found["perplexity"] == pytest.approx(10 ** (0.7 / 2))
    (row,) = table(output(capsys, "ngram", "score", model, text, "--by", "sentence"))
    assert row["log_prob"] == ""


def test_a_word_whose_probability_is_0_is_not_called_unknown(capsys, tmp_path):
    found, err, *_ = scored(capsys, tmp_path, ["-99 <s>", "-0.5 </s>", "-0.2 a", "-inf b", "-1 <unk>"], "a b b")
    assert "2 words have no probability, which is 0 in the model" in err
    assert found["unknown"] == 0


def test_marks_of_sentences_in_a_text_are_refused(capsys, text, tmp_path):
    model, marked = tmp_path / "model.arpa", tmp_path / "marked.txt"
    ngram(capsys, "train", text, "--out", model)
    marked.write_text("the cat sat\n<s> the cat </s>\n")
    for options in ((), ("--by", "word")):
        assert main(["ngram", "score", str(model), str(marked), *options]) == 2
        assert f"{marked}:2: the text has the word <" in capsys.readouterr().err


def test_pruning(capsys, text, tmp_path):
    whole, counted, small, cut = (tmp_path / f"{name}.arpa" for name in ("whole", "counted", "small", "cut"))
    sizes = ngram(capsys, "train", text, "--order", "3", "--out", whole)["ngrams"]
    fewer = ngram(capsys, "train", text, "--order", "3", "--prune", "0", "0", "3", "--out", counted)["ngrams"]
    assert fewer[:2] == sizes[:2]
    assert fewer[2] < sizes[2]
    found = ngram(capsys, "export", whole, "--prune-entropy", "0.01", "--out", small)
    assert sum(found["ngrams"]) < sum(sizes)
    assert ngram(capsys, "export", whole, "--order", "2", "--out", cut)["ngrams"] == sizes[:2]
    assert ngram(capsys, "score", small, text)["perplexity"] >= ngram(capsys, "score", whole, text)["perplexity"]


def test_one_running_stream(capsys, run, tmp_path):
    """The n-grams of the run's own text are the baseline of the run, from a file as well as counted for the mixture."""
    file = tmp_path / "stream.arpa"
    ngram(capsys, "train", "--like", run, "--order", "3", "--stream", "--out", file)
    assert ngram(capsys, "info", file)["reads"] == "one running stream"
    opened = TextRun(run)
    baseline = kneser_ney.train(opened.corpus().split("train").tokens, len(opened.vocabulary), 3)
    test = opened.split(opened.corpus(), "test")
    wanted = -average_probabilities(member_log_probs([opened], test, [baseline]), [1.0, 3.0]).mean()
    for mixed in ("3-gram=0.75", f"{file}=0.75"):
        found = json.loads(output(capsys, "evaluate", run, "--mix", mixed, "--json"))
        assert found["nll"] == pytest.approx(wanted, abs=1e-5)


def test_a_token_that_is_left_out_is_left_out_of_every_member(capsys, run):
    found = json.loads(output(capsys, "evaluate", run, "--mix", "3-gram=0.75", "--skip-first", "--json"))
    for one in (found, *found["members"]):
        total = one["nll"] * one["tokens"] / math.log(2)
        assert one["tokens"] == found["tokens"]
        assert one["bits_per_character"] * one["characters"] == pytest.approx(total)
    whole = json.loads(output(capsys, "evaluate", run, "--mix", "3-gram=0.75", "--json"))["members"][1]["tokens"]
    assert found["members"][1]["tokens"] == whole - 1


def test_a_file_is_read_though_it_is_named_as_counts_are(capsys, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ngram(capsys, "train", "--like", run, "--order", "1", "--stream", "--out", "3-gram")
    of_file, same, counted = (
        json.loads(output(capsys, "evaluate", run, "--mix", f"{name}=0.5", "--json"))["nll"]
        for name in ("3-gram", tmp_path / "3-gram", "1-gram")
    )
    assert of_file == same
    assert of_file == pytest.approx(counted, abs=1e-5)


def test_a_vocabulary_of_the_most_frequent_words(capsys, text, tmp_path):
    out = tmp_path / "model.arpa"
    ngram(capsys, "train", text, "--max-vocabulary", "4", "--out", out)
    assert ngram(capsys, "info", out)["words"] == 2


def test_letters(capsys, text, tmp_path):
    out = tmp_path / "letters.arpa"
    ngram(capsys, "train", text, "--tokenisation", "characters", "--out", out)
    assert ngram(capsys, "score", out, text, "--tokenisation", "characters")["unknown"] == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("train", "--out", "x"), "needs a text, or --like"),
        (("train", "TEXT", "--out", "x", "--prune", "1"), "--prune 1: give 0 for single words"),
        (("train", "TEXT", "--out", "x", "--prune", "0", "2", "1"), "no falling number"),
        (("train", "TEXT", "--out", "x", "--prune", "0", "1", "--stream"), "leave out --stream"),
        (("train", "TEXT", "--out", "x", "--like", "RUN", "--lowercase"), "--lowercase is given by the run"),
        (("train", "TEXT", "--out", "x", "--like", "RUN", "--min-count", "2"), "--min-count is given by the run"),
        (("info", "TEXT"), "no ARPA file"),
        (("export", "ARPA", "--order", "4", "--out", "x"), "n-grams of 3 words at most"),
        (("score", "ARPA", "none.txt"), "none.txt: cannot be read"),
    ],
)
def test_mistakes(capsys, run, arpa, text, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    places = {"TEXT": text, "RUN": run, "ARPA": arpa}
    assert line in refusal(capsys, "ngram", *(places.get(word, word) for word in arguments))
    assert not (tmp_path / "x").exists()


def members(run, arpa, split="test"):
    """The log-probabilities of a split under the network and under the n-gram model."""
    loaded = TextRun(run)
    read = loaded.corpus().split(split)
    aligned = AlignedNGram(read_arpa(arpa), loaded.vocabulary)
    return run_log_probs(loaded, read), aligned.log_prob(read.tokens, [loaded.first])


def test_evaluate(capsys, run, arpa):
    network, counts = members(run, arpa)
    found = json.loads(output(capsys, "evaluate", run, "--mix", f"{arpa}=0.3", "--json"))
    assert found["nll"] == pytest.approx(-np.log(0.7 * np.exp(network) + 0.3 * np.exp(counts)).mean(), rel=1e-6)
    assert found["settings"]["weights"] == [0.7, 0.3]
    twice = json.loads(output(capsys, "evaluate", run, run, "--mix", f"{arpa}=0.3", "--json"))
    assert [row["nll"] for row in twice] == [found["nll"]] * 2
    together = json.loads(output(capsys, "evaluate", run, run, "--ensemble", "--mix", f"{arpa}=0.3", "--json"))
    assert together["nll"] == pytest.approx(found["nll"], rel=1e-6)
    assert together["settings"]["weights"] == [0.35, 0.35, 0.3]


@pytest.mark.slow
def test_each_model_of_a_mixture_is_evaluated_alone_too(capsys, run, arpa, tmp_path):
    network_log_probs, counts_log_probs = members(run, arpa)
    network, counts = -network_log_probs.mean(), -counts_log_probs.mean()
    alone = json.loads(output(capsys, "evaluate", run, "--json"))
    found = json.loads(output(capsys, "evaluate", run, "--mix", f"{arpa}=0.3", "--json"))["members"]
    assert [row["run"] for row in found] == [str(run), str(arpa)]
    assert [row["nll"] for row in found] == pytest.approx([network, counts], rel=1e-6)
    assert found[0]["bits_per_character"] == pytest.approx(alone["bits_per_character"], rel=1e-6)
    other = shutil.copytree(run, tmp_path / "other")
    tensors, facts = checkpoint.load(other / "model.safetensors")
    checkpoint.save(other / "model.safetensors", {name: 0.5 * value for name, value in tensors.items()}, facts)
    both = [network_log_probs, members(other, arpa)[0]]
    mixed = ("evaluate", run, other, "--ensemble", "--weights", "3", "1", "--mix", f"{arpa}=0.3")
    found = json.loads(output(capsys, *mixed, "--json"))["members"]
    assert [row["run"] for row in found] == [str(run), str(other), f"{run} + {other}", str(arpa)]
    networks = -np.log(0.75 * np.exp(both[0]) + 0.25 * np.exp(both[1])).mean()
    assert [row["nll"] for row in found] == pytest.approx([network, -both[1].mean(), networks, counts], rel=1e-6)
    lines = output(capsys, *mixed).splitlines()
    shown = [re.findall(r"\d+\.\d+", line) for line in lines]
    assert [sum(f"{math.exp(nll):.2f}" in line for line in shown) for nll in (network, networks, counts)] == [1, 1, 1]


def test_weights_are_found_on_the_valid_split(capsys, run, arpa):
    assert main(["evaluate", str(run), "--mix", str(arpa), "--json"]) == 0
    captured = capsys.readouterr()
    weights = json.loads(captured.out)["settings"]["weights"]
    assert f"mixture: network {weights[0]:.4f}, {arpa} {weights[1]:.4f} (EM on 200 tokens, valid)" in captured.err
    valid = members(run, arpa, "valid")

    def nll(share):
        return -np.log((1 - share) * np.exp(valid[0]) + share * np.exp(valid[1])).mean()

    best = min(np.linspace(0.001, 0.999, 999), key=nll)
    assert weights[1] == pytest.approx(best, abs=0.01)


@pytest.mark.slow
def test_score(capsys, run, arpa):
    test = TextRun(run).corpus().source + "/test.txt"
    evaluated = json.loads(output(capsys, "evaluate", run, "--mix", f"{arpa}=0.4", "--json"))
    for by in ("sentence", "token", "word"):
        rows = table(output(capsys, "score", run, test, "--document", "--by", by, "--mix", f"{arpa}=0.4"))
        total = -sum(column(rows, "surprisal")) * math.log(2)
        assert -total / evaluated["tokens"] == pytest.approx(evaluated["nll"], rel=1e-4)


def test_the_column_of_an_ngram_model(capsys, run, arpa, text):
    text.write_text("w1 w12 w3\nw3 q9 w1\n")
    assert main(["score", str(run), str(text), "--by", "word", "--ngram-column", str(arpa)]) == 0
    captured = capsys.readouterr()
    assert f"{arpa}: 1 of 8 words are not in it" in captured.err
    rows = table(captured.out)
    model = read_arpa(arpa)
    wanted = model.score(model.encode(["w1", "w12", "w3", "<eos>", "w3", "q9", "w1", "<eos>"]))[0] / -math.log(2)
    np.testing.assert_allclose(column(rows, "ngram_surprisal"), wanted, atol=1e-5)
    alone = table(output(capsys, "score", run, text, "--by", "word"))
    assert [row["surprisal"] for row in rows] == [row["surprisal"] for row in alone]
    left = ("--by", "word", "--ngram-column", arpa, "--unknown", "exclude")
    assert table(output(capsys, "score", run, text, *left))[5]["ngram_surprisal"] == ""
    assert "--by word" in refusal(capsys, "score", run, text, "--ngram-column", arpa)


def test_rescore(capsys, run, arpa, tmp_path):
    nbest = tmp_path / "nbest.tsv"
    nbest.write_text("u1\t0\tw1 w2 w3\nu1\t0\tw3 w2\nu2\t0\tw4 w5\n")
    texts = tmp_path / "texts.txt"
    texts.write_text("w1 w2 w3\nw3 w2\nw4 w5\n")
    rows = table(output(capsys, "rescore", run, nbest, "--all", "--mix", f"{arpa}=0.4"))
    scored = table(output(capsys, "score", run, texts, "--by", "token", "--mix", f"{arpa}=0.4"))
    wanted = {}
    for row in scored:
        wanted[row["sentence"]] = wanted.get(row["sentence"], 0.0) + float(row["log_prob"])
    by_text = {row["text"]: float(row["log_prob"]) for row in rows}
    found = [by_text[line] for line in texts.read_text().splitlines()]
    assert found == pytest.approx(list(wanted.values()), abs=1e-4)
    assert output(capsys, "rescore", run, nbest, "--carry", "--mix", f"{arpa}=0.4")


def test_generate(capsys, run, arpa, tmp_path):
    """With almost all the weight the n-gram model chooses the words."""
    greedy = ("--temperature", "0", "--tokens", "12", "--raw", "--unk")
    words = output(capsys, "generate", run, "--mix", f"{arpa}=0.999", *greedy).split()
    loaded = TextRun(run)
    aligned = AlignedNGram(read_arpa(arpa), loaded.vocabulary)
    history = [loaded.first]
    for _ in range(12):
        history.append(int(aligned.log_probs(np.array([history]))[0, -1].argmax()))
    assert words == [word for word in loaded.vocabulary.decode(history[1:]) if word != "<eos>"]
    line = refusal(capsys, "generate", run, "--mix", f"{arpa}=0.5", "--save-state", tmp_path / "state")
    assert "--save-state does not belong to --mix" in line


@pytest.mark.parametrize(
    ("mix", "line"),
    [
        (("none.arpa",), "none.arpa: cannot be read"),
        (("0-gram",), "give an ARPA file, or 1-gram to 99-gram"),
        (("ARPA=1.5",), "above 0 and below 1"),
        (("ARPA=much",), "expected a weight after ="),
        (("ARPA=0.5", "ARPA"), "give every n-gram model a weight, or none"),
        (("ARPA=0.5", "ARPA=0.5"), "leave the network a part of 1"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "score", "rescore", "generate"])
def test_impossible_mixtures(capsys, run, arpa, text, command, mix, line):
    nbest = text.with_name("nbest.tsv")
    nbest.write_text("u1\t0\tw1\nu1\t0\tw2\n")
    more = {"score": [text], "rescore": [nbest]}.get(command, [])
    options = [part for one in mix for part in ("--mix", one.replace("ARPA", str(arpa)))]
    assert line in refusal(capsys, command, run, *more, *options)


def test_options_that_do_without_a_mixture(capsys, run, arpa, text):
    mix = ("--mix", f"{arpa}=0.5")
    assert "--adapt does not belong to --mix" in refusal(capsys, "score", run, text, "--adapt", *mix)
    assert "--beam does not belong to --mix" in refusal(capsys, "evaluate", run, "--beam", "2", *mix)
    line = refusal(capsys, "evaluate", run, "--ensemble", "--weights", "2", "--mix", arpa)
    assert "EM finds all weights" in line


def test_words_that_one_of_both_lacks_are_reported(capsys, run, text, tmp_path):
    text.write_text("w1 w2 strange\nw2 w1\n" * 3)
    out = tmp_path / "other.arpa"
    ngram(capsys, "train", text, "--out", out)
    assert main(["evaluate", str(run), "--mix", f"{out}=0.1"]) == 0
    error = capsys.readouterr().err
    size = len(TextRun(run).vocabulary)
    assert f"{out}: {size - 4} of {size} words of {run} are not in it and share its probability of <unk>" in error
    assert f"{out}: 1 of its 6 words are not in {run} and are <unk> there" in error


def test_a_single_file_is_read_whole_with_the_vocabulary_of_a_run(capsys, run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("w1 w2 w3\n" * 40)
    found = ngram(capsys, "train", text, "--like", run, "--out", tmp_path / "m.arpa")
    assert found["tokens"] == 160
    assert found["ngrams"][0] == len(TextRun(run).vocabulary) + 1
    assert open_corpus(text, TextRun(run).options, vocabulary=TextRun(run).vocabulary)
