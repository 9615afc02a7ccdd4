"""The cache of encoded texts: damage is found and mended, a folder that cannot be written is replaced."""

import os

import numpy as np
import pytest

from elman.config.text import SubwordOptions, TextOptions
from elman.data.text.corpus import open_corpus
from support import text_runs

READINGS = {
    "words": TextOptions(),
    "subwords": TextOptions(tokenisation="subwords", subwords=SubwordOptions(size=300, coverage=0.99)),
}


@pytest.fixture(params=READINGS)
def opened(request, tmp_path):
    """Opens a corpus by a cache of its own, as often as it is called."""
    source = text_runs.write_corpus(tmp_path / "corpus")
    return lambda: open_corpus(source, READINGS[request.param], cache=tmp_path / "cache")


def same(a, b):
    return a.digest == b.digest and all(np.array_equal(a.split(name).tokens, b.split(name).tokens) for name in a.splits)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def nested(path):
    path.write_text("[" * 20_000)


DAMAGE = {
    "flipped bit": flip,
    "emptied": lambda path: path.write_bytes(b""),
    "empty object": lambda path: path.write_text("{}"),
    "nested": nested,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"0000"),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_reported_and_the_file_is_made_again(opened, tmp_path, capsys, damage):
    whole = opened()
    files = [path for path in (tmp_path / "cache").rglob("[!.]*") if path.is_file()]
    assert len(files) >= 6
    for path in files:
        original = path.read_bytes()
        DAMAGE[damage](path)
        assert same(opened(), whole)
        assert path.read_bytes() == original
        if (damage, path.name) != ("removed", "contents.json"):
            assert f"{path}: this file of the cache is damaged" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_is_read_where_it_is_complete(opened, monkeypatch, capsys):
    whole = opened()
    monkeypatch.setattr(os, "access", lambda *args: False)
    assert same(opened(), whole)
    assert capsys.readouterr().err == ""


def test_without_a_cache_that_can_be_written_the_text_is_encoded_elsewhere(opened, tmp_path, monkeypatch, capsys):
    (tmp_path / "cache").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *args: False)
        elsewhere = opened()
    assert "the variable ELMAN_CACHE names a folder that can" in capsys.readouterr().err
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert same(opened(), elsewhere)
