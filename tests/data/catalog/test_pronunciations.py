"""A pronouncing dictionary as pairs: its entries, its splits, and a run's figures over alternative pronunciations."""

import pytest

from elman.config.text import TextOptions
from elman.data.catalog import prepare
from elman.data.catalog.unpack import Pronunciation, read_dictionary, split_of, write_pronunciations
from elman.data.text.corpus import open_corpus
from elman.data.text.sources import SPLITS
from elman.errors import UserError
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.record import PairOptions

DICTIONARY = """;;; a comment
'tis T IH1 Z
lead L EH1 D
lead(2) L IY1 D  # a verb
OBJECT AH0 B JH EH1 K T
object(2) AA1 B JH EH0 K T

object(3) AH1 B JH EH0 K T
"""


def test_entries():
    """Variants belong to their word; letters in lower case; comments are left out."""
    found = read_dictionary(DICTIONARY, "d")
    assert [one.word for one in found] == ["'tis", "lead", "lead", "object", "object", "object"]
    assert found[2] == Pronunciation("lead", ("L", "IY1", "D"))
    assert found[0].pair == "' t i s\tT IH1 Z\n"


def test_without_stress_equal_pronunciations_stand_once():
    found = read_dictionary(DICTIONARY, "d", stress=False)
    assert [one.phonemes for one in found if one.word == "object"] == [
        ("AH", "B", "JH", "EH", "K", "T"),
        ("AA", "B", "JH", "EH", "K", "T"),
    ]


@pytest.mark.parametrize("line", ["cat", "cat k ae t", "cat K AE3 T", "two words K AE1 T"])
def test_a_line_that_is_no_entry_is_told(line):
    with pytest.raises(UserError, match=r"d:2: .* is no entry; every line is a word and its phonemes"):
        read_dictionary(f"a AH0\n{line}\n", "d")


def words(count):
    return [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(count)]


def test_the_splits_are_by_word(tmp_path, monkeypatch):
    """All pronunciations of a word are in its split, and the corpus is read by its name."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(prepare, "_digest_of", lambda path, *_: str(path))
    folder = tmp_path / "cache" / "corpora" / "cmudict"
    with pytest.raises(UserError, match=r"cmudict: this corpus is not here yet .* `elman data prepare cmudict`"):
        open_pairs("cmudict", PairOptions())
    (folder / "downloads").mkdir(parents=True)
    lines = [f"{word} K AH{n}\n" for word in words(400) for n in (0, 1)]
    (folder / "downloads" / "cmudict.dict").write_text("".join(lines))
    assert prepare.prepare("cmudict") == folder
    corpus = open_pairs("cmudict", PairOptions(measures="sequences"))
    assert sum(len(corpus.split(split)) for split in SPLITS) == 800
    for split in SPLITS:
        sources = [source.replace(" ", "") for source in corpus.split(split).source_text]
        assert sources[::2] == sources[1::2]
        assert {split_of(word) for word in sources} == {split}
    with pytest.raises(UserError, match="this is a corpus of minimal pairs, not of pairs"):
        open_pairs("blimp", PairOptions())
    with pytest.raises(UserError, match="this is a corpus of pairs, not text"):
        open_corpus("cmudict", TextOptions())


def test_a_dictionary_of_few_words_is_told(tmp_path):
    (tmp_path / "d").write_text("cat K AE1 T\n")
    with pytest.raises(UserError, match="d: too few words, none of 1 entries is for the"):
        write_pronunciations(tmp_path / "d", tmp_path)
