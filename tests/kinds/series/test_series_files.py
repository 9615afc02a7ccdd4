"""Series from files: headers, delimiters, columns, splits, and every mistake in one line."""

import numpy as np
import pytest

from elman.data.kinds import look
from elman.errors import UserError
from elman.kinds.series.corpus import SeriesTrainingWindows, SeriesWindows, open_series
from elman.kinds.series.record import SeriesOptions
from elman.kinds.series.table import read_table

VALUES = np.arange(40.0).reshape(20, 2) ** 2


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t", "  ", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_delimiter_and_header_are_recognised(tmp_path, mark, header):
    lines = [mark.join(["price", "volume"])] * header + [mark.join(map(repr, row)) for row in VALUES.tolist()]
    table = read_table(write(tmp_path / "a.csv", "\n".join(lines) + "\n"))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.names == (("price", "volume") if header else ("0", "1"))


def test_only_numeric_columns_are_read_by_default(tmp_path):
    path = write(tmp_path / "a.csv", 'day,price,note,volume\n1 May,1.5,"a, b",7\n2 May,2.5,c,8\n')
    table = read_table(path)
    assert table.names == ("price", "volume")
    np.testing.assert_array_equal(table.values, [[1.5, 7], [2.5, 8]])


def test_columns_that_are_left_out_are_named(tmp_path, capsys):
    path = write(tmp_path / "a.csv", "where;note;volume\nhere;a;7\nthere;b;8\n")
    assert read_table(path).names == ("volume",)
    assert f"{path}: 2 columns without numbers left out: where, note" in capsys.readouterr().err
    read_table(path, ("volume",))
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("ids", "said"), [("aaabbbccc", True), ("abcabcabc", False), ("aaaaaaaaa", False)])
def test_series_below_each_other_are_named(tmp_path, capsys, ids, said):
    (tmp_path / "long.csv").write_text("id,x\n" + "".join(f"{one},{at}.5\n" for at, one in enumerate(ids)))
    assert read_table(tmp_path / "long.csv").names == ("x",)
    what = "column id has 3 values, each in rows that follow one another: all rows are read as one series; if it names"
    assert (what in capsys.readouterr().err) == said


DAYS = "".join(f"2020-01-0{at},{at}.5,{at}.25\n" for at in (2, 3, 4))


@pytest.mark.parametrize("units", ["s,degC,m/s", ",(\u00b0C),", "day,NA,%"])
def test_a_row_of_units_below_the_names_is_left_out(tmp_path, capsys, units):
    found = read_table(write(tmp_path / "a.csv", f"time,temperature,wind\n{units}\n{DAYS}"))
    np.testing.assert_array_equal(found.values, [[2.5, 2.25], [3.5, 3.25], [4.5, 4.25]])
    assert found.dates is not None
    named = ", ".join(filter(None, units.split(",")))
    assert f"line 2 has units ({named}): left out" in capsys.readouterr().err


@pytest.mark.parametrize("row", ["2020-01-01,,x", "1,m,m"])
def test_a_row_with_a_date_or_a_number_is_no_row_of_units(tmp_path, row):
    with pytest.raises(UserError, match=r"line 2|no numeric"):
        read_table(write(tmp_path / "a.csv", f"time,temperature,wind\n{row}\n{DAYS}"), ("temperature", "wind"))


