"""Characters, bytes and subwords give every text back exactly."""

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elman.config.text import SubwordOptions, TextOptions, identity
from elman.data.text.corpus import open_corpus
from elman.data.text.passages import clean, passages, remove_ruby
from elman.data.text.reading import TextReader
from elman.data.text.subwords import Subwords, decode, train
from elman.data.text.tokeniser import Tokeniser, spelt, word_slices, word_starts
from elman.data.text.utf8 import from_bytes, read_lines, to_bytes
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError

LINES = [
    f"the {a} {b} sat on 吾輩は猫である。 {a}{b}" for a in ("cat", "dog", "猫") for b in ("ran", "sang", "名前")
] * 9
SPELT = ("characters", "bytes", "subwords")
ODD = "e\u0301 👩‍👩‍👧 \ufeff\u2028\x0b\x00\t  ▁ <unk> <eos> <0x41> \r\n\n吾輩《わがはい》\r"


@pytest.fixture(scope="module")
def subwords():
    return train(LINES, SubwordOptions(size=340))


def exact(tokenisation):
    return TextOptions(tokenisation=tokenisation, eos="exact", vocabulary_from="all")


def written(path, data, options, subwords=None):
    """The tokens of a file of these bytes."""
    path.write_bytes(data)
    found = passages(
        read_lines(path, options=options), options, subwords if options.tokenisation == "subwords" else None
    )
    return [token for passage in found for token in passage.words]


def data_of(tokens, options):
    return to_bytes(Tokeniser(options).decode(tokens))


@pytest.mark.parametrize("tokenisation", SPELT)
@settings(max_examples=30, deadline=None)
@example("a" + ODD)
@example("x\n")
@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip))
def test_a_file_of_any_text_comes_back(tmp_path_factory, subwords, tokenisation, text):
    path, options = tmp_path_factory.mktemp("text") / "a.txt", exact(tokenisation)
    if text.strip("\n"):
        assert data_of(written(path, text.encode(), options, subwords), options) == text.encode()


@settings(max_examples=30, deadline=None)
@example(b"a\xff\xe5\x90\r\n\x80\xed\xa0\x80")
@given(st.binary(min_size=1))
def test_a_file_of_any_bytes_comes_back(tmp_path_factory, data):
    options = exact("bytes")
    data = b"." + data
    tokens = written(tmp_path_factory.mktemp("bytes") / "a.txt", data, options)
    assert data_of(tokens, options) == data
    assert len(tokens) == len(data)


@pytest.mark.slow
def test_a_line_longer_than_a_block_comes_back(tmp_path, subwords):
    text = ("吾輩は 猫である。" * 2600 + "\r\n") * 2
    for tokenisation in SPELT:
        tokens = written(tmp_path / "a.txt", text.encode(), exact(tokenisation), subwords)
        assert data_of(tokens, exact(tokenisation)) == text.encode()


def test_what_is_not_utf8_is_one_clear_error_in_characters(tmp_path):
    with pytest.raises(UserError, match="not UTF-8 at byte 2"):
        written(tmp_path / "a.txt", b"ab\xff", exact("characters"))


@pytest.mark.parametrize("tokenisation", SPELT)
def test_counts_and_vocabulary(tmp_path, tokenisation):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(LINES) + "\nend 猫")
    options = msgspec.structs.replace(exact(tokenisation), subwords=SubwordOptions(size=340))
    corpus = open_corpus(path, options)
    text = path.read_text()
    splits = corpus.splits.values()
    assert sum(split.characters for split in splits) == len(text)
    assert sum(split.num_bytes for split in splits) == len(text.encode())
    assert sum(split.num_words for split in splits) == len(text.split()) + text.count("\n")
    tokens = [word for split in splits for word in corpus.vocabulary.decode(split.tokens)]
    assert corpus.tokeniser.decode(tokens) == text
    assert corpus.vocabulary.unk is None
    seen = np.bincount(np.concatenate([split.tokens for split in splits]), minlength=len(corpus.vocabulary))
    assert list(corpus.vocabulary.counts) == seen.tolist()  # what is only known, such as other bytes, has none
    if tokenisation == "bytes":
        assert len(corpus.vocabulary) == 256
    if tokenisation != "characters":
        (found,) = TextReader(corpus.vocabulary, corpus.tokeniser).sentences(["völlig neu\n"])
        assert corpus.tokeniser.decode(found.tokens) == "völlig neu\n"
        assert corpus.vocabulary.decode(found.ids) == found.tokens


