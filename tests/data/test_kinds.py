"""What kind of data files and folders look like."""

import gzip
import itertools
import zipfile

import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.kinds import look
from elman.data.text.sources import find_sections
from elman.kinds.music.corpus import midi_files
from elman.kinds.pairs.files import find_files
from elman.kinds.pairs.record import PairOptions
from elman.kinds.series.corpus import open_series
from elman.kinds.series.record import SeriesOptions

PROSE = "It was a bright cold day in April,\nand the clocks were striking thirteen.\n" * 30

TREES = {"trees", "pairs", "text", "tags"}


def written(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    ("name", "data", "kind", "possible"),
    [
        ("novel.txt", PROSE, "text", {"text"}),
        ("novel", PROSE.encode("utf-16"), "text", {"text"}),
        ("one.txt", PROSE.replace("\n", " ") * 50, "text", {"text"}),
        ("tune.mid", b"MThd\0\0\0\6", "music", {"music"}),
        ("text.mid", PROSE, None, {"music", "text"}),
        ("text.npy", PROSE, None, {"series", "text"}),
        ("values.csv", "day,price\nmonday,1\ntuesday,2.5\n", "series", {"series", "text"}),
        ("damaged.csv", "a,b\n1,2\n3\n", "text", {"series", "text"}),
        ("comma.csv", "day;price\n2020-01-01;1,5\n2020-01-02;2,5\n", "series", {"series", "text"}),
        ("comma.txt", "1;1,3;2,5\n2;1,4;2,6\n", "series", {"series", "text"}),
        ("dated.txt", "2020-01-01\t1,5\n2020-01-02\t2\n", "series", {"series", "text", "pairs", "tags"}),
        ("one-wrong.csv", "a,b\n" + "1,2\n" * 20 + "3\n", "series", {"series", "text"}),
        ("titled.csv", "Station: A\nday,x\n" + "monday,1.5\n" * 30, "series", {"series", "text"}),
        ("one-word.txt", "a b\n" + "1 2\n" * 20 + "3 x\n", "series", {"series", "text", "tags"}),
        ("cells.csv", "a,b\n" + '1,"two\nlines"\n' * 9000, "series", {"series", "text"}),
        ("dates.csv", "day,note\n2020-01-01,a\n2020-01-02,b\n", "text", {"series", "text"}),
        ("scores.csv", "text,mark\n" + "the cat sees it,good\n" * 9, "text", {"series", "text"}),
        ("values.txt", "1 2\n3 4\n", "series", {"series", "text", "tags"}),
        ("wave.dat", "0.5\n-1e-3\n", "series", {"series", "text"}),
        ("pairs.tsv", "a dog\tein Hund\n" * 30, "pairs", {"pairs", "text", "series", "tags"}),
        ("numbers.tsv", "a\tb\n" + "1\t2\n" * 30, "series", {"pairs", "text", "series", "tags"}),
        ("trees.txt", "(S (NP (DT the) (NN cat)) (VP (VBZ sits)))\n" * 30, "trees", TREES),
        ("bank.txt", "doc-1\t(S (NP (DT the) (NN cat)) (VP (VBZ sits)))\n" * 30, "trees", TREES),
        ("chunks.txt", "the DT B-NP\ncat NN I-NP\n\nit PRP B-NP\nsits VB O\n" * 9, "tags", {"tags", "pairs", "text"}),
        ("ragged.txt", "cat\tNN\nsits\tVB\n\n" * 12 + "it\nsits\tVB\n", "tags", {"tags", "pairs", "text"}),
        ("one.conllu", "1\tcat\t_\tNOUN\t_\t_\t_\t_\t_\t_\n" * 2, "tags", {"tags", "pairs", "text"}),
        ("empty.txt", "", "text", {"text", "music", "pairs", "series", "trees", "tags"}),
    ],
)
def test_files(tmp_path, name, data, kind, possible):
    found = look(written(tmp_path / name, data))
    assert (found.kind, found.possible) == (kind, possible)