@pytest.mark.parametrize("cell", ["3.5%", "3.5 %", "$1.20", "1,20 \u20ac", "\u00a35"])
def test_cells_with_signs_are_named_with_the_cure(tmp_path, capsys, cell):
    read_table(write(tmp_path / "a.csv", "note;price;volume\n" + f"n 1;{cell};7\n" * 3))
    assert f"note, price ({cell!r} is no number with its sign: write numbers without signs)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        ("1,5;2,5\n1,6;2,7\n", "01", [[1.5, 2.5], [1.6, 2.7]]),
        ("1,5\t2\n1,6\t2,7\n", "01", [[1.5, 2], [1.6, 2.7]]),
        ("1,5  2\n1,6  2,7\n", "01", [[1.5, 2], [1.6, 2.7]]),
        ("a;b\n1,5;2,5\n", "ab", [[1.5, 2.5]]),
        ("1;1,3;2,5\n2;1,4;2,6\n3;-,5;\u22121e-3\n", "12", [[1.3, 2.5], [1.4, 2.6], [-0.5, -0.001]]),
        ("a;b\n1,5;2.5\n1,25;2.25\n", "ab", [[1.5, 2.5], [1.25, 2.25]]),
        ("a;b\n1,234;5\n2,345;6\n", "ab", [[1.234, 5], [2.345, 6]]),
        ('a,b\n"1,234",2.5\n"12,345",3.25\n', "ab", [[1234, 2.5], [12345, 3.25]]),
        ("a;b\n1.234,5;1 234\n12,5;1 235\n", "ab", [[1234.5, 1234], [12.5, 1235]]),
        ('a,b\n"1,234.5",2\n12,3\n', "ab", [[1234.5, 2], [12, 3]]),
        ("a;b\n1,234;2.5\n2,345;3.5\n", "ab", [[1234, 2.5], [2345, 3.5]]),
        ("a;b\n1,234;5\n2.345;6\n", "ab", [[1.234, 5], [2345, 6]]),
    ],
)
def test_the_decimal_mark_is_decided_by_the_column(tmp_path, text, names, values):
    table = read_table(write(tmp_path / "a.csv", text))
    assert table.names == tuple(names)
    np.testing.assert_array_equal(table.values, values)


@pytest.mark.parametrize("text", ['a,b\n"1,234",2\n"2,345",3\n', "a\tb\n1,234\t5\n", "a;b\n1,5;1.234\n2,5;1.235\n"])
def test_numbers_that_nothing_decides_are_refused(tmp_path, text):
    with pytest.raises(UserError, match=r"column .: 1.234 may be 1234 or 1.234|may be 1.234 or 1234; write decimal"):
        read_table(write(tmp_path / "a.csv", text))


def test_a_spreadsheet_with_a_mark_dates_and_decimal_commas(tmp_path, capsys):
    """As a spreadsheet writes it where the comma is the decimal mark: its values are read, its dates are not."""
    expected = np.round(np.sin(np.arange(60) / 7), 4)
    rows = [f"2020-{1 + n // 28:02}-{1 + n % 28:02};{value:.4f}".replace(".", ",") for n, value in enumerate(expected)]
    path = tmp_path / "a.csv"
    path.write_bytes("\r\n".join(["\ufeffdatum;wert", *rows, ""]).encode())
    assert look(path).kind == "series"
    table = read_table(path)
    assert table.names == ("wert",)
    np.testing.assert_array_equal(table.values[:, 0], expected)
    said = capsys.readouterr().err
    assert "column datum has dates and is not modelled" in said
    assert "commas are decimal marks in column wert" in said
    assert "rise" not in said
    path.write_text("\n".join(["datum;wert", *reversed(rows)]))
    read_table(path)
    assert "the dates do not rise" in capsys.readouterr().err


def test_columns_with_decimal_commas_are_named(tmp_path, capsys):
    """A column some of whose numbers are whole has them too; one that has only whole numbers has none."""
    text = "a;b;c;d\n1;1,5;2;3.5\n1,25;2;4;4.5\n"
    np.testing.assert_array_equal(read_table(write(tmp_path / "a.csv", text)).values[1], [1.25, 2, 4, 4.5])
    assert "commas are decimal marks in columns a, b\n" in capsys.readouterr().err


def test_names_may_be_dates(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "2020Q1;2020Q2\n1;4\n3;2\n"))
    assert table.names == ("2020Q1", "2020Q2")
    assert read_table(write(tmp_path / "a.csv", "2020Q1;2\n2020Q2;4\n")).names == ("1",)


@pytest.mark.parametrize("first", ["0 1 2 3", "10 20 30 40", "0.1 0.2 0.3 0.4", "20200130 20200131 20200201 20200203"])
def test_a_first_column_that_numbers_the_rows_is_not_modelled(tmp_path, capsys, first):
    path = write(tmp_path / "a.csv", "n,x\n" + "".join(f"{n},{n[-1]}.5\n" for n in first.split()))
    assert read_table(path).names == ("x",)
    assert "column n numbers the rows and is not modelled; name it in data.columns" in capsys.readouterr().err
    assert read_table(path, ("n", "x")).names == ("n", "x")
    assert read_table(path, known=("n", "x")).names == ("n", "x")
    assert read_table(path, known=("x",)).names == ("x",)


