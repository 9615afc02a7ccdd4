"""Tables of reading times in the forms in which they are published."""

import numpy as np
import pytest

from elman.data.reading_times import read_frequencies, read_times
from elman.errors import UserError

NATURAL = (
    "WorkerId,WorkTimeInSeconds,correct,item,zone,RT,word\nA,1,5,1,1,300,If\nA,1,5,1,2,320,you\nB,1,5,1,2,280,you\n"
)
PROVO = (
    ",RECORDING_SESSION_LABEL,Text_ID,Word_Number,Sentence_Number,Word,IA_ID,IA_FIRST_RUN_DWELL_TIME,IA_DWELL_TIME\n"
    "1,S1,3,NA,NA,There,1,NA,0\n2,S1,3,2,1,are,2,150,300\n3,S1,3,3,1,now.,3,NA,300\n4,S1,3,4,2,Yes,4,210,300\n"
)
DUNDEE = "word subject docid sentid sentpos fdurFP fdurGP\nAre sa 1 0 1 100 150\ntourists sa 1 0 2 200 250\n"
UCL = "sent_nr\tsubj_nr\tword_pos\tword\tRT\n2\t7\t1\tShe\t300\n1\t7\t1\tHe\t310\n1\t7\t2\tran.\t320\n"


def read(text, **columns):
    return read_times(text, "t.csv", columns)


def test_natural_stories():
    found = read(NATURAL)
    assert [word.written for word in found.words] == ["If", "you"]
    assert found.word.tolist() == [0, 1, 1]
    assert found.subject == ["A", "A", "B"]
    assert found.time.tolist() == [300, 320, 280]
    assert found.columns["position"] == "zone"


def test_provo_has_gaze_durations_and_sentences():
    found = read(PROVO)
    assert [(word.written, word.begins) for word in found.words] == [
        ("There", True),
        ("are", False),
        ("now.", False),
        ("Yes", True),
    ]
    np.testing.assert_array_equal(found.time, [np.nan, 150, np.nan, 210])
    assert {word.text for word in found.words} == {0}
    assert read(PROVO, time="IA_DWELL_TIME").time.tolist() == [0, 300, 300, 300]


def test_dundee_is_read_between_blanks():
    found = read(DUNDEE)
    assert found.time.tolist() == [150, 250]
    assert found.columns | {"sentence": "sentid", "item": "docid"} == found.columns


def test_ucl_has_sentences_as_items():
    found = read(UCL)
    assert [(word.item, word.text, word.written) for word in found.words] == [
        ("1", 0, "He"),
        ("1", 0, "ran."),
        ("2", 1, "She"),
    ]
    assert found.word.tolist() == [2, 0, 1]


def test_words_are_counted_where_there_are_no_positions():
    found = read("subject\tword\trt\na\tone\t300\na\ttwo\t310\nb\tone\t320\nb\ttwo\t330\n")
    assert [word.written for word in found.words] == ["one", "two"]
    assert found.word.tolist() == [0, 1, 0, 1]


def test_sentences_end_at_marks_where_there_is_no_column():
    found = read("item,position,word,rt\n1,1,Go!,300\n1,2,Mr,300\n1,3,(No.),300\n1,4,Yes,300\n")
    assert [word.begins for word in found.words] == [True, True, False, True]


def test_an_item_has_a_text_in_each_condition():
    found = read("item,condition,position,word,rt\n1,a,1,Dogs,300\n1,b,1,Cats,300\n1,a,2,run,300\n")
    assert [(word.item, word.text, word.written) for word in found.words] == [
        ("1", 0, "Dogs"),
        ("1", 0, "run"),
        ("1", 1, "Cats"),
    ]


def test_a_missing_row_is_said(capsys):
    read("item,position,word,rt\n1,1,a,300\n1,3,b,300\n")
    assert "1 place of the texts has no row, such as item 1, position 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "word,x\na,1\n",
            "t.csv:1: no column of the time is recognised among word, x; name it: --columns time=HEADING",
        ),
        ("x,rt\na,1\n", "no column of the word"),
        ("word,rt\na,fast\n", "t.csv:2: the time is 'fast', which is no number"),
        ("word,rt,zone\na,300,x\n", "t.csv:2: the position is 'x'"),
        (
            "item,zone,word,rt\n1,1,a,300\n1,1,b,300\n",
            "t.csv:3: 'b' stands where line 2 has 'a' (item '1', position 1)",
        ),
        ("word,rt\n,300\n", "t.csv:2: no word"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(text, said):
    with pytest.raises(UserError) as caught:
        read(text)
    assert said in str(caught.value)


def test_columns_that_are_named_must_exist():
    with pytest.raises(UserError, match=r"no column 'GAZE'; it has WorkerId, WorkTimeInSeconds"):
        read(NATURAL, time="GAZE")
    with pytest.raises(UserError, match="--columns tiem=: no column is called so"):
        read(NATURAL, tiem="RT")


def test_a_list_of_frequencies():
    assert read_frequencies("word\tcount\nthe\t12\n", "f") == {"the": 12} == read_frequencies("the 12\n", "f")
    with pytest.raises(UserError, match="f:2: the count is 'x'"):
        read_frequencies("the 12\na x\n", "f")


def test_commas_may_be_decimal_marks(capsys):
    found = read("Wort;Zeit;position\nDer;312,25;1,5\nHund;1.204,5;2,5\nbellt;;3,5\n", word="Wort", time="Zeit")
    np.testing.assert_array_equal(found.time, [312.25, 1204.5, np.nan])
    assert "commas are decimal marks in column Zeit\n" in capsys.readouterr().err
    assert read_frequencies("der\t12,5\nHund\t3\n", "f.tsv") == {"der": 12.5, "Hund": 3}
    assert read_frequencies("Wort;je Million\nder;12,5\n", "f.csv") == {"der": 12.5}


@pytest.mark.parametrize("text", ['word,rt\na,"1,234"\n', "word,rt\na,300.5\nb,fast\n"])
def test_times_that_nothing_decides_are_refused(text):
    with pytest.raises(UserError, match=r"1,234 may be 1234 or 1.234|'fast', which is no number"):
        read(text)
