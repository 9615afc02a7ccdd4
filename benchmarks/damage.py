"""Ways to damage one file: bits, lengths, lines, values that keep the syntax, and headers with a valid digest."""

import copy
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import tomli_w
import torch

from elman.learning import checkpoint

Change = Callable[[bytes, Random], bytes]


def _flip(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    place = draw.randrange(len(data))
    changed[place] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _flip_many(data: bytes, draw: Random) -> bytes:
    for _ in range(16):
        data = _flip(data, draw)
    return data


def _zeros(data: bytes, draw: Random) -> bytes:
    place, size = draw.randrange(len(data)), draw.randint(1, 200)
    return data[:place] + bytes(len(data[place : place + size])) + data[place + size :]


def _cut(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data))]


def _insert(data: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.randbytes(draw.randint(1, 64)) + data[place:]


def _remove(data: bytes, draw: Random) -> bytes:
    place = draw.randrange(len(data))
    return data[:place] + data[place + draw.randint(1, 64) :]


def _repeat_line(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    place = draw.randrange(len(lines))
    return b"".join([*lines[: place + 1], *lines[place:]])


def _drop_line(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[draw.randrange(len(lines))]
    return b"".join(lines)


def _swap_lines(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


BYTES: dict[str, Change] = {
    "a bit flipped": _flip,
    "16 bits flipped": _flip_many,
    "a stretch of zeros": _zeros,
    "cut short": _cut,
    "emptied": lambda data, draw: b"",  # noqa: ARG005
    "bytes inserted": _insert,
    "bytes removed": _remove,
    "a line twice": _repeat_line,
    "a line removed": _drop_line,
    "lines shuffled": _swap_lines,
    "only a number": lambda data, draw: b"5\n",  # noqa: ARG005
    "nested deeply": lambda data, draw: b"[" * 20_000,  # noqa: ARG005
}

VALUES: tuple[Any, ...] = (
    *(0, -1, 1, 7, 0.5, 1e30, 10**12, 10**30, 2**63, int("1" * 400)),
    *(True, "", "x", "[/b]", "\x00", [], {}, [1, 2], {"a": 1}),
    *(float("nan"), float("inf")),
)
"""What takes the place of a value."""


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in parts for place in _places(part, (*path, key)))][not path :]


def edit_value(value: Any, draw: Random, *, null: bool = True) -> str:
    """Change, remove or replace one value of nested tables in place; what was done."""
    place = draw.choice(_places(value))
    table = value
    for key in place[:-1]:
        table = table[key]
    name, old = ".".join(map(str, place)), table[place[-1]]
    number = type(old) in (int, float)
    way = draw.choice(["replace", "remove", "near"] if number else ["replace", "remove"])
    if way == "remove":
        del table[place[-1]]
        return f"{name} removed"
    new = old + draw.choice([1, -1]) if way == "near" else draw.choice([*VALUES, *([None] if null else [])])
    table[place[-1]] = copy.deepcopy(new)
    return f"{name} = {str(new)[:20]}"


def _edit_syntax(path: Path, draw: Random) -> str:
    """An edit that keeps JSON or TOML valid."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        table = tomllib.loads(text)
        done = edit_value(table, draw, null=False)
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        return done
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    number = draw.randrange(len(lines))
    value = json.loads(lines[number])
    done = edit_value(value, draw)
    lines[number] = json.dumps(value)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"line {number + 1}: {done}"


def _forge(path: Path, draw: Random) -> str:
    """A model or checkpoint with other facts, types or names, and a digest that fits them."""
    tensors, facts = checkpoint.load(path)
    name = draw.choice(sorted(tensors))
    way = draw.choice(["facts", "null", "float64", "float16", "nan", "renamed", "dropped", "grown"])
    match way:
        case "facts":
            way = edit_value(facts, draw)
        case "null":
            checkpoint.save(path, tensors, None)  # type: ignore[arg-type]
            return "facts null"
        case "float64" | "float16":
            tensors[name] = tensors[name].to(getattr(torch, way))
        case "nan":
            tensors[name] = torch.full_like(tensors[name].float(), torch.nan)
        case "renamed":
            tensors[f"{name}x"] = tensors.pop(name)
        case "dropped":
            del tensors[name]
        case "grown":
            tensors[name] = torch.cat([tensors[name].reshape(-1), tensors[name].reshape(-1)])
    checkpoint.save(path, tensors, facts)
    return f"{name} {way}"


def apply(path: Path, others: list[Path], draw: Random) -> str:
    """Damage a file in a way drawn at random; what was done."""
    data = path.read_bytes()
    ways = [*BYTES, "swapped", "removed"]
    if path.suffix in (".json", ".jsonl", ".toml"):
        ways += ["edited"] * len(ways)
    if path.suffix == ".safetensors":
        ways += ["forged"] * len(ways)
    way = draw.choice(ways)
    if way == "swapped":
        other = draw.choice([one for one in others if one != path])
        path.write_bytes(other.read_bytes())
        return f"{other.name} in its place"
    if way == "removed":
        path.unlink()
        return way
    if way == "edited":
        return _edit_syntax(path, draw)
    if way == "forged":
        return _forge(path, draw)
    if data:
        path.write_bytes(BYTES[way](data, draw))
    return way
