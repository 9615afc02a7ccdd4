"""elman reading-times, with a small run and an n-gram model."""

import json
import sys

import numpy as np
import pytest

import elman
from elman.analysis.reading_times import measure
from elman.cli import main
from elman.data.reading_times import Word
from support.commands import complaint, output, table, trained

LINES = ("w1 w12 w3 w4 w2", "w3, w1 w0 w7 w8", "w2 w2 w5 w11 w1", "w9 w1 w4 w14 w3 w6", "w3 w1 w3 w0", "w5 w16 w7 w8")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("statsmodels")
    return trained("words", tmp_path_factory)


@pytest.fixture
def times(tmp_path, run):
    """Readers whose times depend on the surprisal of the run."""
    rng, rows = np.random.default_rng(0), ["WorkerId\titem\tzone\tword\tRT"]
    scored = elman.load(run).score(LINES)
    for item, (line, (tokens, log_probs)) in enumerate(zip(LINES, scored, strict=True)):
        bits = [
            -float(one) / np.log(2) for one, token in zip(log_probs, tokens, strict=True) if token not in (",", "<eos>")
        ]
        for reader in range(8):
            for place, (word, own) in enumerate(zip(line.split(), bits, strict=True)):
                time = 300 + 10 * reader + 60 * own + rng.normal(0, 20)
                rows.append(f"r{reader}\t{item}\t{place + 1}\t{word}\t{time:.1f}")
    file = tmp_path / "times.tsv"
    file.write_text("\n".join([*rows, "r0\t0\t2\tw12\t20", "r0\t0\t3\tw3\tNA"]) + "\n")
    return file


def test_models_are_compared(capsys, run, times, tmp_path):
    arpa = tmp_path / "two.arpa"
    output(capsys, "ngram", "train", run.parent / "corpus", "--out", arpa, "--order", "2")
    files = {name: tmp_path / f"out.{name}" for name in ("tsv", "html", "svg")}
    command = ("reading-times", run, arpa, "--times", times, "--folds", "3", "--json")
    assert (
        main(
            [*map(str, command), "--out", str(files["tsv"]), "--html", str(files["html"]), "--plot", str(files["svg"])]
        )
        == 0
    )
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "1 missing" in said.err
    assert "1 outside 100 to 3000" in said.err
    assert found["random"] == ["subject", "item"]
    assert found["frequencies"] == f"the training text of {run}"
    effects = {one["name"]: one for one in found["models"][0]["effects"]}
    assert abs(effects["surprisal"]["estimate"] - 60) < 3 * effects["surprisal"]["error"]
    assert found["models"][0]["delta"] > 0.03
    assert [row["b"] for row in found["held_out"]] == [str(run), str(arpa)]
    rows = table(files["tsv"].read_text())
    assert len(rows) == found["used"]
    (_, log_probs), *_ = elman.load(run).score([LINES[0]])
    second = next(row for row in rows if row["item"] == "0" and row["word"] == "w12")
    assert float(second[f"surprisal of {run}"]) == pytest.approx(-log_probs[1] / np.log(2), abs=1e-5)
    assert float(second[f"surprisal, 1 before of {run}"]) == pytest.approx(-log_probs[0] / np.log(2), abs=1e-5)
    assert "What surprisal adds" in files["html"].read_text()
    assert files["svg"].read_text().count("<svg") == (tmp_path / "out-effects.svg").read_text().count("<svg") == 1


