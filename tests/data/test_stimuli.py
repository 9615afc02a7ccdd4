"""Tables of sentences, and sentences in regions."""

import string
from collections import Counter

import pytest

from elman.config.text import TextOptions
from elman.data.stimuli import SHOWN, Stimulus, UnknownWords, divided, lines_as_stimuli, read_table, regions_of
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError


@pytest.mark.parametrize("mark", ["\t", ",", ";"])
def test_other_columns_are_carried(mark):
    table = mark.join(["item", "text", "cond"]) + "\n1" + mark + '"the ""cat"""' + mark + "a\n\n2" + mark + "b c" + mark
    assert read_table(table, "t", "text") == [
        Stimulus(2, 'the "cat"', {"item": "1", "cond": "a"}),
        Stimulus(4, "b c", {"item": "2", "cond": ""}),
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "t: the file is empty"),
        ("item\ttext\n", "t: a header and no row"),
        ("item\tsentence\n1\ta\n", "t:1: no column 'text'; it has item, sentence"),
        ("text\ttext\n1\ta\n", "t:1: the header has the column 'text' twice"),
        ("item\ttext\n1\ta\n2\n", "t:3: 1 cells, but the header has 2"),
        ("item\ttext\n1\t \n", "t:2: the cell 'text' is empty"),
        ('item,text\n1,a\n2,"No," he said\n', "t:3: a quotation mark in a cell is not doubled"),
        ('item,text\n1,a\n2,"No\n3,b\n', "t:3: a quotation mark in a cell is not doubled, or never closed"),
    ],
)
def test_wrong_tables_are_named_by_line(table, message):
    with pytest.raises(UserError) as error:
        read_table(table, "t", "text")
    assert message in str(error.value)


def test_regions_are_divided_by_a_mark():
    (one,) = lines_as_stimuli(["\n", "The dog|that barked | ran.\n"])
    found = divided(one, "|", "t", TextOptions())
    assert (found.line, found.text, found.regions) == (
        2,
        "The dog that barked ran.",
        ("The dog", "that barked", "ran."),
    )
    japanese = Stimulus(1, "\u732b|\u304c|\u3044\u308b", {})
    assert divided(japanese, "|", "t", TextOptions()).text == "\u732b \u304c \u3044\u308b", "words have spaces"
    assert divided(japanese, "|", "t", TextOptions(tokenisation="characters")).text == "\u732b\u304c\u3044\u308b"
    with pytest.raises(UserError, match="t:2: region 2 of 3 is empty"):
        divided(Stimulus(2, "a | | b", {}), "|", "t", TextOptions())


@pytest.mark.parametrize(
    ("tokenisation", "places"),
    [
        ("words", [0, 0, 1, 1, 2, 2, 3]),
        ("raw", [0, 0, 1, 1, 2, 2, 3]),
        ("characters", [0] * 4 + [0] * 4 + [1] * 5 + [1] * 7 + [2] * 4 + [2]),
    ],
)
def test_the_region_of_every_piece(tokenisation, places):
    text = "The dog | that barked | ran."
    vocabulary = Vocabulary.from_counts(Counter(text if tokenisation == "characters" else text.split()), add_unk=True)
    tokeniser = Tokeniser(TextOptions(tokenisation=tokenisation))
    stimulus = divided(Stimulus(1, text, {}), "|", "t", tokeniser.options)
    sentence = TextReader(vocabulary, tokeniser).one(f"{stimulus.text}\n")
    if tokenisation == "words":
        assert sentence.pieces[-2:] == ["ran.", "<eos>"]
        places = [0, 0, 1, 1, 2, 3]
    assert regions_of(sentence, stimulus, tokeniser, "t") == places


def test_regions_that_normalisation_takes_away_are_refused():
    tokeniser = Tokeniser(TextOptions(tokenisation="raw", ruby="remove"))
    vocabulary = Vocabulary.from_counts(Counter(["a", "b"]), add_unk=True)
    stimulus = divided(Stimulus(4, "a\u300ab | c\u300b d", {}), "|", "t", tokeniser.options)
    sentence = TextReader(vocabulary, tokeniser).one(f"{stimulus.text}\n")
    with pytest.raises(UserError, match="t:4: the run's normalisation"):
        regions_of(sentence, stimulus, tokeniser, "t:4")


def test_unknown_words_are_said_with_their_share_and_the_first_of_them():
    found = UnknownWords("near", 8, 2, tuple(string.ascii_lowercase))
    assert found.facts()["share"] == 0.25
    assert found.line().startswith("near: 2 of 8 (25.0 %) have unknown words: a, b, c")
    assert found.line().endswith(f", {string.ascii_lowercase[SHOWN - 1]} and {26 - SHOWN} more")
    assert found._replace(words=("a",)).line().endswith("words: a")
