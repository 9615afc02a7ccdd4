import pytest

from elman.config.text import TextOptions
from elman.data.text.corpus import open_corpus
from elman.data.text.vocabulary import EOS, UNK


def test_the_training_text_ends_with_the_line_that_has_enough_tokens(corpus_folder):
    whole, short = (open_corpus(corpus_folder, TextOptions(min_count=2, train_tokens=n)) for n in (13, 5))
    assert len(whole.split("train").tokens) == 13
    words = f"the {UNK} sat {EOS} the {UNK} sat {EOS}".split()  # "cat" occurs twice in the whole text only
    assert short.vocabulary.decode(short.split("train").tokens) == words
    assert len(short.split("valid").tokens) == len(whole.split("valid").tokens)
    assert short.digest != whole.digest


@pytest.mark.parametrize(
    ("options", "text", "wanted"),
    [
        ({"eos": "paragraph"}, "a b\nc d\n\ne f\n", f"a b c d {EOS}"),
        ({"eos": "none"}, "a b\nc d\n\ne f\n", "a b"),
        ({"tokenisation": "characters"}, "\ufeffab\ncd\n", f"a b {EOS}"),
        ({"tokenisation": "bytes", "eos": "exact"}, "ab\ncd\n", f"a b {EOS}"),
        ({}, "a b c", f"a b c {EOS}"),
    ],
)
def test_the_beginning_of_a_training_text_by_unit(tmp_path, options, text, wanted):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text(text if name == "train" else "a b\n")
    corpus = open_corpus(tmp_path, TextOptions(**options, train_tokens=2, vocabulary_from="all"))
    assert corpus.vocabulary.decode(corpus.split("train").tokens) == wanted.split()


def test_subwords_are_found_in_the_whole_training_text():
    with pytest.raises(ValueError, match="leave it out"):
        TextOptions(tokenisation="subwords", train_tokens=5)
