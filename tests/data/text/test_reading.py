"""Text for a trained model: what is read, what the text's own words are, and what is reported."""

from collections import Counter

import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.text import reading, utf8
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError

WORDS = Vocabulary.from_counts(Counter(["the", "the", "cat", "fell", "do", "n't"]), add_unk=True)
LETTERS = Vocabulary.from_counts(Counter("abc \u00fc"))


def reader(vocabulary=WORDS, tokenisation="words", eos="line", **how):
    return TextReader(vocabulary, Tokeniser(TextOptions(tokenisation=tokenisation, eos=eos)), name="a.txt", **how)


def words(sentence, one):
    return [(word.text, sentence.read[word.read], word.unknown) for word in sentence.words(one.tokeniser)]


def test_words_of_the_text_keep_their_spelling_and_know_their_tokens():
    one = reader()
    (sentence,) = one.sentences(["Don't \u2014 the Dog fell.\n"])
    assert words(sentence, one) == [
        ("Don't", ["do", "n't"], False),
        ("\u2014", [], False),
        ("the", ["the"], False),
        ("Dog", ["dog"], True),
        ("fell.", ["fell"], False),
        (EOS, [EOS], False),
    ]
    assert sentence.tokens == ["Do", "n't", "the", "Dog", "fell", EOS]
    assert sentence.ids.tolist() == WORDS.encode(["do", "n't", "the", "<unk>", "fell", EOS]).tolist()
    assert sentence.lacking == ["dog"]
    spread = sentence.spread(np.arange(6, dtype=np.float32))
    assert dict(zip(sentence.pieces, spread, strict=True))["Dog"] == 3
    assert np.isnan(spread[[2, 6]]).all()


def test_the_report_counts_words():
    one = reader()
    list(one.sentences(["The cat fell.\n", "a dog, the cat\n"]))
    unknown, refitted, marks = one.report()
    assert unknown == "2 of 7 words (28.6 %) are not in the vocabulary, read as <unk>: a, dog"
    assert refitted == "2 words read as in the training text: The as the, fell. as fell"
    assert marks == "2 marks left out that the vocabulary lacks: ., ,"
    one = reader()
    list(one.sentences(["the cat fell\n"]))
    assert one.report() == []


def test_as_it_is_only_the_options_of_the_run_fold():
    (sentence,) = reader(as_is=True).sentences(["Don't fell.\n"])
    assert (sentence.tokens, sentence.unknown) == (["Don't", "fell.", EOS], [True, True, False])


def test_words_of_raw_text_are_what_white_space_separates():
    one = reader(tokenisation="raw")
    (sentence,) = one.sentences(["the cat, (fell)\n"])
    assert [text for text, *_ in words(sentence, one)] == ["the", "cat,", "(fell)", EOS]
    assert sentence.read == ["the", "cat", ",", "(", "fell", ")", EOS]


def test_unknown_characters_are_named_by_line_or_left_out():
    with pytest.raises(UserError, match=r"a.txt:3: the character '\u20ac' is not in the vocabulary of 6 characters"):
        list(reader(LETTERS, "characters").sentences(["ab\n", "\n", "c\u20ac a\n"]))
    one = reader(LETTERS, "characters", leave_out=True)
    (sentence,) = one.sentences(["ab c\u20acb\n"])
    assert sentence.read == ["a", "b", " ", "c", "b", EOS]
    assert words(sentence, one) == [("ab", ["a", "b", " "], False), ("c\u20acb", ["c", "b", EOS], True)]
    assert one.report() == ["1 of 6 characters (16.7 %) is not in the vocabulary, left out: \u20ac"]


def test_unknown_words_without_unk_are_named_by_line_in_paragraphs_too():
    vocabulary = Vocabulary.from_counts(Counter(["the", "cat"]))
    with pytest.raises(UserError, match=r"a.txt:2: the word 'dog'"):
        list(reader(vocabulary, eos="paragraph").sentences(["the\n", "dog\n", "cat\n"]))


@pytest.mark.parametrize(("tokenisation", "vocabulary"), [("words", WORDS), ("characters", LETTERS)])
def test_a_long_line_in_parts_is_one_sentence(tokenisation, vocabulary, monkeypatch):
    line = "ab c a b abc  c\n" if tokenisation == "characters" else "the cat fell the cat do n't fell\n"
    (whole,) = reader(vocabulary, tokenisation).sentences([line])
    for longest in (4, 8):
        for module in (reading, utf8):
            monkeypatch.setattr(module, "LONGEST", longest)
        (parts,) = reader(vocabulary, tokenisation).sentences([line])
        assert (parts.pieces, parts.starts) == (whole.pieces, whole.starts)


@pytest.mark.parametrize("tokenisation", ["words", "raw"])
def test_words_in_another_normal_form_are_said_to_be_known(tokenisation):
    vocabulary = Vocabulary(("la", "fene\u0302tre", "for\u00eat", EOS, "<unk>"), (1,) * 5)
    one = reader(vocabulary, tokenisation)
    list(one.sentences(["la fen\u00eatre fore\u0302t l\u00e0\n"]))
    unknown, forms = one.report()
    assert unknown.startswith("3 of 4 words (75.0 %) are not in the vocabulary")
    assert forms.startswith("2 of these are known in another normal form of Unicode: fene\u0302tre, for\u00eat;")
