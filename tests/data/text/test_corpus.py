import json
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from elman.config.text import TextOptions
from elman.data.text.corpus import open_corpus
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.errors import UserError
from elman.files import sha256_file
from support.systems import posix

WORDS = TextOptions()
RARE = TextOptions(min_count=2)


def message(source, options=WORDS, **more) -> str:
    with pytest.raises(UserError) as error:
        open_corpus(source, options, **more)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_of_splits_is_read_with_its_counts(corpus_folder):
    corpus = open_corpus(corpus_folder, RARE)
    train = corpus.split("train")
    assert corpus.name == "animals"
    assert corpus.vocabulary.words == (EOS, UNK, "the", "cat", "sat")
    words = f"the cat sat {EOS} the {UNK} sat {EOS} {EOS} {UNK} cat {UNK} {EOS}".split()
    assert corpus.vocabulary.decode(train.tokens) == words
    assert (len(train.tokens), train.unknown, train.lines) == (13, 3, 4)
    assert train.characters == len((corpus_folder / "train.txt").read_text())
    assert train.sha256 == sha256_file(corpus_folder / "train.txt")
    assert corpus.split("valid").unknown == 2
    assert sum(corpus.vocabulary.counts) == 13


def test_a_written_unk_is_not_unknown(tmp_path):
    (tmp_path / "test.txt").write_text("the <unk> zebra\n<unk> zebra cat sat\n")
    vocabulary = Vocabulary(("the", "cat", EOS, UNK), (1, 1, 1, 1))
    split = open_corpus(tmp_path, WORDS, vocabulary=vocabulary).split("test")
    assert (list(split.tokens).count(vocabulary.unk), split.unknown) == (5, 3)
    sentences = TextReader(vocabulary, Tokeniser(WORDS)).sentences(["the <unk> zebra\n", "<unk> zebra cat sat\n"])
    assert sum(sum(one.unknown) for one in sentences) == split.unknown


def test_tokens_are_mapped_and_cannot_be_written(corpus_folder):
    tokens = open_corpus(corpus_folder, RARE).split("train").tokens
    assert isinstance(tokens, np.memmap)
    assert tokens.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1


def test_vocabulary_from_all(corpus_folder):
    (corpus_folder / "test.txt").write_text("a zebra sat\n")
    with pytest.raises(UserError, match="'zebra' is not in the vocabulary"):
        open_corpus(corpus_folder, WORDS)
    corpus = open_corpus(corpus_folder, TextOptions(vocabulary_from="all"))
    assert "zebra" in corpus.vocabulary.ids


def test_file_names_with_the_split_inside(corpus_folder):
    for split, name in [("train", "wiki.train.tokens"), ("valid", "wiki_valid.txt"), ("test", "my-test.txt")]:
        (corpus_folder / f"{split}.txt").rename(corpus_folder / name)
    (corpus_folder / "latest.txt").write_text("not a split\n")
    assert set(open_corpus(corpus_folder, RARE).splits) == {"train", "valid", "test"}


def test_two_files_for_a_split(corpus_folder):
    (corpus_folder / "test.txt").rename(corpus_folder / "a.test.txt")
    (corpus_folder / "b.test.txt").write_text("x\n")
    assert message(corpus_folder) == (
        f"{corpus_folder}: 2 files for the test split: a.test.txt, b.test.txt; name the one to use test.txt"
    )


def test_missing_split(corpus_folder):
    (corpus_folder / "valid.txt").unlink()
    assert message(corpus_folder) == (
        f"{corpus_folder}: no valid split; looked for valid.txt, or one file with 'valid' as a part of its "
        "name such as corpus.valid.txt; the folder has test.txt, train.txt"
    )


def test_missing_split_is_allowed_with_a_vocabulary(corpus_folder):
    vocabulary = open_corpus(corpus_folder, RARE).vocabulary
    (corpus_folder / "valid.txt").unlink()
    (corpus_folder / "train.txt").unlink()
    (corpus_folder / "test.txt").write_text("the zebra sat\n")
    corpus = open_corpus(corpus_folder, RARE, vocabulary=vocabulary)
    assert corpus.vocabulary is vocabulary
    assert corpus.split("test").unknown == 1
    with pytest.raises(UserError) as error:
        corpus.split("valid")
    assert str(error.value) == f"{corpus_folder}: no valid split; it has test"


def test_no_split_at_all(tmp_path):
    (tmp_path / "other").mkdir()
    vocabulary = Vocabulary(("a", "b"), (1, 1))
    assert message(tmp_path / "other", vocabulary=vocabulary) == (
        f"{tmp_path / 'other'}: there is no split; give a folder with train.txt, valid.txt or test.txt"
    )