@pytest.mark.parametrize("first", ["0 1 3 7", "3 2 1 0", "1 1 2 3"])
def test_other_first_columns_are_modelled(tmp_path, first):
    path = write(tmp_path / "a.csv", "n,x\n" + "".join(f"{n},{n[-1]}.5\n" for n in first.split()))
    assert read_table(path).names == ("n", "x")
    alone = write(tmp_path / "b.csv", "n\n" + "\n".join(first.split()))
    assert read_table(alone).names == ("n",)


GAPS = "t,x,y\na,,1\nb,2,1\nc,NA,\nd,8,2\ne,9,\nf,?,\n"


def test_every_missing_value_is_named(tmp_path):
    path = write(tmp_path / "a.csv", GAPS)
    with pytest.raises(UserError) as error:
        read_table(path)
    assert str(error.value) == (
        f"{path}: 6 values missing (column x at lines 2, 4, 7; column y at lines 4, 6 to 7); fill them in, remove the"
        " rows, or add --missing interpolate, previous, drop or mask"
    )


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ("interpolate", [[2, 1], [2, 1], [5, 1.5], [8, 2], [9, 2], [9, 2]]),
        ("drop", [[2, 1], [8, 2]]),
        ("mask", [[np.nan, 1], [2, 1], [np.nan, np.nan], [8, 2], [9, np.nan], [np.nan, np.nan]]),
    ],
)
def test_missing_values_by_a_rule(tmp_path, capsys, rule, values):
    path = write(tmp_path / "a.csv", GAPS)
    np.testing.assert_array_equal(read_table(path, missing=rule).values, values)
    assert "6 values missing (column x at lines 2, 4, 7; column y" in capsys.readouterr().err


def test_the_value_before_may_be_lacking(tmp_path):
    path = write(tmp_path / "a.csv", GAPS)
    with pytest.raises(UserError, match="no value stands before the first; use --missing interpolate"):
        read_table(path, missing="previous")
    write(path, GAPS.replace("a,,", "a,4,"))
    found = read_table(path, missing="previous").values
    np.testing.assert_array_equal(found, [[4, 1], [2, 1], [2, 1], [8, 2], [9, 2], [9, 2]])
    np.save(tmp_path / "a.npy", np.array([1.0, np.nan, 3.0]))
    np.testing.assert_array_equal(read_table(tmp_path / "a.npy", missing="interpolate").values[:, 0], [1, 2, 3])


def test_masked_steps_are_targets_of_no_window():
    values = VALUES.copy()
    values[3, 0] = values[9] = np.nan
    first = np.array([-1.0, -2.0])
    read = values.copy()
    read[3, 0], read[9] = values[2, 0], values[8]
    training = SeriesTrainingWindows(values, first, 2, 4)
    batches = [training.batch(span) for span in training.spans(0)]
    inputs, targets, mask = (
        np.concatenate([getattr(one, part).numpy() for one in batches]) for part in ("inputs", "targets", "mask")
    )
    np.testing.assert_array_equal(inputs[1:, 0], read[: len(inputs) - 1])
    np.testing.assert_array_equal(targets[:, 0], read[: len(targets)])
    assert np.flatnonzero(~mask[:, 0]).tolist() == [3]
    evaluation = SeriesWindows(values, first, length=6)
    seen = [place for batch, where in evaluation for place in where[batch.mask].tolist()]
    assert seen == [n for n in range(len(values)) if n not in (3, 9)]


@pytest.mark.parametrize("missing", ["", "NA"])
def test_a_column_whose_first_value_is_missing_is_not_left_out(tmp_path, missing):
    path = write(tmp_path / "a.csv", f"price,change\n1,{missing}\n2,1\n")
    with pytest.raises(UserError, match=r"1 value missing \(column change at line 2\)"):
        read_table(path)


