"""The n-best lists of SRILM (nbest-format(5)): a file an utterance."""

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from elman.data.nbest import Hypothesis
from elman.errors import UserError

LOG_10 = math.log(10)
BYTELOG = 1024 * math.log(1.0001)
"""Nats of the unit of NBestList1.0."""

NO_WORDS = ("<s>", "</s>", "-pau-")
"""Marks of a sentence's ends and of silence."""


def read_srilm(source: Path) -> list[Hypothesis]:
    """The hypotheses of a folder of n-best files, or of the files that a text names, one a line.

    Lines are `ascore lscore nwords w1 w2 ...` with logarithms to the base 10, which give two scores, or after the
    header NBestList1.0 `(score) w1 w2 ...` in bytelogs, which give one; scores are turned into natural logarithms. An
    utterance has the name of its file without `.gz`, `.nbest`, `.score` or `.txt`.

    Raises:
        UserError: a file cannot be read or has another form.

    """
    found = [hypothesis for path in _files(source) for hypothesis in _hypotheses(path)]
    if not found:
        raise UserError(f"{source}: no hypothesis; give a folder of n-best files or a list of them")
    for one in found:
        if len(one.scores) != len(found[0].scores):
            raise UserError(f"{source}: {one.utterance} has another form of scores than {found[0].utterance}; use one")
    return found


def _files(source: Path) -> list[Path]:
    if source.is_dir():
        return sorted(path for path in source.iterdir() if path.is_file() and not path.name.startswith("."))
    return [Path(name.strip()) for name in _lines(source) if name.strip()]


def _lines(path: Path) -> list[str]:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; convert it first") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(f"{path}: a damaged gzip file; write it again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give n-best files of SRILM") from None


def _hypotheses(path: Path) -> Iterator[Hypothesis]:
    name, lines = re.sub(r"(\.(gz|nbest|score|txt))+$", "", path.name), _lines(path)
    header = lines[0].strip() if lines and lines[0].startswith("NBestList") else ""
    if header not in ("", "NBestList1.0"):
        raise UserError(f"{path}: {header}; give NBestList1.0 (nbest2-to-nbest1 makes it) or lines of plain scores")
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells or (header and number == 1):
            continue
        try:
            scores, words = _of_decipher(cells) if header else _of_srilm(cells)
        except ValueError:
            form = "(score) words" if header else "ascore lscore nwords words"
            raise UserError(f"{path}:{number}: expected {form}, found {line!r}") from None
        yield Hypothesis(name, scores, " ".join(word for word in words if word not in NO_WORDS))


def _of_decipher(cells: list[str]) -> tuple[tuple[float, ...], list[str]]:
    found = re.fullmatch(r"\((.+)\)", cells[0])
    return (_finite(found[1] if found else "") * BYTELOG,), cells[1:]


def _of_srilm(cells: list[str]) -> tuple[tuple[float, ...], list[str]]:
    acoustic, language, _ = map(_finite, cells[:3])
    return (acoustic * LOG_10, language * LOG_10), cells[3:]


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
