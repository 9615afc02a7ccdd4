"""elman metrics and elman data trees, as one types them."""

import json

import pytest

from elman.cli import main

TREES = [
    "(ROOT (S (NP (PRP We)) (VP (VBP sleep)) (. .)))",
    "(ROOT (S (NP (DT A) (NN cat)) (VP (VBZ sees) (NP (NNS mice))) (. .)))",
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, lines):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    write("ref", ["a b c d e", "f g h i j"])
    write("good", ["a b c d e", "f g h i k"])
    write("bad", ["x", "y"])
    write("trees", TREES)
    write("linear", ["(S (NP XX )NP (VP XX )VP XX )S", "(S (NP XX )NP"])
    return tmp_path


def said(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_one_system_and_another(files, capsys):
    told = said(capsys, "metrics", "ref", "bad", "--against", "good", "--kind", "headlines", "--samples", "50")
    assert told["lines"] == 2
    assert [figure["value"] for figure in told["systems"]["good"]] == pytest.approx([90, 87.5, 90, 50])
    assert told["differences"][0]["difference"] == pytest.approx(90)
    assert main(["metrics", "ref", "good", "--against", "bad"]) == 0
    out = capsys.readouterr().out
    assert "tok:none" in out
    assert "chrF" in out


def test_sequences_with_and_without_sources(files, capsys):
    (files / "pairs").write_text("b o w\tB OW\nb o w\tB AW\nt o\tT UW\n")
    (files / "out").write_text("B AW\nB AW\nT\n")
    kind = ("--kind", "sequences", "--samples", "20")
    told = said(capsys, "metrics", "pairs", "out", *kind)
    assert {one["name"]: one["value"] for one in told["systems"]["out"]} == {"exact match": 50, "error rate": 25}
    told = said(capsys, "metrics", "ref", "good", *kind, "--unit", "characters")
    assert [one["value"] for one in told["systems"]["good"]] == pytest.approx([50, 100 / 18])


def test_a_treebank_and_linear_output(files, capsys):
    told = said(capsys, "metrics", "trees", "linear", "--kind", "trees", "--samples", "20")
    figures = {figure["name"]: figure["value"] for figure in told["systems"]["linear"]}
    assert figures["well-formed"] == 50
    assert 0 < figures["bracket F1"] < 100
    same = said(capsys, "metrics", "trees", "trees", "--kind", "trees", "--samples", "20")
    assert same["systems"]["trees"][0]["value"] == 100


def test_a_treebank_becomes_pairs(files, capsys):
    assert said(capsys, "data", "trees", "trees", "pairs.tsv")["trees"] == 2
    first = (files / "pairs.tsv").read_text().splitlines()[0]
    assert first == "We sleep .\t(S (NP XX )NP (VP XX )VP XX )S"


def test_a_single_line_has_no_interval_worth_the_name(tmp_path, capsys):
    for name, text in (("one", "a\n"), ("two", "a\nb\n")):
        (tmp_path / name).write_text(text)
        file = str(tmp_path / name)
        assert main(["metrics", file, file, "--kind", "sequences"]) == 0
        printed = capsys.readouterr()
        assert ("exact match: no interval, since resampling needs two sentences or more" in printed.err) == (
            name == "one"
        )
        assert ("100.00 (\N{EN DASH})" in printed.out) == (name == "one")
    one = str(tmp_path / "one")
    facts = said(capsys, "metrics", one, one, "--against", one, "--kind", "sequences")
    assert all(row["low"] is row["high"] is None for row in [*facts["systems"][one], *facts["differences"]])


def test_output_may_be_blank_throughout(files, capsys):
    (files / "blank").write_text("\n\n")
    found = said(capsys, "metrics", "ref", "blank", "--kind", "sequences")["systems"]["blank"]
    assert [row["value"] for row in found] == [0, 100]
    (files / "empty").write_text("")
    assert main(["metrics", "ref", "empty"]) == 2
    assert "empty has 0 lines and ref has 2 lines" in capsys.readouterr().err


def test_metrics_mistakes_are_one_line(files, capsys):
    (files / "short").write_text("one\n")
    (files / "half").write_text("a\tb\nc\n")
    (files / "broken").write_text("(S (NP (NN x))\n")
    for words, says in {
        ("metrics", "ref", "short"): "short has 1 lines and ref has 2 lines; line n must be",
        ("metrics", "half", "ref", "--kind", "sequences"): "half:2: 0 tabs; every line is a source, one tab and",
        ("metrics", "ref", "nothing"): "nothing: cannot be read",
        ("metrics", "ref", "bad", "--samples", "1"): "--samples is 1; it must be 10 or more",
        ("metrics", "broken", "short", "--kind", "trees"): "broken:1: a tree begins here",
        ("data", "trees", "broken", "out.tsv"): "broken:1: a tree begins here",
    }.items():
        assert main(list(words)) == 2
        error = capsys.readouterr().err
        assert says in error
        assert len(error.splitlines()) == 1
    assert not (files / "out.tsv").exists()
