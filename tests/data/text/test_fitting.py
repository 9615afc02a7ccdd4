"""Words of ordinary text as a vocabulary has them."""

from collections import Counter

import pytest

from elman.data.text.fitting import Fitting
from elman.data.text.vocabulary import Vocabulary

PENN = tuple("the cat cats dog ' 's n't do ca mr. no. no wash wash. u.s. fell N $ company said".split())  # noqa: SIM905
WIKI = tuple("The the cat well known 1 000 didn 't . , @-@ @,@ \" ( ) 's".split())  # noqa: SIM905
GLUED = ("the", "cat,", "cat", "dog.", "dog,", "fell;")


def tokens(words, line):
    fitting = Fitting(Vocabulary.from_counts(Counter(words), add_unk=True))
    return " ".join(piece.token for word in fitting.line(line.split()) for piece in word if piece.token is not None)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("The cat fell.", "the cat fell"),
        ("Don't! The dog's cats' can\u2019t", "do n't the dog 's cats ' ca n't"),
        ("Mr. Cat said no.", "mr. cat said no"),
        ('The company (the "U.S.") said: $500, in 1987', "the company the u.s. said $ N in N"),
        ("The cat\u2014dog \u2014 fell...", "the cat dog fell"),
        ("The Smithson, fell.", "the smithson fell"),
        ("the horse raced past fell.", "the horse raced past fell"),
        # Lines as the training text has them stay, whatever they lack.
        ("the cat wash.", "the cat wash."),
        ("the gen. cat n.h. o'neill inc.", "the gen. cat n.h. o'neill inc."),
        ("$ N the <unk> n/a gen.", "$ N the <unk> n/a gen."),
    ],
)
def test_text_for_a_vocabulary_in_lower_case(line, read):
    assert tokens(PENN, line) == read


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ('The well-known cat (the "cat") fell, 1,000.', 'The well @-@ known cat ( the " cat " ) fell , 1 @,@ 000 .'),
        ("The cat didn't", "The cat didn 't"),
        ("The CAT fell.", "The CAT fell ."),
        ("The U.K. , the cat's dog .", "The U.K. , the cat 's dog ."),
    ],
)
def test_text_for_a_vocabulary_with_marks_and_capitals(line, read):
    assert tokens(WIKI, line) == read


def test_nothing_is_split_where_the_vocabulary_has_marks_at_its_words():
    assert tokens(GLUED, "The cat, horse, fell") == "the cat, horse, fell"


def test_pieces_spell_the_word_and_say_what_is_unknown():
    fitting = Fitting(Vocabulary.from_counts(Counter(PENN), add_unk=True))
    pieces = fitting.word('"Smithson\'s"')
    assert [(piece.text, piece.token, piece.unknown) for piece in pieces] == [
        ('"', None, False),
        ("Smithson", "smithson", True),
        ("'s", "'s", False),
        ('"', None, False),
    ]