@pytest.mark.parametrize(
    ("start", "what"),
    [(b"%PDF-1.7\n", "PDF"), (b"PK\x03\x04docx", "archive"), (b"\x1f\x8b\x08", "gzip"), (b"{\\rtf1", "RTF")],
)
def test_files_that_have_to_be_converted(tmp_path, start, what):
    found = look(written(tmp_path / "novel.txt", start + b"\x00" * 40))
    assert found.kind is None
    assert what in found.what


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("a.tsv.gz", "a dog\tein Hund\n" * 30, "lines of two columns with a tab between"),
        ("a.csv.gz", "a,b\n" + "1,2\n" * 30, "a table of numbers"),
        ("a.mid.gz", "MThd", "a MIDI file"),
        ("a.npz.gz", "PK\3\4", "an archive"),
    ],
)
def test_compressed_files_that_are_no_texts_have_to_be_unpacked(tmp_path, name, data, what):
    found = look(written(tmp_path / name, gzip.compress(data.encode())))
    assert (found.kind, found.possible, found.advice) == (None, {"text"}, "unpack it first")
    assert found.what.startswith(f"a compressed file which looks like {what}")
    assert look(written(tmp_path / name, gzip.compress(PROSE.encode()))).kind == "text"
    assert look(written(tmp_path / name, gzip.compress(PROSE.encode())[:-9])).kind == "text"  # damage is for the reader


def test_arrays(tmp_path):
    np.save(tmp_path / "one.npy", np.zeros(5))
    np.savez(tmp_path / "many.npz", x=np.zeros(5))
    np.savez(tmp_path / "rolls.npz", train_roll=np.zeros((5, 88)), train_len=np.array([5]))
    np.savez(tmp_path / "first.npz", train_len=np.array([5]), train_roll=np.zeros((5, 88)))
    assert look(tmp_path / "first.npz").kind == "music"
    assert [look(tmp_path / f"{name}").kind for name in ("one.npy", "many.npz", "rolls.npz")] == [
        "series",
        "series",
        "music",
    ]
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("word/document.xml", "x")
    assert look(tmp_path / "other.npz").kind is None


def test_folders(tmp_path):
    text = written(tmp_path / "text" / "corpus.train.txt", PROSE).parent
    music = written(tmp_path / "music" / "train" / "a.mid", b"MThd").parents[1]
    flat = written(tmp_path / "flat" / "a.MID", b"MThd").parent
    series = written(tmp_path / "series" / "train.csv", "a,b\n1,2\n2,3\n").parent
    assert [look(folder).kind for folder in (text, music, flat, series)] == ["text", "music", "music", "series"]
    assert look(tmp_path) is None
    assert look(tmp_path / "nothing") is None


@pytest.mark.parametrize("source", ["corpus", "corpus/tanaka"])
def test_parallel_files(tmp_path, source):
    for split in ("train", "dev", "test"):
        for language in ("ja", "en"):
            written(tmp_path / "corpus" / f"tanaka.{split}.{language}", "a\n")
    written(tmp_path / "corpus" / "README.md", "notes")
    found = look(tmp_path / source)
    assert (found.kind, found.form, found.languages) == ("pairs", "parallel", ("en", "ja"))


def test_parallel_files_beside_others(tmp_path):
    for name in ("train.en", "train.ja", "valid.en", "valid.ja", "test.en", "test.ja"):
        written(tmp_path / name, b"a b c\n" * 9)
    for name in ("README", "README.md", "notes.log", "train.txt", "train.valid", "script.py"):
        written(tmp_path / name, b"other\n")
    assert look(tmp_path).languages == ("en", "ja")


def test_two_parallel_files(tmp_path):
    written(tmp_path / "book.de", "ein\n")
    written(tmp_path / "book.fr", "un\n")
    assert look(tmp_path / "book").languages == ("de", "fr")
    written(tmp_path / "book.it", "uno\n")
    assert look(tmp_path / "book") is None


TREE = "(S (NP (DT the) (NN cat)) (VP (VBZ sits)))\n"
SQUARE = str.maketrans("()", "[]")
TAGGED = "the_DT cat_NN sits_VBZ ._.\n"
WORDS = [f"{a}{b}{c}" for a in "ABC" for b in "DEF" for c in "GIH"]
ENTRIES = "".join(f"{word}  {' '.join(word)}\n" for word in WORDS)