def test_columns_by_name_and_number(tmp_path):
    path = write(tmp_path / "a.csv", "a,b,c\n1,2,3\n4,5,6\n")
    np.testing.assert_array_equal(read_table(path, ("c", 0)).values, [[3, 1], [6, 4]])


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_arrays_are_read_by_column(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "npy":
        np.save(path, VALUES)
    else:
        np.savez(path, values=VALUES)
    np.testing.assert_array_equal(read_table(path, (1,)).values, VALUES[:, 1:])
    if suffix == "npy":
        np.testing.assert_array_equal(read_table(path.rename(tmp_path / "a.csv")).values, VALUES)


@pytest.mark.parametrize(
    ("text", "columns", "telling"),
    [
        ("x\n1\n\n\n2\nnan\n", None, ["column x at line 6", "1 value missing"]),
        ("x,y\n1,2\n3,\n", None, ["column y at line 3", "1 value missing"]),
        ("x,y\n1,2\n3,abc\n", None, ["line 3", "column y", "'abc'"]),
        ("n,x\n1,a\n2,b\n3,c\n", None, ["no column of values is left: column n numbers the rows", "data.columns"]),
        ("x,y\n1,2\n3,1_5\n", None, ["line 3", "column y", "'1_5' is not a finite number"]),
        ("1,5\n1,1_5\n", None, ["line 2", "column 1", "'1_5' is not a finite number"]),
        ("inf\n2\n", None, ["line 1", "column 0", "'inf' is not a finite number"]),
        ("x;y\n1,5;1\n2.5;2\n", None, ["line 3", "column x", "not a finite number with a comma as decimal mark"]),
        ("x,y\n1,2\n3,inf\n", None, ["line 3", "column y", "inf"]),
        ("x,y\n1,2\n3\n", None, ["line 3", "1 columns"]),
        ("x,y\n1,2\n", ("z",), ["data.columns", "'z'", "x, y"]),
        ("x,y\n1,2\n", (2,), ["data.columns", "2", "x, y"]),
        ("x\n", None, ["header"]),
        ("1,NA\n2,3\n", None, ["column 1 at line 1", "1 value missing"]),
        ("x,x\n1,2\n", None, ["two of the columns", "'x'"]),
        ("x,y\n1,2\n", (0, "x"), ["two of the columns", "'x'"]),
        (f"x,y\n{'1' * 200_000},2\n", None, [":2: ", "field larger than field limit"]),
        ("", None, ["empty"]),
        ("a,b\nc,d\n", None, ["no numeric column"]),
    ],
)
def test_mistakes_in_tables(tmp_path, text, columns, telling):
    path = write(tmp_path / "a.csv", text)
    with pytest.raises(UserError) as error:
        read_table(path, columns)
    assert all(word in str(error.value) for word in [str(path), *telling])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("array", "telling"),
    [
        (np.array([1.0, np.nan]), "1 value missing (column 0 at row 1)"),
        (np.array([1.0, np.inf]), "row 1, column 0: the value is inf"),
        (np.zeros((2, 2, 2)), "[2, 2, 2]"),
        (np.array(["a"]), "numbers"),
        (np.array([object()]), "plain arrays"),
    ],
)
def test_mistakes_in_arrays(tmp_path, array, telling):
    path = tmp_path / "a.npy"
    np.save(path, array, allow_pickle=True)
    with pytest.raises(UserError) as error:
        read_table(path)
    assert telling in str(error.value)


def test_split_in_order_of_time(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(50.0))
    corpus = open_series(tmp_path / "a.npy", SeriesOptions(valid_fraction=0.2, test_fraction=0.1))
    assert [len(split.values) for split in corpus.splits.values()] == [35, 10, 5]
    np.testing.assert_array_equal(np.concatenate([split.values for split in corpus.splits.values()])[:, 0], range(50))


def test_standardisation_is_that_of_the_training_split(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(50.0))
    columns = open_series(tmp_path / "a.npy", SeriesOptions()).symbols
    assert columns.mean == (19.5,)
    assert columns.deviation == (np.arange(40.0).std(),)
    plain = open_series(tmp_path / "a.npy", SeriesOptions(standardise=False)).symbols
    assert (plain.mean, plain.deviation) == ((0.0,), (1.0,))


def test_folder_of_splits(tmp_path):
    for split, size in {"train": 6, "valid": 3, "test": 2}.items():
        write(tmp_path / f"{split}.csv", "x\n" + "".join(f"{i}\n" for i in range(size)))
    corpus = open_series(tmp_path, SeriesOptions())
    assert [len(split.values) for split in corpus.splits.values()] == [6, 3, 2]
    for split, size in {"train": 6, "valid": 3, "test": 2}.items():
        write(tmp_path / f"{split}.csv", "n,x\n" + "".join(f"{i},{i}.5\n" for i in range(size)))
    assert open_series(tmp_path, SeriesOptions()).names == ("x",)
    for split in ("valid", "test"):  # one of them would be held out of training
        (tmp_path / f"{split}.csv").unlink()
    with pytest.raises(UserError, match="no file for the valid split"):
        open_series(tmp_path, SeriesOptions())


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_a_column_without_a_variance_that_can_be_computed_is_named(tmp_path, unit):
    np.save(tmp_path / "far.npy", np.stack([np.arange(50.0), unit * np.arange(50)], axis=1))
    with pytest.raises(UserError, match=r"column 1: values such as .* give it in other units"):
        _ = open_series(tmp_path / "far.npy", SeriesOptions()).symbols