def test_new_characters_without_unk_are_an_error(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("ab\n" * 9)
    corpus = open_corpus(path, TextOptions(tokenisation="characters", valid_fraction=0.3, test_fraction=0.3))
    with pytest.raises(UserError, match=r"new\.txt:2: the character 'z' is not in the vocabulary of 3 characters"):
        list(TextReader(corpus.vocabulary, corpus.tokeniser, name="new.txt").sentences(["ab\n", "abz"]))


def test_lines_of_the_exact_rule_have_eos_where_they_end():
    options = exact("characters")
    vocabulary = Vocabulary(("a", "b", "\r", EOS), (1, 1, 1, 1))
    found = TextReader(vocabulary, Tokeniser(options)).sentences(["a\r\n", "\n", "b"])
    assert [one.tokens for one in found] == [["a", "\r", EOS], [EOS], ["b"]]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_are_deterministic_and_kept(kind, subwords):
    options = SubwordOptions(kind=kind, size=340)
    one, other = train(LINES, options), train(iter(LINES), options)
    assert one.model == other.model
    assert Subwords(one.model).encode("the cat sat") == one.encode("the cat sat")
    assert len(one.encode("the cat sat")) < len("the cat sat")


@pytest.mark.parametrize("text", ["a\udcff b", "the \ud83d cat", "a\u2581\udc80"])
def test_bytes_that_are_not_utf_8_are_spelt_in_subwords(subwords, text):
    assert to_bytes(decode(subwords.encode(text))) == to_bytes(text)


def test_subwords_that_cannot_be(subwords):
    with pytest.raises(UserError, match=r"data\.subwords\.size = 300"):
        train([chr(0x4E00 + n) * 3 for n in range(500)], SubwordOptions(size=300, coverage=1.0))
    with pytest.raises(UserError, match="not a model of sentencepiece"):
        Subwords(b"nothing")


def test_word_starts_are_those_of_the_text(subwords):
    for tokenisation in SPELT:
        tokeniser = Tokeniser(exact(tokenisation), subwords)
        for line in ("the cat  sat", " the cat", "the\u00a0cat\u3000 s\u00e0t", "\u3000\u2003dog, cat"):
            tokens = [*tokeniser.encode(line), EOS, *tokeniser.encode("dog")]
            words = [tokeniser.decode(tokens[part]) for part in word_slices(word_starts(tokens, tokeniser.options))]
            assert [word.strip() for word in words] == [*line.split(), "dog"]
    assert word_starts(["a", "b"], TextOptions()) == [True, True]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("吾輩《わがはい》は一番｜獰悪《どうあく》な", "吾輩は一番獰悪な"),
        ("［＃８字下げ］一［＃「一」は中見出し］\n", "一\n"),
        ("※［＃「言＋墟のつくり」、第4水準2-88-74］と〔Quid〕", "※と〔Quid〕"),
        ("a［＃b［＃c］d］e《f", "ae《f"),
    ],
)
def test_ruby_is_removed_where_asked(text, rest):
    assert remove_ruby(text) == rest


def test_text_is_normalised_as_the_options_ask():
    text = "e\u0301 ｶﾞ ﬁ\n"
    assert clean(text, TextOptions()) == text
    assert clean(text, TextOptions(normalisation="NFC")) == "é ｶﾞ ﬁ\n"
    assert clean(text, TextOptions(normalisation="NFKC")) == "é ガ fi\n"


def test_old_options_keep_their_digest():
    old = (
        '{"eos":"line","lowercase":false,"max_vocabulary":null,"min_count":1,"test_fraction":0.05,'
        '"tokenisation":"characters","valid_fraction":0.05,"vocabulary_from":"train"}'
    )
    assert identity(TextOptions(tokenisation="characters")) == old
    assert identity(TextOptions(tokenisation="characters", ruby="remove")) != old


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"eos": "exact"}, 'eos = "exact" with tokenisation = "words"'),
        ({"tokenisation": "bytes", "min_count": 2}, "min_count and max_vocabulary"),
        ({"tokenisation": "subwords", "max_vocabulary": 500}, "min_count and max_vocabulary"),
    ],
)
def test_options_that_do_not_fit(options, reason):
    with pytest.raises(ValueError, match=reason):
        TextOptions(**options)


@given(st.binary())
def test_bytes_as_text(data):
    assert to_bytes(from_bytes(data)) == data


CHARACTERS = TextOptions(tokenisation="characters")


def cut(text, *, eos=True):
    tokens = [*text, "<eos>"] if eos else [*text]
    return ["".join(tokens[part]) for part in word_slices(word_starts(tokens, CHARACTERS))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("to be", ["to ", "be<eos>"]),
        ("  to   be ", ["  to   ", "be <eos>"]),
        ("a", ["a<eos>"]),
        ("", ["<eos>"]),
        ("  ", ["  <eos>"]),
    ],
)
def test_a_word_of_characters_has_its_boundary(text, words):
    assert cut(text) == words


def test_without_an_end_the_last_word_has_none():
    assert cut("to be", eos=False) == ["to ", "be"]


def test_every_token_of_words_starts_a_word():
    tokens = ["to", "be", "<eos>"]
    assert word_starts(tokens, TextOptions()) == [True] * 3
    assert word_slices([]) == []


def test_tokens_are_spelt_as_in_the_text():
    assert spelt([*" to ", "<eos>"], CHARACTERS) == "to"
    assert spelt(["<eos>"], CHARACTERS) == "<eos>"
