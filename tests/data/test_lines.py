"""The one reader of lines: breaks are LF, CR LF and a lone CR, in strings, in files and through every reader."""

import itertools
import math
import shutil
from pathlib import Path

import pytest

from elman.config.text import TextOptions
from elman.data.catalog.unpack import read_dictionary
from elman.data.grammar.reading import parse_grammar
from elman.data.hypotheses import read_srilm
from elman.data.lines import lines_of, with_breaks, with_line_feeds
from elman.data.text.corpus import open_corpus
from elman.data.text.files import Files
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import Vocabulary

WITHIN = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"]
"""What `str.splitlines` cuts at besides line breaks."""


@pytest.mark.parametrize("mark", WITHIN)
def test_nothing_else_ends_a_line(mark):
    assert lines_of(f"a{mark}b\r\nc\rd\n\ne") == [f"a{mark}b", "c", "d", "", "e"]
    assert with_breaks(f"a{mark}b\r\nc\rd") == [f"a{mark}b\n", "c\n", "d"]
    assert with_breaks(f"a{mark}b\r\nc\rd", exact=True) == [f"a{mark}b\r\n", "c\rd"]


def test_blocks_of_bytes_have_the_lines_of_their_text():
    for data in map(bytes, itertools.product(b"a\r\n", repeat=5)):
        whole = b"".join(with_line_feeds([data]))
        assert len(whole) == len(data)
        assert [line.rstrip("\r") for line in whole.decode().split("\n")][: len(lines_of(data.decode()))] == lines_of(
            data.decode()
        )
        for cut in range(6):
            assert b"".join(with_line_feeds([data[:cut], data[cut:]])) == whole


@pytest.mark.parametrize("tokenisation", ["words", "raw", "characters", "bytes"])
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_texts_of_other_systems_have_the_same_tokens(tmp_path, tokenisation, end):
    text = "".join(f"the cat {n % 3} sat\non it .\n\n" for n in range(60))
    found = []
    for name, written in {"a": text, "b": text.replace("\n", end)}.items():
        (tmp_path / name).write_bytes(written.encode())
        corpus = open_corpus(tmp_path / name, TextOptions(tokenisation=tokenisation))
        found.append(corpus.vocabulary.decode(corpus.split("all").tokens))
    assert found[0] == found[1]


def test_a_carriage_return_is_a_character_of_an_exact_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab\rc\r\n" * 40)
    options = TextOptions(tokenisation="characters", eos="exact")
    split = open_corpus(tmp_path / "a.txt", options)
    assert split.vocabulary.decode(split.split("train").tokens[:6]) == ["a", "b", "\r", "c", "\r", "<eos>"]
    assert b"".join(Files.of(tmp_path / "a.txt", exact=True).blocks()) == (tmp_path / "a.txt").read_bytes()


def test_a_string_of_several_lines_is_read_like_a_file():
    reader = TextReader(Vocabulary(("a", "b", "<eos>"), (1, 1, 1)), Tokeniser(TextOptions()))
    assert reader.one("a\rb\r\na\n").read == ["a", "<eos>", "b", "<eos>", "a", "<eos>"]


def test_every_reader_of_lines(tmp_path):
    assert len(read_dictionary("cat K AE1 T\rdog D AO1 G\r\n", "a")) == 2
    with pytest.raises(Exception, match="is no entry"):
        read_dictionary("cat K AE1\x0bT\n# x\x85y\n", "a")
    assert parse_grammar("start S # the first\u2028symbol\rS -> N V\nN : a\r\nV : b\n")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "utt1").write_text("-100.0 -20.0 5 the cat sees\u2028the dog\n-101 -21 2 the dog\n")
    found = read_srilm(tmp_path / "lists")
    assert [one.text for one in found] == ["the cat sees the dog", "the dog"]
    assert found[0].scores == pytest.approx((-100 * math.log(10), -20 * math.log(10)))


def test_the_place_of_a_byte_counts_lone_carriage_returns(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\rb\r\nc\n")
    shutil.copy(path, tmp_path / "b.txt")
    files = Files((path, Path(tmp_path / "b.txt")))
    assert [files.place(at).rsplit(":")[-1] for at in (0, 2, 5, 7, 9)] == ["1", "2", "3", "1", "2"]