def test_constant_column_and_short_series(tmp_path):
    np.save(tmp_path / "constant.npy", np.stack([np.arange(50.0), np.ones(50)], axis=1))
    with pytest.raises(UserError, match="column 1: constant"):
        _ = open_series(tmp_path / "constant.npy", SeriesOptions()).symbols
    np.save(tmp_path / "short.npy", np.arange(5.0))
    with pytest.raises(UserError, match="5 rows, too few"):
        open_series(tmp_path / "short.npy", SeriesOptions())
    with pytest.raises(UserError, match="no such file"):
        open_series(tmp_path / "missing.npy", SeriesOptions())


def test_corpus_of_another_kind_is_refused():
    with pytest.raises(UserError, match="not of series"):
        open_series("nottingham", SeriesOptions())


def test_mackey_glass_needs_no_data(tmp_path, monkeypatch):
    monkeypatch.setattr("elman.data.classic.mackey_glass.LENGTH", 50)
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    corpus = open_series("mackey-glass", SeriesOptions())
    assert corpus.names == ("x",)
    assert 0.2 < corpus.split("train").values.min() < corpus.split("train").values.max() < 1.5


def test_training_windows_predict_every_step_of_their_columns_from_the_step_before():
    values, first = VALUES, np.array([-1.0, -2.0])
    windows = SeriesTrainingWindows(values, first, 3, 4)
    batches = [windows.batch(span) for span in windows.spans(0)]
    inputs, targets = (
        np.concatenate([getattr(batch, part).numpy() for batch in batches]) for part in ("inputs", "targets")
    )
    np.testing.assert_array_equal(inputs[0, 0], first)
    np.testing.assert_array_equal(targets[0, 0], values[0])
    np.testing.assert_array_equal(inputs[1:, 0], targets[:-1, 0])
    np.testing.assert_array_equal(targets[:, 0], values[: len(targets)])
    assert batches[0].fresh.all()
    assert not batches[1].fresh.any()


@pytest.mark.parametrize("streams", [1, 3])
def test_evaluation_counts_every_step_once(streams):
    windows = SeriesWindows(VALUES, np.zeros(2), streams=streams, length=4)
    seen = []
    for batch, positions in windows:
        counted = positions >= 0
        np.testing.assert_array_equal(batch.targets[counted].numpy(), VALUES[positions[counted]])
        seen += positions[counted].tolist()
    assert sorted(seen) == list(range(len(VALUES)))


@pytest.mark.parametrize("lacking", ["valid", "test"])
def test_a_third_split_is_held_out_of_the_end_of_training(tmp_path, capsys, lacking):
    values = np.arange(30.0)
    for split in {"train", "valid", "test"} - {lacking}:
        write(tmp_path / f"{split}.csv", "v\n" + "".join(f"{value}\n" for value in values))
    corpus = open_series(tmp_path, SeriesOptions(valid_fraction=0.2, test_fraction=0.2, standardise=False))
    assert f"{tmp_path}: no {lacking} split: the last 6 training rows are held out for it" in capsys.readouterr().err
    np.testing.assert_array_equal(corpus.split("train").values.ravel(), values[:24])
    np.testing.assert_array_equal(corpus.split(lacking).values.ravel(), values[24:])
    write(tmp_path / "train.csv", "v\n1\n2\n3\n")
    with pytest.raises(UserError, match=f"no {lacking} split, and too few training rows"):
        open_series(tmp_path, SeriesOptions())


def test_a_table_without_values_shows_a_cell(tmp_path):
    path = write(tmp_path / "a.csv", "t,v\n" + "".join(f"{one},{one}%\n" for one in range(9)))
    with pytest.raises(UserError, match="such as '0%' in v"):
        read_table(path)


