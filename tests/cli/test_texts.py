"""Texts on standard input: decoded line by line, or as a whole where a mark states another encoding."""

import io
import sys
import types

import pytest

from elman.cli import texts
from elman.config.text import TextOptions
from elman.errors import UserError

LINES = ["a cat\n", "sat “there”\n", "\n", "and went"]


def streamed(monkeypatch, data, options=None):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))
    return list(texts.stream_lines("-", options))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_of_standard_input(monkeypatch, encoding):
    assert streamed(monkeypatch, "".join(LINES).encode(encoding)) == LINES


def test_bytes_of_standard_input(monkeypatch):
    data = "ab\n".encode("utf-16")
    found = streamed(monkeypatch, data, TextOptions(tokenisation="bytes", eos="exact"))
    assert "".join(found).encode("utf-8", "surrogateescape") == data


def test_what_is_not_utf_8_is_refused_with_its_place(monkeypatch):
    with pytest.raises(UserError, match=r"^standard input: not UTF-8 at byte 10 \(0x94\); it looks like "):
        streamed(monkeypatch, b"a cat\nsat \x94there\x94\n")
    with pytest.raises(UserError, match=r"NULs.*it looks like utf-16-le"):
        streamed(monkeypatch, "a cat\nsat\n".encode("utf-16-le"))
