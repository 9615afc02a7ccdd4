"""The exceptions and notices whose messages are written for users, and how a message becomes one line."""

import contextlib
import difflib
import functools
import importlib
import os
import shlex
import sys
from collections.abc import Iterable
from typing import Any

LONGEST = 1000
"""Characters of a message at most."""

ENCODING = "ELMAN_ENCODING"
"""The environment variable with the encoding that the user gave for texts that are not UTF-8."""


class UserError(Exception):
    """A mistake of the user: bad input, an impossible recipe, a damaged file.

    The message is one line: the key or file, what was found, what is allowed and what to do. The
    command line prints it and exits with status 2.
    """


class Diverged(UserError):  # noqa: N818 - an outcome of training, not a fault
    """The loss or a weight of a training is not finite, or the probabilities of its model are not numbers."""


def notice(line: str) -> None:
    """Print a line for the user on standard error, once per process however often it is given.

    Paths below the working folder are named from there.
    """
    with contextlib.suppress(OSError):  # there is no working folder any more
        line = line.replace(f"{os.getcwd()}{os.sep}", "")  # noqa: PTH109 - as it is written
    said(line)


@functools.cache
def said(line: str) -> None:
    """Print a line of `notice`; the lines that have been are kept here."""
    print(f"elman: {line}", file=sys.stderr, flush=True)  # noqa: T201 - for the user, whichever function it is


def optional(module: str, message: str) -> Any:
    """A module of a package that may be missing; raises UserError with this message where it is."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(message) from None


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun; `plural` where that is not the noun and an s.

    >>> counted(1, "seed"), counted(1200, "copy", "copies")
    ('1 seed', '1,200 copies')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest of known words as a question to append to a message; empty where none is near.

    >>> did_you_mean("trian", ["train", "evaluate"])
    ' (did you mean train?)'
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def command(*words: object) -> str:
    """A command of elman as a shell reads it, for a message, with the encoding that was given.

    >>> command("train", "--resume", "--out", "my run")
    "elman train --resume --out 'my run'"
    """
    encoding = os.environ.get(ENCODING)
    return shlex.join(["elman", *map(str, words), *(["--encoding", encoding] if encoding else [])])


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not blank, or the name of its kind."""
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)


def one_line(text: str) -> str:
    r"""Text without line breaks or other control characters, which are written as escapes; very long text is cut.

    >>> one_line("a\nb")
    'a\\nb'
    """
    plain = "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST // 2]} ... {plain[-LONGEST // 2 :]}"
