"""Commands that messages and help quote are understood as they stand, whatever the names of files are."""

import ast
import functools
import re
import shlex
from pathlib import Path

import pytest

from elman.config import plugins
from elman.config.data import Data
from elman.config.parts import members, tag_of
from elman.errors import command
from support.commands import commands_of, is_understood, refusal, trained

SOURCE = Path(__file__).parents[2] / "src" / "elman"
BUILDERS = {"command": (), "resuming": ("--resume", "--out", "X")}
"""Functions that quote a command, and the words that they add."""

NAMES = {"cli/mistakes.py", "cli/lab.py", "cli/reproduce.py"}
"""Modules whose messages hold names of commands only, and no file, between the marks."""

QUOTED = re.compile(r"`elman ([^`\0]+)`|(?:\w: |Example: )elman ((?:(?!Args:|\. |, which)[^\0;`(])+)")
KNOWN = set(commands_of())


@functools.cache
def found():
    """The strings of the package and its calls that quote a command, as lists; every file is parsed once."""
    strings, calls = [], []
    for path in sorted(SOURCE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        strings += [(path.relative_to(SOURCE).as_posix(), text) for text in strings_of(nodes)]
        calls += [(path, words) for words in calls_of(nodes)]
    return strings, calls


def strings_of(nodes):
    """Every literal and f-string; an interpolation is the character NUL."""
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def calls_of(nodes):
    """The words of every call that quotes a command, what is not known here as X."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILDERS:
            known = [one for one in node.args if not isinstance(one, ast.Starred)]
            if known and isinstance(known[0], ast.Constant):
                words = [str(one.value) if isinstance(one, ast.Constant) else "X" for one in known]
                yield words[:1] + list(BUILDERS[node.func.id]) if BUILDERS[node.func.id] else words


def test_literal_commands_are_understood(capsys):
    seen = 0
    for module, text in found()[0]:
        for marked, bare in QUOTED.findall(" ".join(text.split())):
            words = shlex.split((marked or bare).rstrip(" .,"))
            if tuple(words) not in KNOWN and words[0] != "COMMAND":
                lines = (words, [*words, "1"] if words[-1].startswith("--") else words)
                assert any(map(is_understood, lines)), f"{module}: elman {words}: {capsys.readouterr().err}"
                seen += 1
    assert seen > 8


def test_built_commands_are_understood(capsys):
    calls = found()[1]
    assert len(calls) > 12
    for path, words in calls:
        words = ["small" if before == "--scale" else word for before, word in zip(["", *words], words, strict=False)]
        assert is_understood(words), f"{path}: {words}: {capsys.readouterr().err}"


def test_names_of_files_are_quoted_for_the_shell():
    """Text of an f-string that names a command has no interpolation among the words of the command."""
    first = "|".join(sorted(name for name, *rest in KNOWN if not rest))
    for module, text in found()[0]:
        if module not in NAMES:
            assert not re.search(rf"elman (?:{first})\b[^`;,.)]*\0", text), f"{module}: {text!r}"


@pytest.mark.parametrize("data", members(Data).values(), ids=tag_of)
def test_the_command_of_a_kind_of_data_is_understood(data, capsys):
    assert is_understood([*data.command.split(), "a run"]), capsys.readouterr().err


def test_words_with_spaces_and_quotes():
    line = command("train", "--resume", "--out", Path("it's my run"))
    assert shlex.split(line) == ["elman", "train", "--resume", "--out", "it's my run"]


def test_files_of_plugins_continue_with_the_run(monkeypatch):
    loaded = [plugins.Source("/my cells.py", "0"), plugins.Source("a-package", "1.0")]
    monkeypatch.setattr(plugins, "loaded", loaded)
    line = plugins.resuming("train", Path("run"))
    assert line == "elman train --resume --out run --plugin '/my cells.py'"


def test_a_run_in_a_folder_with_a_space(tmp_path_factory, tmp_path, capsys):
    run = trained("words", tmp_path_factory).rename(tmp_path / "it's my run")
    line = refusal(capsys, "train", run)
    assert shlex.split(line.rpartition(": ")[2])[1:] == ["train", "--resume", "--out", str(run)]
    line = refusal(capsys, "compose", run, "--out", tmp_path / "a.mid")
    (quoted,) = re.findall("`(.*)`", line)
    assert shlex.split(quoted) == ["elman", "generate", str(run)]
