"""Facts about texts: verse and wrapped prose, tokenised and ordinary text, scripts without spaces."""

import textwrap

import pytest

from elman.data.text.facts import facts_of, text_facts
from elman.errors import UserError

SENTENCE = "The old man went down to the harbour, where the boats lay still, and he looked at them for a long time. "
PARAGRAPHS = [SENTENCE * count for count in (2, 5, 3, 4)]
WRAPPED = "\n\n".join(textwrap.fill(paragraph, 72) for paragraph in PARAGRAPHS * 20) + "\n"
VERSE = "\n".join(
    ["But soft, what light through yonder window", "breaks?", "It is the east,", "And she the sun!", ""] * 40
)
TOKENISED = "the cat , it is said , sat down .\nno , it asked ; why ?\n" * 30
UNSPACED = "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n" * 30


def facts(text):
    return facts_of(text, len(text.encode()))


def test_wrapped_prose():
    found = facts(WRAPPED)
    assert (found.wrapped, found.words, found.tokenised, found.blocks) == (True, True, False, 80)


@pytest.mark.parametrize("text", [VERSE, "\n".join(PARAGRAPHS), "\n\n".join(PARAGRAPHS), TOKENISED, UNSPACED])
def test_lines_that_are_not_wrapped(text):
    assert not facts(text).wrapped


def test_wrapped_prose_without_capitals():
    text = "\n\n".join(textwrap.fill("שלום לכולם זה טקסט ארוך " * count, 60) for count in (20, 30, 25) * 10)
    assert facts(text).wrapped


@pytest.mark.parametrize(("short", "wrapped"), [(40, True), (39, False)])
def test_wrapped_lines_are_at_least_four_fifths_as_long_as_the_long_ones(short, wrapped):
    """Every other line has 50 characters."""
    assert facts(f"{'word ' * 9}words\n{('word ' * 9)[: short - 1]}s\n" * 100).wrapped is wrapped


def test_tokenised_text():
    assert facts(TOKENISED).tokenised
    assert facts("he said <unk> yesterday\n" * 10).unknown
    assert not facts(WRAPPED).tokenised
    assert not facts("no marks at all\n" * 50).tokenised


def test_scripts_without_spaces():
    found = facts(UNSPACED)
    assert (found.words, found.ruby, found.tokens) == (False, False, len(UNSPACED))
    assert facts("吾輩《わがはい》は猫《ねこ》である。\n" * 9).ruby


def test_one_line():
    found = facts(SENTENCE * 100)
    assert (found.lines, found.blocks, found.longest) == (1, 1, 1.0)


def test_sizes_are_extrapolated_from_the_beginning():
    whole = facts(WRAPPED)
    assert facts_of(WRAPPED, 3 * whole.size, 3.0)[:3] == (3 * whole.size, 3 * whole.lines, 3 * whole.blocks)
    assert facts_of(WRAPPED, 3 * whole.size, 3.0).tokens == 3 * whole.tokens


def test_files(tmp_path):
    path = tmp_path / "novel.txt"
    path.write_bytes(WRAPPED.encode("utf-16"))
    assert text_facts(path)._replace(size=0) == facts(WRAPPED)._replace(size=0)
    path.write_text("\n \n")
    with pytest.raises(UserError, match="no text in it"):
        text_facts(path)


@pytest.mark.parametrize(("continued", "wrapped"), [(50, True), (49, False)])
def test_half_of_the_lines_of_wrapped_prose_go_on_in_lower_case(continued, wrapped):
    """Of 100 lines that follow another one."""
    lines = [("go" if at < continued else "Go") + f" {'word ' * (9 + at % 2)}on" for at in range(100)]
    assert facts("\n".join(["Begin " + "word " * 9 + "on", *lines]) + "\n").wrapped is wrapped


@pytest.mark.parametrize("line", ["2026-11-{:02} 12:00 INFO started", "👍🏽 ok 😀 {:02} ok", "{:02} 3 4 5 6 7"])
def test_lines_that_begin_without_a_letter_are_no_parts_of_sentences(line):
    assert not facts("\n".join(line.format(number % 28) + "x" * (number % 3) for number in range(60))).wrapped
    assert facts("\n".join('"' + line for line in textwrap.wrap("she went on, " * 400, 60))).wrapped


@pytest.mark.parametrize(("once", "rare"), [(300, False), (301, True)])
def test_words_that_mostly_occur_once(once, rare):
    """Names, molecules and proteins: as words they would be unknown, and the perplexity would mean nothing."""
    words = [f"name{number}" for number in range(once)] + ["ann"] * 300
    found = facts("\n".join(words))
    assert (found.words, found.rare) == (True, rare)
    assert not facts("\n".join(words[:50])).rare  # a few words say nothing
    assert not facts("\n".join(["<unk>", *words])).rare
