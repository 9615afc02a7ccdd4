"""elman grammar and elman evaluate --pairs, from rules to a page."""

import json
import re
from itertools import islice

import msgspec
import pytest

from elman.analysis.grammar import SEED, examine, options_of, write_findings
from elman.cli import main
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.sample import sentences, wish_of
from elman.tasks.text.run import TextRun

RECIPE = """
title = "toy"
[data]
kind = "text"
[data.grammar]
sentences = 60
valid = 10
test = 10
stages = [{ epochs = 1, complex = 0.0 }, { complex = 0.5 }]
[model]
encoder = { kind = "lookup", size = 6 }
core = { kind = "stack", cell = { kind = "elman" }, sizes = [8] }
[training]
epochs = 2
batch_size = 4
optimiser = { kind = "adam", lr = 0.01 }
window = { length = 10 }
memory = [{ epochs = 1, words = [3, 4] }]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grammar")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(folder / "cache"))
        (folder / "toy.toml").write_text(RECIPE)
        assert main(["train", str(folder / "toy.toml"), "--out", str(folder / "run"), "--threads", "1"]) == 0
        yield folder / "run"


def test_generate_writes_a_folder_once(tmp_path, capsys):
    out = tmp_path / "text"
    arguments = ["grammar", "generate", "prepositions", "--sentences", "20", "--valid", "5", "--test", "5"]
    assert main([*arguments, "--complex", "0.5", "--max-depth", "1", "--out", str(out), "--json"]) == 0
    splits = json.loads(capsys.readouterr().out)["splits"]
    assert [row["split"] for row in splits] == ["train", "valid", "test"]
    assert len((out / "train.txt").read_text().splitlines()) == 20
    assert main([*arguments, "--out", str(out)]) == 2
    assert "holds a text already; choose another --out" in capsys.readouterr().err
    assert main(["grammar", "generate", "elman-1991", "--sentences", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["grammar", "generate", "elman-1991", "--complex", "1.5"]) == 2
    assert "--complex is 1.5" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_is_tested_on_fresh_sentences(run, tmp_path, capsys):
    page = tmp_path / "page.html"
    arguments = ["grammar", "test", str(run), "--sentences", "120", "--out", str(page)]
    assert main([*arguments, "--json", "--walk", "boys who Mary chases feed cats"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentences"] == 120
    assert [line["label"] for line in found["by_levels"]][:2] == ["0 levels", "1 level"]
    assert found["cross_entropy"]["model"] > found["cross_entropy"]["grammar"]
    text = page.read_text()
    assert "boys who Mary chases feed cats" in text
    assert text.count("<svg") == 2
    assert main(arguments) == 0
    assert "Agreement by attractors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("walk", "says"), [("", "a sentence without words"), ("boys run", "the model does not know the word 'run'")]
)
def test_a_walk_that_cannot_be_drawn(run, walk, says, capsys):
    assert main(["grammar", "test", str(run), "--sentences", "5", "--walk", walk]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line == f"elman: walk {walk!r}: {says}; give words of the grammar"


@pytest.mark.slow
def test_what_the_figures_are_not_of_is_reported(run, tmp_path, capsys, monkeypatch):
    """Sentences of the text are counted where it can be made again, and not where it is another one that is missing."""
    whole = TextRun(run)
    options = msgspec.structs.replace(whole.data.grammar, complex=0.0, stages=(), max_length=3)
    found = examine(whole, options, count=20)
    assert found.seen > 0
    assert "Sentences have 3 words at most (max_length)" in capsys.readouterr().err
    text = write_findings(tmp_path / "page.html", found).read_text()
    assert "computed for sentences of any length" in text
    assert f"20 fresh sentences, {found.seen} of which are in the training text." in text
    monkeypatch.setattr(TextRun, "source", str(tmp_path / "away"))
    found = examine(whole, options, count=20)
    assert found.summary()["sentences_seen_in_training"] is None
    assert "the training text is not there" in write_findings(tmp_path / "page.html", found).read_text()


@pytest.mark.slow
def test_the_text_of_a_run_is_made_again(run):
    source = TextRun(run).corpus().source
    for path in sorted(TextRun(run).path.parent.rglob("cache/grammars/*/*")):
        path.unlink()
    for folder in TextRun(run).path.parent.rglob("cache/grammars/*"):
        folder.rmdir()
    assert TextRun(run).corpus().source == source


def test_another_grammar_has_other_words(run, capsys):
    assert main(["grammar", "test", str(run), "--grammar", "prepositions"]) == 2
    assert "or leave these out with --unknown exclude" in capsys.readouterr().err


def test_unknown_words_of_a_grammar_are_left_out(run, tmp_path, capsys):
    """The counts of the notice, of the JSON and of the page are those of the sentences drawn, counted here."""
    rules = tmp_path / "strange.grammar"
    text = read_grammar("elman-1991").text
    rules.write_text(re.sub(r"\bdog\b", "hound", text).replace("walks", "trots"))
    command = ["grammar", "test", str(run), "--grammar", str(rules), "--sentences", "80"]
    assert main(command) == 2
    assert "or leave these out with --unknown exclude" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main([*command, "--unknown", "exclude", "--out", str(page), "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)["unknown"]
    wish = wish_of(options_of(TextRun(run), str(rules)))
    drawn = list(islice(sentences(read_grammar(str(rules)), wish, f"0 {SEED}"), 80))
    strange = [one for one in drawn if {"hound", "trots"} & set(one.words)]
    assert found["words"] == ["hound", "trots"]
    assert 0 < found["sentences"] < 80
    assert found["sentences"] == len(strange)
    assert f"(hound, trots): {len(strange)} of 80 sentences and {found['pairs']} of" in told.err
    assert f"{len(strange)} of 80 sentences" in page.read_text()


def test_pairs_are_judged(run, tmp_path, capsys):
    path = tmp_path / "verbs.tsv"
    path.write_text("boys walk\tboys walks\tverb\ndog lives\tdog live\tverb\nboys run\tboys runs\tverb\n")
    assert main(["minimal-pairs", str(run), "--pairs", str(path), "--json"]) == 2
    assert "'run' is not in the vocabulary" in capsys.readouterr().err
    path.write_text("boys walk\tboys walks\tverb\ndog lives\tdog live\tverb\n")
    assert main(["minimal-pairs", str(run), "--pairs", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["phenomena"]
    assert [(row["phenomenon"], row["judged"]) for row in rows] == [("verb", 2), ("all", 2)]
    assert main(["minimal-pairs", str(run), "--pairs", str(path), "--method", "dynamic"]) == 2
    assert "--method is not an option" in capsys.readouterr().err