def test_no_such_source():
    assert message("shakespear") == (
        "shakespear: no such file or folder, and no known corpus has this name; give a folder with "
        "train.txt, valid.txt and test.txt, one text file, or a name that `elman data list` shows"
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty; give a text of at least two different words"),
        (b"\n\n", "only blank lines; give a text of at least two different words"),
        (b"the \xff\n", "not UTF-8 at byte 4 (0xff); it looks like "),
    ],
)
@pytest.mark.parametrize("split", ["train", "valid"])
def test_unreadable_files_of_a_corpus_are_named(corpus_folder, cache, data, problem, split):
    path = corpus_folder / f"{split}.txt"
    path.write_bytes(data)
    assert message(corpus_folder).startswith(f"{path}: {problem}")
    assert not list(cache.rglob("*.tmp"))


def test_one_token_vocabulary(corpus_folder):
    (corpus_folder / "train.txt").write_text("a a a\na\n")
    assert message(corpus_folder) == (
        f"{corpus_folder}: the text has only the word 'a' besides <eos> and <unk>; a vocabulary needs two words or more"
    )


@pytest.mark.parametrize("eos", ["line", "exact", "paragraph", "none"])
@pytest.mark.parametrize(("lines", "width"), [(2, 1), (20, 30_000)])
def test_a_character_that_training_never_saw_is_named_with_its_place(tmp_path, eos, lines, width):
    options = TextOptions(tokenisation="characters", eos=eos, valid_fraction=0, test_fraction=1)
    path = tmp_path / "text.txt"
    path.write_text(f"{'ab' * width}\n" * lines + "b\u3042b\nab")
    assert message(path, options, vocabulary=Vocabulary((*"ab ", EOS), (1,) * 4)) == (
        f"{path}:{lines + 1}: the character '\u3042' is not in the vocabulary of 4 characters, which has no <unk>;"
        " take it out, or train with min_count = 2 or more to have one"
    )


def test_a_word_that_one_of_many_files_has_is_named_with_its_place(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "a-1.txt").write_text("\ufeffa b\na")
    (tmp_path / "test" / "a-2.txt").write_text("\ufeffa\nb zebra\n")
    found = message(tmp_path, vocabulary=Vocabulary(("a", "b", EOS), (1, 1, 1)))
    assert found.startswith(f"{tmp_path / 'test' / 'a-2.txt'}:2: the word 'zebra'")


def test_word_that_training_never_saw(corpus_folder):
    (corpus_folder / "valid.txt").write_text("the zebra\n")
    assert message(corpus_folder) == (
        f"{corpus_folder / 'valid.txt'}:1: the word 'zebra' is not in the vocabulary of 7 words, which has no <unk>;"
        " take it out, or train with min_count = 2 or more to have one"
    )
    assert open_corpus(corpus_folder, TextOptions(tokenisation="raw")).split("valid").unknown == 1


@pytest.mark.parametrize("eos", ["line", "paragraph", "none"])
def test_one_file_is_cut_in_order(tmp_path, eos):
    path = tmp_path / "novel.txt"
    path.write_text("".join(f"line {n} of it\n" + "\n" * (n % 3 == 0) for n in range(100)))
    options = TextOptions(eos=eos, valid_fraction=0.2, test_fraction=0.1, vocabulary_from="all")
    corpus = open_corpus(path, options)
    words = [
        word for split in ("train", "valid", "test") for word in corpus.vocabulary.decode(corpus.split(split).tokens)
    ]
    assert [word for word in words if word != EOS] == path.read_text().split()
    assert len(corpus.split("valid").tokens) / len(words) == pytest.approx(0.2, abs=0.03)
    assert len(corpus.split("test").tokens) / len(words) == pytest.approx(0.1, abs=0.03)
    if eos != "none":
        assert all(corpus.split(split).tokens[-1] == corpus.vocabulary.eos for split in corpus.splits)


def test_the_cut_is_where_it_is_said_to_be(tmp_path):
    path = tmp_path / "ten.txt"
    path.write_text("".join(f"word {n} x\n" for n in range(10)))
    corpus = open_corpus(path, TextOptions(valid_fraction=0.15, test_fraction=0.2, vocabulary_from="all"))
    assert [corpus.split(name).lines for name in ("train", "valid", "test")] == [7, 1, 2]


