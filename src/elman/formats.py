"""JSON and TOML, read within limits.

Every file of these forms that the program opens is read here, so that none can exhaust the stack, or hold a number
that no computation can use.
"""

import contextlib
import copy
import functools
import json
import math
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from elman.errors import UserError

DEEPEST = 64
"""How many tables and lists may stand within each other."""

NPY = b"\x93NUMPY"
"""How an .npy file begins."""

SCALE = ":scale"
"""In a model file, what follows the name of a matrix of eight bits in the name of its scales; no name has a colon."""

MOST = 2**28
"""Bytes of a file of records at most."""

LARGEST = 2**63
"""Integers are less than this in size, as in TOML and in tensors."""


@contextlib.contextmanager
def opened_tensors(path: Path, framework: str, advice: str) -> Iterator[Any]:
    """A safetensors file; raises UserError with `advice` where it cannot be read, or is none."""
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # safe_open calls every failure "No such file"
        with safe_open(path, framework=framework) as file:
            yield file
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (SafetensorError, RuntimeError) as error:
        raise UserError(f"{path}: truncated or not a model file ({error}); {advice}") from None


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text in UTF-8; raises ValueError where it is damaged or beyond the limits.

    NaN and infinity are read as such.
    """
    return _within_limits(json.loads, text.decode() if isinstance(text, bytes) else text)


def read_json(path: Path, kind: Any = Any, advice: str = "restore or remove the file") -> Any:
    """The value of a JSON file, of a type that msgspec knows; every file that elman itself wrote is read back here.

    Raises UserError, which ends with `advice`, where it is missing, damaged, too large or of another type.

    Example:
        >>> read_json(Path("nowhere.json"))
        Traceback (most recent call last):
        elman.errors.UserError: nowhere.json: missing or damaged (No such file or directory); restore or remove the file
    """
    try:
        return msgspec.convert(parse_json(read_bytes(path)), kind)
    except OSError as error:
        raise UserError(f"{path}: missing or damaged ({error.strerror}); {advice}") from None
    except ValueError as error:
        raise UserError(f"{path}: damaged ({error}); {advice}") from None


def read_bytes(path: Path, most: int = MOST) -> bytes:
    """The bytes of a file; raises ValueError where there are more than `most`, as a device may have without end."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"more than {most:,} bytes")
    return data


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; raises ValueError where it is damaged or beyond the limits."""
    return copy.deepcopy(_toml(text))


@functools.lru_cache(maxsize=256)
def _toml(text: str) -> dict[str, Any]:
    """Experiments read the same recipes and settings again and again."""
    tables: dict[str, Any] = _within_limits(tomllib.loads, text)
    return tables


def _within_limits(parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as error:
        if "set_int_max_str_digits" in str(error):  # Python's limit on digits names one of its own functions
            raise ValueError("an integer of thousands of digits") from None
        raise
    require_modest(value)
    return value


def require_modest(value: Any) -> None:
    """Raise ValueError where plain values are nested too deeply, or an integer has more than 64 bits."""
    pending = [(value, 0)]
    while pending:
        part, depth = pending.pop()
        if isinstance(part, dict | list):
            if depth == DEEPEST:
                raise ValueError(_TOO_DEEP)
            pending += [(one, depth + 1) for one in (part.values() if isinstance(part, dict) else part)]
        elif isinstance(part, int) and not -LARGEST <= part < LARGEST:
            raise ValueError(f"an integer of {part.bit_length()} bits; at most 64 are allowed")


_TOO_DEEP = f"tables or lists nested more than {DEEPEST} deep"


def with_nan(value: Any) -> Any:
    """Plain values in which None, as `elman.files.finite` has numbers that are not finite, is NaN."""
    if isinstance(value, dict):
        return {key: with_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return list(map(with_nan, value))
    return math.nan if value is None else value
