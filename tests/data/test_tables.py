"""The one reader of tables: quoted cells with line breaks, and marks that belong to the text."""

import numpy as np
import pytest

from elman.data.kinds import look
from elman.data.minimal_pairs import read_pair_table
from elman.data.stimuli import read_table as read_stimuli
from elman.data.tables import rows_of
from elman.errors import UserError
from elman.kinds.series.table import read_table


def cells(text):
    return [row for _, row in rows_of(text, "a.tsv")]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quoted_cell_may_have_lines(mark, end):
    text = f'a{mark}b{end}"1{end}2"{mark}"x ""y"""{end}{end}3{mark}4{end}'
    rows = rows_of(text, "a")
    assert [number for number, _ in rows] == [1, 2, 5]
    assert [row for _, row in rows] == [["a", "b"], [f"1{end}2", 'x "y"'], ["3", "4"]]


def test_a_first_line_may_name_the_delimiter(tmp_path):
    assert rows_of("sep=|\r\na;b|c\r\n1|2\r\n", "a") == [(2, ["a;b", "c"]), (3, ["1", "2"])]
    for blank in ("sep=;\n", "\n", ",,\n\n"):
        with pytest.raises(UserError, match="a: the file is empty"):
            rows_of(blank, "a")
    (tmp_path / "a.csv").write_text("sep=;\nx;y\n1,5;2\n1,75;3\n")
    assert look(tmp_path / "a.csv").kind == "series"
    assert read_table(tmp_path / "a.csv").values.tolist() == [[1.5, 2], [1.75, 3]]


def test_marks_between_tabs_belong_to_the_text_unless_all_are_of_a_spreadsheet():
    rows = ['1\t"The cat."', '2\t"The cat," he said.', '3\tThe "old" lamp.']
    assert cells("\n".join(rows)) == [row.split("\t") for row in rows]
    assert cells('1\t"The cat."\n2\t"""Yes"" he said."\n') == [["1", "The cat."], ["2", '"Yes" he said.']]
    speech = ['1\t"I went home', '2\tand slept."']
    assert cells("\n".join(speech)) == [row.split("\t") for row in speech]
    assert cells('sentence\n"I went home.\nand slept."\n') == [["sentence"], ['"I went home.'], ['and slept."']]


def test_a_series_with_quoted_lines(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f'{n},{n / 8},"{"two" if n % 5 else "two" + chr(10) + "lines"}\u2028{n}"' for n in range(40)]
    path.write_text("\n".join(['"the\nday",value,note', *rows]) + "\n")
    assert look(path).kind == "series"
    table = read_table(path)
    assert table.names == ("value",)
    assert np.array_equal(table.values[:, 0], np.arange(40) / 8)
    assert read_table(path, ("the\nday",)).values.ravel().tolist() == list(range(40))
    path.write_text(path.read_text() + "41,x,y\n")
    with pytest.raises(UserError, match=f"line {len(path.read_text().split(chr(10))) - 1}, column value"):
        read_table(path)


def test_stimuli_and_minimal_pairs(tmp_path):
    found = read_stimuli('"item\nnumber",sentence\n1,"The cat\nsees it."\n', "a.csv", "sentence")
    assert found == [(3, "The cat sees it.", {"item number": "1"}, ())]
    (tmp_path / "a.tsv").write_text('good\tbad\n"Yes," he says.\t"Yes," he say.\n"He\x0bsees it."\t"He see it."\n')
    assert [pair.good for pair in read_pair_table(tmp_path / "a.tsv")] == ['"Yes," he says.', '"He\x0bsees it."']


def test_a_cell_that_is_one_quotation_keeps_its_marks_where_its_neighbours_do():
    sentences = ['"The cat sees the dog."', '"The cat," said the teacher.', 'The "old" lamp.', '"The cat" sees "it."']
    table = "item\tsentence\n" + "".join(f"{n}\t{one}\n" for n, one in enumerate(sentences, start=1))
    assert [one.text for one in read_stimuli(table, "a.tsv", "sentence")] == sentences


def test_comments_above_a_header_are_left_out_and_counted(capsys):
    found = rows_of("# exported by a logger\n# unit: mm\n\nday,rain\n1,2\n", "a.csv")
    assert found == [(4, ["day", "rain"]), (5, ["1", "2"])]
    assert "a.csv: 3 lines above the header" in capsys.readouterr().err
    assert rows_of("#id,rain\n1,2\n", "a.csv")[0] == (1, ["#id", "rain"])
    assert rows_of("a\tb\n# c\td\n", "a.tsv")[1] == (2, ["# c", "d"])
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['{"text": "a, b"}\n{"text": "c"}\n', '\n[{"text": "a"},\n{"text": "b"}]\n', '[\n  {\n  "text"']
)
def test_json_is_refused_as_what_it_is(text):
    with pytest.raises(UserError, match=r"^a\.jsonl: this is JSON, not a table; give a table with a header$"):
        read_stimuli(text, "a.jsonl", "text")
