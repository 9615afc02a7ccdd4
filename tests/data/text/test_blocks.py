"""A text in blocks gives what the whole text gives, whatever the size of the blocks."""

import itertools
import random

import pytest

from elman.config.text import TextOptions
from elman.data.text import block_reading, preparation
from elman.data.text.block_reading import BlockReader, blocks
from elman.data.text.files import Files
from elman.data.text.passages import passages
from elman.data.text.preparation import WordCounts
from elman.data.text.sources import Section
from elman.data.text.utf8 import read_lines
from elman.data.text.vocabulary import EOS
from elman.errors import UserError

LINES = ["a b", "", "", " ", "《よみ》", "x", "\r", "c  d\u3000é", "Ünicode ΑΣ", f"{EOS} <unk>", "\u3000", "\x1c"]
LONG = ["w " * 150_000, "v" * 200_000, " " * 70_000 + "end", "u " * 40_000 + "  "]
GAP = "y " * 30_000 + " " * 140_000 + "z " * 90_000
"""Parts of this line are blank."""
READINGS = {
    "words": TextOptions(),
    "lower": TextOptions(lowercase=True),
    "raw": TextOptions(tokenisation="raw"),
    "no ruby": TextOptions(ruby="remove"),
    "normalised": TextOptions(normalisation="NFKC", tokenisation="raw"),
    "paragraphs": TextOptions(eos="paragraph", tokenisation="raw"),
    "no ends": TextOptions(eos="none"),
    "characters": TextOptions(tokenisation="characters"),
    "exact": TextOptions(tokenisation="characters", eos="exact"),
    "bytes": TextOptions(tokenisation="bytes", eos="exact"),
}


def text(seed: int, *, long: bool) -> str:
    draw = random.Random(seed)
    lines = draw.choices(LINES, k=60)
    if long:
        lines[draw.randrange(60)] = draw.choice(LONG)
        lines[draw.randrange(60)] = draw.choice(LONG)
    return "first\n" + "\n".join(lines) + draw.choice(["", "\n"])


def section_of(path, options):
    return Section(Files.of(path, exact=options.eos == "exact"))


def found_in(cut, section, options):
    found = (passages(block.lines(section, options), options, ends=block.ends) for block in cut)
    return [tuple(one)[:6] for some in found for one in some]


def found_at_once(path, options):
    return [tuple(one)[:6] for one in passages(read_lines(path, options=options), options)]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(("size", "long"), [(7, False), (40, False), (70_000, True)])
def test_the_passages_of_blocks_are_those_of_the_text(tmp_path, reading, size, long):
    options, path = READINGS[reading], tmp_path / "text.txt"
    for seed in range(3 if long else 20):
        path.write_text(text(seed, long=long))
        section = section_of(path, options)
        cut = list(blocks(section, options, size=size))
        assert b"".join(block.data for block in cut) == b"".join(section.files.blocks())
        assert len(cut) > 1
        assert found_in(cut, section, options) == found_at_once(path, options)


@pytest.mark.parametrize("reading", READINGS)
def test_blank_parts_of_a_long_line(tmp_path, reading):
    options, path = READINGS[reading], tmp_path / "text.txt"
    path.write_text(f"a\n\n{GAP}\n\nb\n{GAP}")
    section = section_of(path, options)
    cut = list(blocks(section, options, size=70_000))
    assert found_in(cut, section, options) == found_at_once(path, options)
    assert any(block.cuts for block in cut)


@pytest.mark.parametrize("lowercase", [False, True])
def test_lines_of_words_are_read_at_once_as_one_by_one(tmp_path, lowercase):
    options, path = TextOptions(lowercase=lowercase), tmp_path / "text.txt"
    for seed in range(20):
        path.write_text(text(seed, long=False) + "吾輩は猫である。名前はまだ無い。")
        section = Section(Files.of(path))
        at_once, one_by_one = (BlockReader(section, options) for _ in range(2))
        one_by_one._at_once = False
        for block in blocks(section, options, size=200):
            assert at_once.tokens(block) == one_by_one.tokens(block)


def test_a_block_is_numbered_by_its_own_words_in_their_order(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(text(1, long=False))
    section = Section(Files.of(path))
    for block in blocks(section, TextOptions(), size=500):
        reader = BlockReader(section, TextOptions())
        words, numbers, sums = reader.number(block)
        tokens, expected = reader.tokens(block)
        assert [words[number] for number in numbers] == tokens
        assert words == list(reader.count(block))
        assert sums == expected


@pytest.mark.slow
def test_several_processes_find_what_one_finds(tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{word} {word % 97}\n" for word in range(20_000)))
    section, options = Section(Files.of(path)), TextOptions()
    reader = BlockReader(section, options)
    cut = list(blocks(section, options, size=10_000))
    alone = [reader.count(block) for block in cut]
    together = list(block_reading._by_all(iter(cut), "count", reader, 2))
    assert [found for _, found in together] == alone
    assert [stop for stop, _ in together] == list(itertools.accumulate(len(block.data) for block in cut))


@pytest.mark.parametrize("reading", ["words", "raw", "paragraphs", "no ends"])
def test_a_file_of_blank_lines_is_refused(tmp_path, reading):
    path = tmp_path / "a.txt"
    path.write_text("\n \n\t\n")
    with pytest.raises(UserError, match=r"a\.txt: only blank lines; give a text of at least two different words"):
        preparation.count_words(Section(Files.of(path)), READINGS[reading], WordCounts(tmp_path / "counts"))