def test_a_column_of_splits_is_believed(tmp_path, capsys):
    names = ["Train"] * 12 + ["val"] * 4 + ["Test"] * 4
    rows = [f"{value},{name}\n" for (value, _), name in zip(VALUES.tolist(), names, strict=True)]
    corpus = open_series(write(tmp_path / "a.csv", "x,set\n" + "".join(rows)), SeriesOptions())
    assert [len(one.values) for one in corpus.splits.values()] == [12, 4, 4]
    assert "a column divides the rows: train 12, valid 4, test 4" in capsys.readouterr().err
    two = "".join(rows[:12] + rows[16:])
    corpus = open_series(write(tmp_path / "b.csv", "x,set\n" + two), SeriesOptions())
    assert {name: len(one.values) for name, one in corpus.splits.items()} == {"train": 10, "valid": 2, "test": 4}
    gap = "".join(["x,set\n", ",Train\n", *rows])
    corpus = open_series(write(tmp_path / "c.csv", gap), SeriesOptions(missing="drop"))
    assert [len(one.values) for one in corpus.splits.values()] == [12, 4, 4]
    with pytest.raises(UserError, match="not in order of time, train first, valid, test: row 5 is of train"):
        open_series(write(tmp_path / "d.csv", "x,set\n" + "".join(rows[12:16] + rows)), SeriesOptions())


@pytest.mark.parametrize(
    ("days", "said"),
    [
        ([f"2020-01-{day:02}" for day in range(1, 9)], None),
        (["2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30"], None),
        (["2020-01-03", "2020-01-06", "2020-01-07", "2020-01-08", "2020-01-09", "2020-01-10"], None),
        (["01.01.2020", "02.01.2020", "03.01.2020", "03.02.2020"], "1 of 3 steps between the dates is not 1 day;"),
        (["2020-01", "2020-02", "2020-04", "2020-05", "2020-06"], "1 of 4 steps between the dates is not 1 month;"),
        ([f"2020-01-01 0{hour}:30" for hour in (0, 2, 4, 5, 6, 8)], "2 of 5 steps between the dates are not 2 hours;"),
    ],
)
def test_dates_that_are_not_evenly_apart_are_reported(tmp_path, capsys, days, said):
    path = tmp_path / "dated.csv"
    path.write_text("t,x\n" + "".join(f"{day},{number}.5\n" for number, day in enumerate(days)))
    read_table(path)
    found = capsys.readouterr().err
    assert f"dated.csv: {said} every row is read as one step" in found if said else "steps" not in found


DATES = [f"{day:02}.12.2019" for day in range(20, 32)]


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (DATES[::-1], "the dates do not rise (column day: 30.12.2019 after 31.12.2019)"),
        ([day for day in DATES for _ in "ab"], "if they are several series, give each a file"),
        ([f"{day:02}.01.2020" for day in range(1, 12)], "02.01.2020 is read as 2020-01-02; where"),
        (
            [f"01/{month:02}/{year}" for year in (2019, 2020) for month in range(1, 13)],
            "01/02/2019 is read as 2019-02-01",
        ),
        ([*DATES, "Total"], "column day has dates, but not in every row: not in 'Total'"),
        (
            [str(2020 - year) for year in range(12)],
            "column day numbers the rows backwards, which are read as they stand",
        ),
        ([str(1_600_000_000 + second**2) for second in range(12)], "column day numbers the rows and is not modelled"),
        (DATES, None),
    ],
)
def test_dates_that_do_not_rise_or_may_be_others_are_named(tmp_path, capsys, days, said):
    rows = "".join(f"{day};{3.5 * n % 7}\n" for n, day in enumerate(days))
    table, err = read_table(write(tmp_path / "a.csv", f"day;value\n{rows}")), capsys.readouterr().err
    assert table.names == ("value",)
    assert (said or "column day has dates and is not modelled\n") in err
    assert said or not any(doubt in err for doubt in ("do not rise", "is read as", "every row"))


def test_dates_are_looked_at_in_every_column(tmp_path, capsys):
    rows = "".join(f"{n};{day}\n" for n, day in enumerate(reversed(DATES)))
    assert read_table(write(tmp_path / "a.csv", f"value;day\n{rows}"), ["value"]).dates is None
    assert "the dates do not rise (column day: 30.12.2019 after 31.12.2019)" in capsys.readouterr().err