def test_a_whole_file_as_test(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b\nc d\n")
    options = TextOptions(valid_fraction=0, test_fraction=1)
    corpus = open_corpus(path, options, vocabulary=Vocabulary(("a", "b", EOS, UNK), (1, 1, 1, 0)))
    assert list(corpus.splits) == ["test"]
    assert corpus.split("test").unknown == 2
    assert message(path, options) == (
        f"{path}: no train split; set valid_fraction and test_fraction so that all three have text"
    )


def test_file_too_short_to_cut(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("a b c\nd e f\n")
    assert message(path) == (
        f"{path}: too short to be cut by whole lines: the valid split would be empty; give more text, "
        "or a folder with train.txt, valid.txt and test.txt"
    )


def test_fractions_over_one():
    with pytest.raises(msgspec.ValidationError, match="make more than the whole text; their sum may be 1 at most"):
        msgspec.convert({"valid_fraction": 0.6, "test_fraction": 0.6}, TextOptions)
    with pytest.raises(msgspec.ValidationError, match="min_count"):
        msgspec.convert({"min_count": 0}, TextOptions)


def test_second_opening_reads_the_cache(corpus_folder):
    seen: list[str] = []
    first = open_corpus(corpus_folder, RARE, progress=lambda what, done, total: seen.append(what))
    assert {text.split(":")[0] for text in seen} == {"counting words", "encoding"}
    seen.clear()
    second = open_corpus(corpus_folder, RARE, progress=lambda what, done, total: seen.append(what))
    assert seen == []
    assert second.describe() == first.describe()
    with_vocabulary = open_corpus(
        corpus_folder, RARE, vocabulary=first.vocabulary, progress=lambda *_: seen.append("x")
    )
    assert seen == []
    assert with_vocabulary.digest == first.digest


def test_a_changed_text_or_option_is_encoded_anew(corpus_folder):
    first = open_corpus(corpus_folder, RARE)
    assert open_corpus(corpus_folder, TextOptions(min_count=2, eos="none")).digest != first.digest
    (corpus_folder / "test.txt").write_text("the the the\n")
    second = open_corpus(corpus_folder, RARE)
    assert second.digest != first.digest
    assert len(second.split("test").tokens) == 4


def test_a_cut_off_cache_file_is_written_anew(corpus_folder, cache):
    whole = np.array(open_corpus(corpus_folder, RARE).split("train").tokens)
    (path,) = cache.rglob("train.int32")
    path.write_bytes(path.read_bytes()[:-6])
    assert np.array_equal(open_corpus(corpus_folder, RARE).split("train").tokens, whole)


_KILLED = """
import os, signal, sys
from elman.config.text import TextOptions
from elman.data.text.corpus import open_corpus
def progress(what, done, total):
    if what == "encoding: valid.txt":
        os.kill(os.getpid(), signal.SIGKILL)
open_corpus(sys.argv[1], TextOptions(min_count=2), progress=progress)
"""


@pytest.mark.slow
@posix
def test_killed_while_encoding(corpus_folder, cache):
    child = subprocess.run([sys.executable, "-c", _KILLED, str(corpus_folder)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert list(cache.rglob("train.int32"))
    assert not list(cache.rglob("valid.int32"))
    corpus = open_corpus(corpus_folder, RARE)
    assert [len(corpus.split(name).tokens) for name in ("train", "valid", "test")] == [13, 4, 4]
    assert not list(cache.rglob("*.tmp"))


def test_cache_that_cannot_be_written(corpus_folder, tmp_path):
    (tmp_path / "file").write_text("")
    corpus = open_corpus(corpus_folder, RARE, cache=tmp_path / "file")
    assert [len(corpus.split(name).tokens) for name in ("train", "valid", "test")] == [13, 4, 4]


def test_the_description_of_a_corpus_is_json(corpus_folder):
    corpus = open_corpus(str(corpus_folder), RARE)
    data = json.loads(json.dumps(corpus.describe()))
    assert (data["name"], data["source"], data["tokenisation"]) == ("animals", str(corpus_folder), "words")
    assert data["splits"]["train"] == {
        "tokens": 13,
        "unknown": 3,
        "characters": 35,
        "num_bytes": 35,
        "num_words": 13,
        "lines": 4,
        "sha256": sha256_file(corpus_folder / "train.txt"),
    }
    assert data["vocabulary"] == {"size": 5, "digest": corpus.vocabulary.digest}
    assert len(data["digest"]) == 64


@pytest.mark.slow
def test_importing_does_not_load_torch():
    code = "import sys, elman.data.text.corpus; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


VOCABULARY = Vocabulary(("the", "cat", ".", EOS, UNK), (3, 2, 2, 2, 1))


def test_lines_are_encoded_with_their_ends():
    options = TextOptions(tokenisation="raw", lowercase=True)
    found = list(TextReader(VOCABULARY, Tokeniser(options)).sentences(["The Zebra.\n", "the cat"]))
    assert [one.tokens for one in found] == [["The", "Zebra", ".", EOS], ["the", "cat", EOS]]
    assert [one.ids.tolist() for one in found] == [[0, 4, 2, 3], [0, 1, 3]]


def test_lines_are_read_by_paragraph_and_without_eos():
    paragraph = TextReader(VOCABULARY, Tokeniser(TextOptions(eos="paragraph")))
    found = paragraph.sentences(["the\n", "cat\n", "\n", "the\n"])
    assert [one.tokens for one in found] == [["the", "cat", EOS], ["the", EOS]]
    found = TextReader(VOCABULARY, Tokeniser(TextOptions(eos="none"))).sentences(["the\n", "\n", "cat\n"])
    assert [one.tokens for one in found] == [["the"], ["cat"]]


def test_lines_are_encoded_as_they_are_read():
    lines = iter(["the\n", "cat\n", "the\n"])
    next(TextReader(VOCABULARY, Tokeniser(WORDS)).sentences(lines))
    assert list(lines) == ["cat\n", "the\n"]


def test_default_cache_folder(monkeypatch):
    from elman.files import cache_folder

    monkeypatch.setenv("ELMAN_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("ELMAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_folder() == Path("/shared/elman")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "elman"
