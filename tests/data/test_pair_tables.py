"""Tables of minimal pairs: which column is which, and what is refused since it may be meant otherwise."""

import json

import pytest

from elman.data.minimal_pairs import read_pairs
from elman.errors import UserError

HEADED = "item\tcondition\tGood sentence\tsentence_bad\tphenomenon\n7\tnear\tthe cat sees\tthe cat see\tverb\n"


def write(tmp_path, text, name="pairs.tsv"):
    file = tmp_path / name
    file.write_text(text)
    return str(file)


def test_a_header_names_the_columns_and_all_others_are_carried(tmp_path):
    (pair,) = read_pairs([write(tmp_path, HEADED)])
    assert (pair.good, pair.bad, pair.phenomenon, pair.item) == ("the cat sees", "the cat see", "verb", "7")
    assert pair.others == (("condition", "near"),)


def test_a_pair_of_blimp_has_its_own_number_or_that_of_its_line(tmp_path):
    records = [{"pairID": 0}, {"pairID": 1}, {"pairID": "7"}, {}]
    lines = [json.dumps({"sentence_good": "a", "sentence_bad": "b", **record}) for record in records]
    pairs = read_pairs([write(tmp_path, "\n".join(lines) + "\n", "own.jsonl")])
    assert [pair.item for pair in pairs] == ["0", "1", "7", "4"]


def test_a_csv_file_has_commas_and_quotation_marks(tmp_path):
    (pair,) = read_pairs([write(tmp_path, 'ungrammatical,grammatical\n"no, see","no, sees"\n', "own.csv")])
    assert (pair.good, pair.bad, pair.phenomenon, pair.item) == ("no, sees", "no, see", "own", "2")


def test_quotation_marks_of_a_table_with_tabs_belong_to_the_text(tmp_path):
    (pair,) = read_pairs([write(tmp_path, '"Yes," she says\t"Yes," she say\n')])
    assert pair.good == '"Yes," she says'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item\tgood\ncat\tthe cat\n", "has no column for the bad sentences; call them good and bad"),
        ("good\tbad\tcorrect\na b\ta c\td\n", "has 2 columns for the good sentences"),
        ("good\tbad\tnote\tnote\na b\ta c\td\te\n", "has the column 'note' twice"),
        ("good\tbad\tnote\na b\ta c\n", "pairs.tsv:2: 2 cells, but the header has 3"),
        ("good\tbad\n", "a header and no row"),
        ("good\tbad\na b\t \n", "pairs.tsv:2: the bad sentence is empty"),
        ("first\tsecond\nthe cat sees\tthe cat see\n", "pairs.tsv:1: 'first\\tsecond' may be a header or a pair"),
        (
            "1\tthe cat sees\tthe cat see\n2\tdogs see\tdogs sees\n",
            "the first column ('1') does not look like the good",
        ),
        ("verb\tthe cat sees\tthe cat see\n", "the first column ('verb') does not look like the good sentence"),
        (
            "1\ta\tthe cat sees\tthe cat see\n",
            "pairs.tsv:1: found '1\\ta\\tthe cat sees\\tthe cat see'; write good TAB",
        ),
    ],
)
def test_what_may_be_meant_otherwise_is_refused(tmp_path, text, message):
    with pytest.raises(UserError) as error:
        read_pairs([write(tmp_path, text)])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["猫が見る\t猫を見る\n犬が来る\t犬を来る\n", "a b\tb a\tword order\nc d\td c\n", "see\tsees\n"]
)
def test_plain_columns_are_read_as_before(tmp_path, text):
    pairs = read_pairs([write(tmp_path, text)])
    assert [[pair.good, pair.bad] for pair in pairs] == [line.split("\t")[:2] for line in text.splitlines()]


def test_the_case_of_an_agreement_file_may_differ_from_its_text(tmp_path):
    (tmp_path / "a.text").write_text("we are here . <eos>\nIs it ? <eos>\n")
    gold = write(tmp_path, "1\tAre\tIs\t2\n0\tis\tare\t0\n", "a.gold")
    assert [(pair.good, pair.bad, pair.item) for pair in read_pairs([gold])] == [
        ("we are", "we is", "1"),
        (" Is", " Are", "2"),
    ]


def test_records_carry_their_other_keys(tmp_path):
    record = {"sentence_good": "A b.", "sentence_bad": "B a.", "UID": "order", "pairID": "12", "simple": True, "n": [1]}
    (pair,) = read_pairs([write(tmp_path, json.dumps(record) + "\n", "a.jsonl")])
    assert (pair.item, pair.others) == ("12", (("simple", "True"),))
