"""A text in many files, compressed or not, is the text in one plain file."""

import functools
import gzip
import sys

import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.kinds import look
from elman.data.text import block_reading, preparation
from elman.data.text.corpus import open_corpus
from elman.data.text.files import Files
from elman.data.text.preparation import WordCounts
from elman.data.text.sources import find_sections
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from support.pairwise import every_value

TRAIN = "training-monolingual.tokenized.shuffled/news.en-{:05d}-of-00100"
HELD_OUT = "heldout-monolingual.tokenized.shuffled/news.en.heldout-{:05d}-of-00050"
LINES = [f"w{number % 7} of w{number * number % 23} Ünder\n" for number in range(90)]
TEXT = "".join(LINES)
WORDS = TextOptions(min_count=2)


def zst(data: bytes) -> bytes:
    module = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return module.compress(data)


def write(path, text, pack=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    end = {None: "", gzip.compress: ".gz", zst: ".zst"}[pack]
    path.with_name(path.name + end).write_bytes((pack or bytes)(text.encode()))


@pytest.fixture
def benchmark(tmp_path):
    """A corpus in the layout of One Billion Word, some files compressed, and the same text in three plain files."""
    folder, plain = tmp_path / "benchmark", tmp_path / "plain"
    for number, pack in enumerate([None, gzip.compress, zst], start=1):
        write(folder / TRAIN.format(number), "".join(LINES[20 * number - 20 : 20 * number]), pack)
    write(folder / HELD_OUT.format(1), "".join(LINES[60:75]), gzip.compress)
    write(folder / HELD_OUT.format(0), "".join(LINES[75:]))
    write(folder / HELD_OUT.format(7), "not read\n")
    for split, part in {"train": LINES[:60], "valid": LINES[60:75], "test": LINES[75:]}.items():
        write(plain / f"{split}.txt", "".join(part))
    return folder, plain


def same(a, b):
    assert a.digest == b.digest
    assert a.vocabulary == b.vocabulary
    assert list(a.splits) == list(b.splits)
    for name in a.splits:
        assert np.array_equal(a.split(name).tokens, b.split(name).tokens)
        assert a.split(name).characters == b.split(name).characters


def test_the_layout_of_one_billion_word(benchmark, tmp_path):
    folder, plain = benchmark
    same(open_corpus(folder, WORDS, cache=tmp_path / "a"), open_corpus(plain, WORDS, cache=tmp_path / "b"))


def test_what_is_encoded_once_serves_every_form_of_the_text(benchmark, monkeypatch):
    folder, plain = benchmark
    whole = open_corpus(plain, WORDS)
    monkeypatch.setattr(block_reading, "blocks", None)
    same(open_corpus(folder, WORDS), whole)


@every_value(eos=["line", "paragraph", "none"], layout=["shards", "pattern", "folders", "numbered splits"])
def test_other_layouts(tmp_path, layout, eos):
    options, joined = TextOptions(eos=eos, valid_fraction=0.2, test_fraction=0.2), tmp_path / "joined.txt"
    text = TEXT.replace("of w16 ", "of w16\n\n")
    joined.write_text(text)
    whole = open_corpus(joined, options)
    folder, lines = tmp_path / "many", text.splitlines(keepends=True)
    if layout in ("shards", "pattern"):
        for number, pack in enumerate([gzip.compress, None, zst]):
            write(folder / f"news-{number}.txt", "".join(lines[number * 40 : number * 40 + 40]), pack)
        source = folder if layout == "shards" else folder / "*-[0-9].txt*"
        assert look(source).kind == "text"
    else:
        parts = find_sections(joined, options)
        data = joined.read_bytes()
        for name, section in parts.items():
            part = data[section.start : section.stop]
            cut = part.index(b"\n", len(part) // 2) + 1
            for number, half in enumerate((part[:cut], part[cut:])):
                place = folder / name / f"{number}.txt" if layout == "folders" else folder / f"{name}-{number}-of-2.txt"
                write(place, half.decode(), gzip.compress if number else None)
        source = folder
    found = open_corpus(source, options, cache=tmp_path / "other")
    assert found.vocabulary == whole.vocabulary
    for name in whole.splits:
        assert np.array_equal(found.split(name).tokens, whole.split(name).tokens)


def test_a_file_without_a_line_end_ends_its_line(tmp_path):
    for number, text in enumerate(["a b", "\ufeffc\n", "d"]):
        write(tmp_path / "all" / f"{number}.txt", text)
    files = Files(tuple(sorted((tmp_path / "all").iterdir())), exact=True)
    assert b"".join(files.blocks()) == b"a b\nc\nd"
    assert files.size == 7
    with files.reading(5) as file:
        assert file.read() == b"\nd"


def test_what_is_not_clear_is_refused(tmp_path):
    write(tmp_path / "train.txt", TEXT, gzip.compress)
    write(tmp_path / "train.txt", TEXT, zst)
    with pytest.raises(UserError, match=r"2 files for the train split: train.txt.gz, train.txt.zst"):
        open_corpus(tmp_path, WORDS, partial=True)
    write(tmp_path / "train.txt", TEXT)
    assert len(open_corpus(tmp_path, WORDS, partial=True).split("train").tokens) == 5 * 90 - 0


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_a_damaged_file_is_named(tmp_path, pack):
    end = ".gz" if pack is gzip.compress else ".zst"
    for number in range(2):
        write(tmp_path / "all" / f"{number}.txt", TEXT, pack)
    bad = tmp_path / "all" / f"1.txt{end}"
    bad.write_bytes(bad.read_bytes()[:-6])
    with pytest.raises(UserError, match=rf"1.txt{end}: the compressed file is damaged or incomplete"):
        open_corpus(tmp_path / "all", WORDS)


def test_a_file_that_is_not_utf_8_is_named(tmp_path):
    write(tmp_path / "all" / "0.txt", TEXT)
    write(tmp_path / "all" / "1.txt", TEXT)
    (tmp_path / "all" / "1.txt").write_bytes(b"the \xff\n" + TEXT.encode())
    with pytest.raises(UserError, match=r"1.txt: not UTF-8 at byte 4 \(0xff\)"):
        open_corpus(tmp_path / "all", WORDS)


@pytest.mark.parametrize(("min_count", "most"), [(1, None), (3, None), (1, 9), (2, 9), (1, 10_000)])
def test_counts_that_do_not_fit_are_those_of_the_whole_text(tmp_path, monkeypatch, min_count, most):
    options = TextOptions(min_count=min_count, max_vocabulary=most, vocabulary_from="all")
    path = tmp_path / "text.txt"
    path.write_text(TEXT + "once\ttwice \\n\n" + "".join(f"x{n} x{n % 50}\n" for n in range(400)))
    whole = open_corpus(path, options, cache=tmp_path / "a").vocabulary
    monkeypatch.setattr(preparation, "WORDS", 20)
    monkeypatch.setattr(block_reading, "blocks", functools.partial(block_reading.blocks, size=100))
    found = open_corpus(path, options, cache=tmp_path / "b").vocabulary
    assert found == whole
    assert not list((tmp_path / "b").rglob("*counting*"))


def test_the_number_of_processes(monkeypatch):
    monkeypatch.delenv(block_reading.JOBS, raising=False)
    assert block_reading.num_jobs() == 1
    monkeypatch.setenv(block_reading.JOBS, "auto")
    assert block_reading.num_jobs() >= 1
    monkeypatch.setenv(block_reading.JOBS, "many")
    with pytest.raises(UserError, match="ELMAN_JOBS is 'many'"):
        block_reading.num_jobs()


def test_all_processes_together_fill_the_cache_once(benchmark, tmp_path, monkeypatch):
    folder, plain = benchmark
    monkeypatch.setenv(block_reading.JOBS, "2")
    monkeypatch.setattr(block_reading, "LEAST", 1000)  # the training text alone
    same(open_corpus(folder, WORDS, cache=tmp_path / "a"), open_corpus(plain, WORDS, cache=tmp_path / "b"))
    assert not list((tmp_path / "a").rglob("*.tmp"))


def test_counts_are_added_up_by_hand(tmp_path):
    counts = WordCounts(tmp_path, most=2)
    for some in ({"b": 1, "a": 2}, {"a": 1, "c\t": 1}, {"b": 5}):
        counts.add(some)
    total, rare = counts.total(2, None)
    assert list(total.items()) == [("b", 6), ("a", 3)]
    assert rare == (1, 1)
    assert Vocabulary.from_counts(total, 2, rare=rare).counts == (6, 3, 1, 0)


def test_sizes_of_plain_files_are_not_read(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    files = Files.of(tmp_path / "a.txt")
    assert files.size == 2
    assert "measure" not in files.__dict__


@pytest.mark.parametrize("eos", ["line", "none", "paragraph"])
@pytest.mark.parametrize("missing", ["valid", "test"])
def test_a_missing_split_is_the_end_of_the_training_text(missing, eos, tmp_path, capsys):
    lines = "".join(f"word{number} and more\n\n" for number in range(100))
    other = "test" if missing == "valid" else "valid"
    (tmp_path / "train.txt").write_text(lines)
    (tmp_path / f"{other}.txt").write_text("a b\n")
    options = TextOptions(eos=eos, valid_fraction=0.1, test_fraction=0.1)
    found = find_sections(tmp_path, options)
    assert set(found) == {"train", "valid", "test"}
    train, cut = found["train"], found[missing]
    assert (train.start, cut.stop, train.stop) == (0, len(lines), cut.start)
    assert 0.9 * len(lines) <= cut.start <= 0.9 * len(lines) + 25
    assert f"no {missing} split: the last 0.1 of the training text is held out for it" in capsys.readouterr().err
