r"""ARPA files written: `\data\`, the number of n-grams of each length, and the n-grams with base-ten logarithms."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from elman.data.text.utf8 import to_bytes
from elman.data.text.vocabulary import EOS
from elman.evaluation.ngram.arpa import LN10
from elman.evaluation.ngram.model import BEGIN, END, NGramModel
from elman.files import replacing
from elman.jobs import Advance

BLOCK = 1 << 16  # n-grams written at once

ZERO = -99.0  # the logarithm of a probability of 0, as SRILM writes it


def write_arpa(model: NGramModel, path: Path, advance: Advance = None) -> None:
    r"""Write a model, compressed where the name ends in `.gz`; `advance` is called with (n-grams done, in all).

    Numbers have seven digits. `<s>`, which is never predicted, has the logarithm -99, as in SRILM's files; a model of
    a running stream also has `<s>` and `</s>` with -99, without which KenLM refuses a file.

    Raises UserError where the file cannot be written.
    """
    with replacing(path) as temporary:
        if path.suffix == ".gz":
            with temporary.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
                _write(model, file, advance)
        else:
            with temporary.open("wb") as file:
                _write(model, file, advance)


def _write(model: NGramModel, file: IO[bytes] | gzip.GzipFile, advance: Advance) -> None:
    levels = model.table.levels
    marks = [word for word in (BEGIN, END) if EOS in model.ids and word not in model.ids]
    sizes = [len(level.keys) + len(marks) * (length == 1) for length, level in enumerate(levels, start=1)]
    file.write(b"\\data\\\n")
    file.writelines(b"ngram %d=%d\n" % (length, size) for length, size in enumerate(sizes, start=1))
    done = 0
    for length in range(1, len(sizes) + 1):
        file.write(b"\n\\%d-grams:\n" % length)
        if length == 1:
            file.writelines(b"%g\t%s\n" % (ZERO, to_bytes(mark)) for mark in marks)
        for lines in _lines(model, length):
            file.write(to_bytes("".join(lines)))
            done += len(lines)
            if advance is not None:
                advance(done, sum(sizes))
    file.write(b"\n\\end\\\n")


def _lines(model: NGramModel, length: int) -> Iterator[list[str]]:
    """The lines of all n-grams of a length, in blocks."""
    level, highest = model.table.levels[length - 1], length == model.table.order
    for at in range(0, len(level.keys), BLOCK):
        part = slice(at, at + BLOCK)
        columns = (map(model.words.__getitem__, column) for column in model.table.rows(length, part).T.tolist())
        texts = map(" ".join, zip(*columns, strict=True))
        log_prob = np.maximum(level.log_prob[part] / LN10, ZERO).tolist()
        if highest:
            yield [f"{number:.7g}\t{text}\n" for number, text in zip(log_prob, texts, strict=True)]
        else:
            weight = (level.backoff[part] / LN10 + 0.0).tolist()
            rows = zip(log_prob, texts, weight, strict=True)
            yield [f"{number:.7g}\t{text}\t{backoff:.7g}\n" for number, text, backoff in rows]
