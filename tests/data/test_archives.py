"""Archives that are damaged, forged or far larger inside than outside: one line each, and nothing half written."""

import io
import lzma
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from elman.data.archives import LIMIT, Archive, read_npy, read_npz
from elman.data.catalog import known, prepare, unpack
from elman.errors import UserError
from elman.kinds.music.pianoroll import convert_pickle

TEXT = b"the same words again and again\n" * 2000


def refused(function, *arguments):
    with pytest.raises(UserError) as error:
        function(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def wikitext(path, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as members:
        for split in ("train", "valid", "test"):
            members.writestr(f"wiki.{split}.tokens", TEXT)
    return path


def patched(path, **changes):
    """A zip file whose members declare other flags, methods or extra fields, in both places that do."""
    data = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(start)
        while at >= 0:
            for name, value in changes.items():
                struct.pack_into("<H", data, at + flags + {"flags": 0, "method": 2}[name], value)
            at = data.find(start, at + 4)
    path.write_bytes(data)
    return path


def torn(path):
    data = bytearray(path.read_bytes())
    middle = len(data) // 3
    data[middle : middle + 60] = bytes(60)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_torn_zip(tmp_path, method):
    path = torn(wikitext(tmp_path / "a.zip", method))
    assert f"{path}: the archive is damaged" in refused(unpack.wikitext, path, tmp_path / "out")


@pytest.mark.parametrize("changes", [{"flags": 1}, {"method": 77}, {"method": 98}])
def test_an_encrypted_zip_and_unknown_methods(tmp_path, changes):
    path = patched(wikitext(tmp_path / "a.zip"), **changes)
    assert f"{path}: the archive is damaged or encrypted" in refused(unpack.wikitext, path, tmp_path / "out")


def test_a_zip_with_a_bad_extra_field(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as members:
        info = zipfile.ZipInfo("wiki.train.tokens")
        info.extra = struct.pack("<HH", 1, 200)
        members.writestr(info, TEXT)
    assert f"{path}: the archive is damaged" in refused(unpack.wikitext, path, tmp_path / "out")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", ""])
def test_a_torn_tar(tmp_path, kind):
    path, draw = tmp_path / "a.tar", np.random.default_rng(0)
    shards = "training-monolingual.tokenized.shuffled/news.en-00001-of-00100", "other"
    with tarfile.open(path, f"w:{kind}") as members:
        for name in shards:
            info = tarfile.TarInfo(name)
            info.size = 100_000
            members.addfile(info, io.BytesIO(draw.bytes(info.size)))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    line = refused(unpack.one_billion_word, path, tmp_path / "out")
    assert line.startswith(f"{path}: the archive is damaged")
    assert not any((tmp_path / "out").glob("*.txt"))


def test_what_unpacks_to_too_much_is_refused_and_the_limit_can_be_raised(tmp_path, monkeypatch):
    path = wikitext(tmp_path / "a.zip")
    monkeypatch.setenv(LIMIT, "1e-4")
    line = refused(unpack.wikitext, path, tmp_path / "out")
    assert "it unpacks to" in line
    assert LIMIT in line
    monkeypatch.setenv(LIMIT, "much")
    assert f"{LIMIT} is 'much'" in refused(unpack.wikitext, path, tmp_path / "out")
    monkeypatch.setenv(LIMIT, "1")
    unpack.wikitext(path, tmp_path / "out")
    assert (tmp_path / "out" / "test.txt").read_bytes() == TEXT


def test_what_an_archive_may_unpack_to(tmp_path, monkeypatch):
    """A gigabyte, or a hundred times its size if that is more, or what the variable says."""
    monkeypatch.delenv(LIMIT, raising=False)
    small, large = tmp_path / "small.zip", tmp_path / "large.zip"
    small.write_bytes(b"PK")
    with large.open("wb") as file:
        file.truncate(1 << 24)
    assert Archive(small).allowed == 2**30
    assert Archive(large).allowed == 100 * 2**24
    monkeypatch.setenv(LIMIT, "0.5")
    assert Archive(large).allowed == 2**29


def test_a_damaged_download_leaves_no_half_of_a_corpus(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus"
    (corpus / "downloads").mkdir(parents=True)
    path = wikitext(corpus / "downloads" / known.info("wikitext-2").downloads[0].filename)
    with zipfile.ZipFile(path, "a") as members:
        members.writestr("more", b"")
    data = bytearray(path.read_bytes())
    at = data.find(b"wiki.test.tokens")
    data[at + 20 : at + 40] = bytes(20)
    path.write_bytes(data)
    monkeypatch.setattr(prepare, "_digest_of", lambda *_: "0" * 64)
    assert "the archive is damaged" in refused(prepare.prepare, "wikitext-2", corpus)
    assert [one.name for one in corpus.glob("[!.]*")] == ["downloads"]


def npy(shape, kind="<f8", data=b""):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (npy((10**13,)), "80,000,000,000,000 bytes"),
        (npy((10**40, 10**40)), "bytes or more"),
        (npy((100,), data=bytes(80)), "800 bytes are declared, and 80 are there"),
        (npy((-5,)), "plain numbers"),
        (npy((1,), "|O"), "plain numbers"),
        (npy((1,), "nonsense"), "not an"),
        (b"\x93NUMPY\x09\x00", "9.0"),
        (b"", "not an"),
    ],
)
def test_forged_headers_of_arrays(tmp_path, content, problem):
    single, packed = tmp_path / "a.npy", tmp_path / "a.npz"
    single.write_bytes(content)
    with zipfile.ZipFile(packed, "w") as members:
        members.writestr("a.npy", content)
    assert problem in refused(read_npy, single)
    assert problem in refused(read_npz, packed)


def test_arrays_are_read_as_numpy_writes_them(tmp_path):
    draw = np.random.default_rng(0)
    arrays = {"a": draw.normal(size=(3, 4)), "b": np.asfortranarray(draw.normal(size=(3, 4))), "c": np.arange(5)}
    np.savez_compressed(tmp_path / "a.npz", **arrays, d=np.array(2.5), e=np.zeros((0, 3), np.uint8))
    found = read_npz(tmp_path / "a.npz")
    assert list(found) == ["a", "b", "c", "d", "e"]
    assert all((found[name] == array).all() for name, array in arrays.items())
    assert (float(found["d"]), found["e"].shape) == (2.5, (0, 3))


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02]r" + struct.pack("<I", 2**31 - 1) + b".",
        b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"]\x94.",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b".",
        b"\x80\x02" + b"(" * 100_000 + b".",
        b"\x80\x02]" * 50_000,
        b"\x80\x03j" + struct.pack("<I", 2**31) + b".",
        b"cos\nsystem\n(S'true'\ntR.",
        pickle.dumps({"train": [[(40,) * 2000]], "valid": [], "test": []}),
        pickle.dumps({"train": [[(40.5,)]], "valid": [], "test": []}),
        pickle.dumps({"train": 5}),
        b"",
    ],
)
def test_forged_pickles(tmp_path, content):
    (tmp_path / "a.pickle").write_bytes(content)
    line = refused(convert_pickle, tmp_path / "a.pickle", tmp_path / "rolls.npz")
    assert line.endswith("download it again")
    assert not (tmp_path / "rolls.npz").exists()


def test_a_pickle_that_repeats_one_tune_a_million_times(tmp_path):
    step = [60]
    tune = [step] * 30_000
    (tmp_path / "a.pickle").write_bytes(pickle.dumps({"train": [tune] * 30_000, "valid": [], "test": []}))
    assert "it unpacks to" in refused(convert_pickle, tmp_path / "a.pickle", tmp_path / "rolls.npz")


def test_an_xz_stream_of_another_kind(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(lzma.compress(b"not a tar archive"))
    assert "the archive is damaged" in refused(unpack.one_billion_word, path, tmp_path / "out")