@pytest.mark.parametrize(
    ("data", "kind", "form"),
    [
        (TREE.lower().replace(" (", "\n   (") * 30, "trees", "trees"),
        ("  ( (s\n" + "    (np (dt the) (nn cat))\n    (vp (vbz sits))))\n" * 1, "trees", "trees"),
        (f"# by hand\n{TREE * 30}", "trees", "trees"),
        ("".join(f"{at} {TREE.replace('(VP', '(VP (RB now)')}" for at in range(30)), "trees", "trees"),
        (TREE.translate(SQUARE) * 30, "trees", "trees"),
        (f"# [by hand]\n{TREE * 30}", "trees", "trees"),
        ("A [note] on [the same] page, and [another one] there.\n" * 30, "text", None),
        (TAGGED * 9, "tags", "joined"),
        (TAGGED.replace("_", "/").lower() * 9, "tags", "joined"),
        (ENTRIES, "pairs", "pronunciations"),
        (";;; comment\n" + ENTRIES.replace("  ", "\t"), "pairs", "pronunciations"),
        (ENTRIES.replace("  ", " "), "pairs", "pronunciations"),
        ("a rose is red and is a rose\n" * 40, "text", None),
        ("".join(f"{word} {'b a ' * 3}\n" for word in range(50)), "text", None),
        ("A snake_case name and/or another_one in (a text) of words.\n" * 30, "text", None),
        ("(An aside.) The (NN) is (a tag) here (as said).\n" * 30, "text", None),
    ],
)
def test_contents_decide(tmp_path, data, kind, form):
    found = look(written(tmp_path / "data.txt", data))
    assert (found.kind, found.form) == (kind, form)
    for name in ("some/alpha.mrg", "some/beta.mrg"):
        written(tmp_path / name, data)
    if form is not None:
        assert [(one.kind, one.form) for one in (look(tmp_path / "some"), look(tmp_path / "some/*.mrg"))] == [
            (kind, form)
        ] * 2


