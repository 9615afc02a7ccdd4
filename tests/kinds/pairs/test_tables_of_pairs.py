"""Tables whose rows are pairs: other columns, quoted cells, splits."""

import pytest

from elman.data.kinds import look
from elman.errors import UserError
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.files import read_pairs
from elman.kinds.pairs.record import PairOptions

ROWS = [(f"The cat sees lamp {at}.", f"Le chat voit la lampe {at}.") for at in range(40)]


def splits_of_row(at):
    return "train" if at < 30 else "dev" if at < 35 else "test"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.tsv", "".join(f"{one}\t{two}\tCC-BY #{at}\n" for at, (one, two) in enumerate(ROWS))),
        ("p.tsv", "".join(f"{at}\t{one}\t{two}\n" for at, (one, two) in enumerate(ROWS))),
        ("p.tsv", "".join(f"id-{at}\t{one}\tid-{at}\t{two}\n" for at, (one, two) in enumerate(ROWS))),
        ("p.tsv", "score\ten\tfr\n" + "".join(f"0.{at}\t{one}\t{two}\n" for at, (one, two) in enumerate(ROWS))),
        ("p.csv", "English,French\n" + "".join(f'"{one}","{two}"\n' for one, two in ROWS)),
        ("p.csv", "".join(f"{one};{two}\n" for one, two in ROWS)),
        ("p.tsv", "".join(f'"{one}"\t"{two}"\n'.replace(" ", "\n", 1) for one, two in ROWS)),
        ("p.tsv", "text_1\ttext_2\tnumber\n" + "".join(f"{one}\t{two}\t\n" for one, two in ROWS)),
    ],
)
def test_tables_with_other_columns_are_pairs(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert (look(path).kind, look(path).form) == ("pairs", "tsv")
    assert read_pairs((path,), PairOptions())[0] == ROWS


@pytest.mark.parametrize("header", ["source\ttarget", "English\tGerman", "English sentence\tGerman sentence"])
def test_a_line_that_names_two_columns_is_no_pair(tmp_path, capsys, header):
    path = tmp_path / "p.tsv"
    path.write_text(header + "\n" + "".join(f"{one}\t{two}\n" for one, two in ROWS))
    assert read_pairs((path,), PairOptions())[0] == ROWS
    assert f"{path}: line 1 names the columns ({header.replace(chr(9), ' and ')})" in capsys.readouterr().err


@pytest.mark.parametrize("first", ["word\tword", "question\tFrage", "the source\ttarget"])
def test_a_first_pair_that_is_no_header_is_kept(tmp_path, first):
    path = tmp_path / "p.tsv"
    path.write_text(first + "\n" + "".join(f"{one}\t{two}\n" for one, two in ROWS))
    assert read_pairs((path,), PairOptions())[0] == [tuple(first.split("\t")), *ROWS]


def test_a_first_pair_that_may_be_a_header_and_blank_lines_at_the_end(tmp_path, capsys):
    path = tmp_path / "p.tsv"
    path.write_text("Quelle\tZiel\n" + "".join(f"{one}\t{two}\n" for one, two in ROWS) + "\n \n")
    assert read_pairs((path,), PairOptions())[0] == [("Quelle", "Ziel"), *ROWS]
    assert "take the first line out if line 1 names the columns (Quelle and Ziel)" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "header"), [("p.tsv", ""), ("p.csv", "review,label\n")])
def test_sentences_with_their_labels_are_no_series(tmp_path, name, header):
    path, mark = tmp_path / name, "\t" if name == "p.tsv" else ","
    path.write_text(header + "".join(f"The cat sees {chr(97 + at)}.{mark}{at % 2}\n" for at in range(20)))
    assert look(path).kind == "pairs"


def test_a_column_of_splits_is_believed(tmp_path, capsys):
    path = tmp_path / "p.tsv"
    rows = "".join(f"{one}\t{two}\t{splits_of_row(at)}\n" for at, (one, two) in enumerate(ROWS))
    path.write_text("en\tfr\tsplit\n" + rows)
    corpus = open_pairs(path, PairOptions(tokenisation="raw"))
    assert {name: len(pairs) for name, pairs in corpus.splits.items()} == {"train": 30, "valid": 5, "test": 5}
    assert corpus.splits["test"].target_text == [two for _, two in ROWS[35:]]
    assert "sources are in column en, targets in fr, splits in split" in capsys.readouterr().err
    path.write_text("en\tfr\tsplit\n" + rows + "only one cell\n")
    with pytest.raises(UserError, match=r"p\.tsv:42: 1 cells, but the first row has 3"):
        open_pairs(path, PairOptions(tokenisation="raw"))


@pytest.mark.parametrize(
    "text",
    [
        "item\tcondition\tsentence\n" + "".join(f"{at}\t{'ab'[at % 2]}\tThe cat {at}.\n" for at in range(40)),
        "".join(f"the\tcat\t{at}\n" for at in range(40)),
    ],
)
def test_tables_with_one_column_of_text_are_no_pairs(tmp_path, text):
    path = tmp_path / "t.tsv"
    path.write_text(text)
    assert look(path).kind != "pairs"
