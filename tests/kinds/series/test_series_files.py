"""Series from files: headers, delimiters, columns, splits, and every mistake in one line."""

import numpy as np
import pytest

from elman.errors import UserError
from elman.kinds.series.corpus import SeriesTrainingWindows, SeriesWindows, open_series
from elman.kinds.series.record import SeriesOptions
from elman.kinds.series.table import read_table

VALUES = np.arange(40.0).reshape(20, 2) ** 2


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t", "  "])
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
    path = write(tmp_path / "a.csv", "day;price;volume\n1 May;1,5;7\n2 May;2,5;8\n")
    assert read_table(path).names == ("volume",)
    assert f"{path}: 2 columns without numbers left out: day, price" in capsys.readouterr().err
    read_table(path, ("volume",))
    assert not capsys.readouterr().err


@pytest.mark.parametrize("text", ["1,5;2,5\n1,6;2,7\n", "1,5\t2\n1,6\t2,7\n", "a;b\n1,5;2,5\n"])
def test_decimal_commas_are_no_delimiters(tmp_path, text):
    with pytest.raises(UserError, match=r"no numeric column; the columns are .*; write decimal points, not commas"):
        read_table(write(tmp_path / "a.csv", text), None)


@pytest.mark.parametrize("missing", ["", "NA"])
def test_a_column_whose_first_value_is_missing_is_not_left_out(tmp_path, missing):
    path = write(tmp_path / "a.csv", f"price,change\n1,{missing}\n2,1\n")
    with pytest.raises(UserError, match="line 2, column change: the value is missing"):
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


@pytest.mark.parametrize(
    ("text", "columns", "telling"),
    [
        ("x\n1\n\n\n2\nnan\n", None, ["line 6", "column x", "missing"]),
        ("x,y\n1,2\n3,\n", None, ["line 3", "column y", "missing"]),
        ("x,y\n1,2\n3,abc\n", None, ["line 3", "column y", "'abc'"]),
        ("x,y\n1,2\n3,inf\n", None, ["line 3", "column y", "inf"]),
        ("x,y\n1,2\n3\n", None, ["line 3", "1 columns"]),
        ("x,y\n1,2\n", ("z",), ["data.columns", "'z'", "x, y"]),
        ("x,y\n1,2\n", (2,), ["data.columns", "2", "x, y"]),
        ("x\n", None, ["header"]),
        ("1,NA\n2,3\n", None, ["line 1", "column 1", "missing"]),
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
        (np.array([1.0, np.nan]), "row 1"),
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
    (tmp_path / "test.csv").unlink()
    with pytest.raises(UserError, match="test split"):
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