def test_a_model_in_the_baseline_and_slopes(capsys, run, times, tmp_path):
    arpa, counts = tmp_path / "one.arpa", tmp_path / "counts.txt"
    output(capsys, "ngram", "train", run.parent / "corpus", "--out", arpa, "--order", "1")
    counts.write_text("".join(f"w{number} {50 - number}\n" for number in range(20)))
    options = [
        "--spill-over",
        "0",
        "--slopes",
        "--random",
        "subject",
        "--folds",
        "0",
        "--log",
        "--json",
        "--context",
        "text",
    ]
    command = ("reading-times", run, "--times", times, "--baseline", arpa, "--frequencies", counts, *options)
    found = json.loads(output(capsys, *command))
    names = [one["name"] for one in found["baseline"]["effects"]]
    assert names == ["intercept", "length", "log frequency", "position", f"surprisal of {arpa}"]
    assert [one["name"] for one in found["models"][0]["effects"]] == [*names, "surprisal"]
    assert list(found["models"][0]["variances"]) == ["subject", "subject: surprisal", "residual"]
    assert (found["held_out"], found["pairs"], found["frequencies"]) == ([], [], str(counts))


def test_unknown_words_are_left_out_with_those_after_them(capsys, run, times):
    times.write_text(times.read_text().replace("\tw12\t", "\tzebra\t"))
    command = ("reading-times", run, "--times", times, "--json", "--folds", "0", "--unknown")
    without = json.loads(output(capsys, *command, "exclude"))
    assert without["unknown_words"] == {str(run): 2}  # the other one has a comma, which the run lacks
    assert without["left_out"]["of words that a model lacks, or after one"] == 3 * 8
    kept = json.loads(output(capsys, *command, "score"))
    assert kept["used"] == without["used"] + 3 * 8


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_words_of_several_tokens_sum_to_their_sentence(tmp_path_factory, kind):
    run = elman.load(trained(kind, tmp_path_factory))
    words = [Word("1", 0, at in (0, 3), word) for at, word in enumerate(["w1", "w2", "w3w4", "w5", "w1"])]
    words += [Word("2", 1, at == 0, word) for at, word in enumerate(["w4 w5", "w0"])]
    for sentences, lines in ((True, ["w1 w2 w3w4", "w5 w1", "w4 w5 w0"]), (False, ["w1 w2 w3w4\nw5 w1", "w4 w5 w0"])):
        found = measure(run, words, "t", sentences=sentences, word_ends=True, exclude=False).surprisal
        wholes = [-float(np.sum(log_probs)) / np.log(2) for _, log_probs in run.score(lines)]
        ends = np.cumsum([len(line.split()) - ("w4 w5" in line) for line in lines])
        sums = [part.sum() for part in np.split(found, ends[:-1])]
        if kind == "words":  # the ends of sentences are tokens of their own
            assert all(own < whole for own, whole in zip(sums, wholes, strict=True))
            (_, first), *_ = run.score(lines[-1:])
            np.testing.assert_allclose(found[-2:], -np.array([first[:2].sum(), first[2]]) / np.log(2), rtol=1e-4)
        else:
            np.testing.assert_allclose(sums, wholes, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--longest", "101"), "no time is left"),
        (("--log", "--shortest", "0"), "give --shortest above 0"),
        (("--columns", "time=GAZE"), "no column 'GAZE'"),
        (("--columns", "GAZE"), "write KIND=HEADING"),
        (("--plot", "drawing.pdf"), "ends in .svg or .png"),
        (("--random", "word", "--slopes"), "--slopes belong to readers"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(capsys, run, times, options, said):
    assert said in complaint(capsys, "reading-times", run, "--times", times, *options)


def test_a_drawing_of_ones_own_is_kept(capsys, run, times, tmp_path):
    """Also the second one, whose name is not given."""
    (tmp_path / "drawn-effects.svg").write_text("mine")
    said = complaint(capsys, "reading-times", run, "--times", times, "--plot", tmp_path / "drawn.svg")
    assert "drawn-effects.svg is there already" in said
    assert (tmp_path / "drawn-effects.svg").read_text() == "mine"
    assert not (tmp_path / "drawn.svg").exists()


def test_the_extra_is_named_where_it_is_missing(capsys, monkeypatch, run, times):
    monkeypatch.setitem(sys.modules, "statsmodels.regression.mixed_linear_model", None)
    assert "pip install 'elman[reading]'" in complaint(capsys, "reading-times", run, "--times", times)