def test_what_stands_behind_the_beginning_is_not_looked_at(tmp_path):
    """65,536 bytes of trees are trees, whatever stands in as many after them."""
    trees = TREE * (65_536 // len(TREE) + 1)
    assert look(written(tmp_path / "data.txt", trees + "a rose is a rose\n" * 4000)).kind == "trees"
    assert look(written(tmp_path / "less.txt", trees[: -len(TREE) * 400] + "a rose is a rose\n" * 4000)).kind == "text"


@pytest.mark.parametrize(
    "first",
    [
        "\n(S " + TREE.strip() * 2000 + ")",
        "(ROOT\n(S " + TREE.strip() * 2000 + "))",
        f"{'(X ' * 30_000}(NN cat){')' * 30_000}",
    ],
)
def test_a_first_tree_longer_than_the_beginning_is_a_tree(tmp_path, first):
    assert len(first) > 65_536
    assert look(written(tmp_path / "data.txt", f"{first}\n{TREE * 9}")).kind == "trees"


def test_many_files_are_read_as_one_and_a_third_split_is_held_out(tmp_path, capsys):
    from elman.kinds.pairs.files import divided, find_files, read_pairs
    from elman.kinds.pairs.record import PairOptions

    options = PairOptions(form="trees")
    for number in range(3):
        written(tmp_path / f"wsj/{number:02}/wsj_{number}.mrg", TREE * (number + 1))
    files = find_files(tmp_path / "wsj", options)
    assert files == find_files(tmp_path / "wsj/*/*.mrg", options)
    assert len(read_pairs(files["all"], options)[0]) == 6
    for name in ("train", "test"):
        trees = [TREE.replace("cat", f"{name}{number}") for number in range(40)]
        written(tmp_path / f"two/{name}.mrg", "".join(trees))
    raw = {name: read_pairs(paths, options)[0] for name, paths in find_files(tmp_path / "two", options).items()}
    splits, left_out = divided(raw, options, "two", "trees")
    assert {name: len(pairs) for name, pairs in splits.items()} == {"train": 36, "valid": 4, "test": 40}
    assert left_out == 0
    assert not {pair.source for pair in splits["train"]} & {pair.source for pair in splits["valid"]}
    assert "two: no valid split: 4 of 40 training trees are held out for it" in capsys.readouterr().err


def test_joined_tags_and_pronunciations_are_read(tmp_path):
    from elman.kinds.pairs.files import read_pairs
    from elman.kinds.pairs.record import PairOptions
    from elman.kinds.tags.columns import read_joined

    (one, two) = read_joined(["[ 1/2/CD cats/NNS ]", "=====", "", "one\u00a0word_JJ x_y_NN"], "f")
    assert one == (["1/2", "cats"], ["CD", "NNS"])
    assert two == (["one\u00a0word", "x_y"], ["JJ", "NN"])
    path = written(tmp_path / "d.txt", ";;; c\nREAD  R IY1 D\nREAD(1)  R EH1 D # past\nÉté\te t e\n")
    pairs, _ = read_pairs((path,), PairOptions(form="pronunciations"))
    assert pairs == [("READ", "R IY1 D"), ("READ", "R EH1 D"), ("Été", "e t e")]


def test_files_of_other_kinds_that_a_pattern_finds_are_not_read_together(tmp_path):
    for name in ("a.mid", "b.mid"):
        written(tmp_path / name, b"MThd")
    found = look(tmp_path / "*.mid")
    assert found.kind is None
    assert found.what.startswith("2 files that each look like ")
    assert found.what.endswith(", which are not read together")


@pytest.mark.parametrize(
    ("name", "row", "what"),
    [
        ("a.jsonl", '{{"text": "The cat {}."}}\n', "text: lines of JSON, read as it stands"),
        ("a.txt", "The cat {} . ||| Le chat {} .\n", "text: pairs with ||| between, read as it stands"),
        ("a.srt", "{0}\n00:00:{0:02},000 --> 00:00:{0:02},900\nThe cat {0}.\n\n", "text: subtitles, read as it stands"),
        ("a.html", "<html>The cat {}.</html>\n", "text: a document with marks of HTML or XML, read as it stands"),
        ("a.csv", '"The cat {}.",train\n', "text: a table of 2 columns, no series and no pairs, read as"),
        ("a.json", '    {{\n      "text": "The cat {}."\n    }},\n', "text: lines of JSON, read as it stands"),
        ("a.csv", '"The cat {}, it sees."\n', "text: a table of 1 column"),
        ("a.txt", "The cat {} sees it.\n", "text"),
        ("a.txt", "\tThe cat {} sees it.\n", "text"),
    ],
)
def test_texts_with_marks_of_another_form_are_named(tmp_path, name, row, what):
    found = look(written(tmp_path / name, "".join(row.format(at, at) for at in range(30))))
    assert found.kind == "text"
    assert found.what.startswith(what)
    assert (found.what == "text") == (what == "text")


def test_a_table_of_words_with_numbers_is_no_series_unless_it_has_dates(tmp_path):
    words = ["".join(pair) for pair in itertools.product("abcdef", repeat=2)]
    for dates, kind in (False, "text"), (True, "series"):
        rows = (
            f"{word},{7 * at % 5}{f',2020-01-{at + 1:02}' if dates else ''}\n" for at, word in enumerate(words[:28])
        )
        assert look(written(tmp_path / "a.csv", "".join(rows))).kind == kind


@pytest.mark.parametrize("name", ["valid", "validation", "val", "dev"])
def test_a_split_has_the_same_names_in_all_kinds_of_data(tmp_path, capsys, name):
    for split in "train", name, "test":
        written(tmp_path / "text" / f"{split}.txt", "The cat sees it.\n" * (1 + len(split)))
        written(tmp_path / "series" / f"{split}.csv", "x\n" + "1\n2\n4\n" * len(split))
        written(tmp_path / "pairs" / f"{split}.tsv", "The cat.\tLe chat.\n")
        written(tmp_path / "music" / split / "a.mid", b"MThd")
    sections = find_sections(tmp_path / "text", TextOptions())
    assert sections["valid"].end == 17 * (1 + len(name))
    series = open_series(tmp_path / "series", SeriesOptions())
    assert len(series.split("valid").values) == 3 * len(name)
    assert find_files(tmp_path / "pairs", PairOptions())["valid"] == (tmp_path / "pairs" / f"{name}.tsv",)
    assert midi_files(tmp_path / "music")["valid"] == [tmp_path / "music" / name / "a.mid"]
    assert "held out" not in capsys.readouterr().err


def test_a_folder_of_tables_is_no_text_and_other_files_beside_music_are_counted(tmp_path):
    for number in range(3):
        written(tmp_path / "tables" / f"{number}.csv", "x,y\n" + "1,2\n" * 30)
        written(tmp_path / "music" / f"{number}.txt", "The cat.\n")
    found = look(tmp_path / "tables")
    assert (found.kind, found.what) == (
        None,
        "3 files that each look like a table of numbers, which are not read together",
    )
    written(tmp_path / "music" / "a.mid", "MThd")
    assert look(tmp_path / "music").what == "a folder of MIDI files, beside 3 other files in it, not read"
