"""What a cell is: a number by a strict rule, a date, or a missing value."""

import pytest

from elman.data.numbers import decimal_marks, in_ranges, is_date, is_missing, is_numbering, number
from elman.errors import UserError


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [
        (" 12 ", ".", 12),
        ("+1.50", ".", 1.5),
        ("5.", ".", 5),
        (".5e-3", ".", 0.0005),
        ("1E3", ",", 1000),
        ("\u22121,5", ",", -1.5),
        ("1,234,567.25", ".", 1234567.25),
        ("1.234.567,25", ",", 1234567.25),
        ("1\u202f234,5", ",", 1234.5),
        ("12'345.5", ".", 12345.5),
        ("1,5", ".", None),
        ("1.5", ",", None),
        ("1,23,456", ".", None),
        ("0,123", ".", None),
        ("12345,678.5", ".", None),
        ("1,234.567", ",", None),
        *((cell, mark, None) for mark in ".," for cell in ("2020_01", "1_5", "nan", "inf", "0x1f", "1e", "", "\uff11")),
        *((cell, mark, None) for mark in ".," for cell in ("5 %", "1-2", "--1", "1 2", "\u0661")),
    ],
)
def test_numbers(cell, decimal, value):
    assert number(cell, decimal) == value


@pytest.mark.parametrize(
    "cell",
    [
        *("2020-01-31", "2020/1/31", "2020.01.31", "31.01.2020", "1/31/20", "2020-01", "2020_01", "2020Q1", "2020-W05"),
        *("2020-01-31T18:00:00Z", "2020-01-31 18:00:00.125+01:00", "31.1.2020 18:00", "1/31/2020 6:00 PM", "18:00:05"),
        *(
            "31 January 2020",
            "31-Jan-20",
            "Jan 2020",
            "January 31, 2020",
            "2020-Jan-31",
            "20 m\u00e4rz 2020",
            "Q1 2020",
        ),
        "1 May",
    ],
)
def test_dates(cell):
    assert is_date(cell)
    assert number(cell) is None


@pytest.mark.parametrize(
    "cell", ["2020", "20200131", "1.5", "2020.01", "12-5", "a-b", "", "31", "the cat 2020", "cat 20", "3/4"]
)
def test_other_cells_are_no_dates(cell):
    assert not is_date(cell)


def test_missing_values_and_numberings():
    assert all(map(is_missing, ["", " ", "NA", "n/a", "NaN", "null", "None", "-", "?", "."]))
    assert not any(map(is_missing, ["0", "nothing", "--", "inf"]))
    assert is_numbering([str(n) for n in range(40) if n != 13])
    assert not is_numbering([str(n) for n in range(40) if n % 5])
    assert is_numbering(["1577836800", "1577840400", "1577844000"])
    assert not is_numbering(["1", "2"])
    assert not is_numbering(["1", "2", ""])
    assert in_ranges([]) == ""


def test_a_column_that_may_be_read_in_two_ways_follows_the_others():
    """`1,234` is read as sure columns are, then by the semicolon; decimal points alone never follow a comma."""

    def marks(*columns, delimiter=","):
        return decimal_marks(columns, [f"c{at}" for at in range(len(columns))], "table", delimiter)

    assert marks(["1,234"], ["0,5"]) == [",", ","]
    assert marks(["1,234"], delimiter=";") == [","]
    assert marks(["1.234"], delimiter=";") == ["."]
    for columns in ([["1,234"]], [["1,234"], ["0,5"], ["0.5"]], [["1.234"], ["0,5"]]):
        with pytest.raises(UserError, match="may be"):
            marks(*columns)
