"""The sources run on Linux, macOS and Windows: modules, functions and names that only some of them have."""

import ast
from pathlib import Path

import pytest

import elman

ROOT = Path(elman.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty", "uvloop"}
"""Modules that Windows lacks: they are imported within a function, after a look at the system."""

POSIX_OF_OS = {
    "fork",
    "forkpty",
    "getgid",
    "getloadavg",
    "getuid",
    "killpg",
    "mkfifo",
    "nice",
    "sched_getaffinity",
    "setsid",
    "uname",
    "wait",
}
"""Functions of `os` that Windows lacks."""

POSIX_SIGNALS = {
    "SIGALRM",
    "SIGCHLD",
    "SIGHUP",
    "SIGKILL",
    "SIGPIPE",
    "SIGQUIT",
    "SIGTSTP",
    "SIGUSR1",
    "SIGUSR2",
    "alarm",
}

RESERVED = set('<>:"|?*\\')
"""Characters that a name of a file cannot have on Windows."""


def findings(source):
    """What only some systems have in a source, and text files opened in the encoding of the country, as lines."""
    tree = ast.parse(source)
    top = {id(node) for node in tree.body}
    nodes = list(ast.walk(tree))
    asked = {
        ast.unparse(node.args[1]).strip("'\"")
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
    }
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) in top:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in POSIX)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            lacking = {"os": POSIX_OF_OS, "signal": POSIX_SIGNALS}.get(node.value.id, set())
            if node.attr in lacking and node.attr not in asked:
                yield f"{node.lineno}: {node.value.id}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and _opens_text(node):
            yield f"{node.lineno}: no encoding in {ast.unparse(node.func)}"


def _opens_text(node):
    """Whether a call opens, reads or writes text without an encoding."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    keywords = {keyword.arg for keyword in node.keywords}
    if "encoding" in keywords:
        return False
    if name == "read_text":
        return not node.args
    if name == "write_text":
        return len(node.args) < 2
    if name != "open" or (isinstance(node.func, ast.Attribute) and _is_module(node.func.value)):
        return False
    mode = node.args[0 if isinstance(node.func, ast.Attribute) else 1 :][:1]
    modes = [*mode, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    texts = [one.value for part in modes for one in ast.walk(part) if isinstance(one, ast.Constant)]
    return not any("b" in text for text in texts if isinstance(text, str))


def _is_module(value):
    """Whether `value.open` belongs to another module, such as tarfile, zipfile, os or wave, or to an opened archive."""
    return isinstance(value, ast.Name) and value.id in (
        "tarfile",
        "os",
        "wave",
        "opened",
        "members",
        "gzip",
        "bz2",
        "lzma",
        "webbrowser",
    )


def test_nothing_that_only_some_systems_have():
    found = [
        f"{path.relative_to(ROOT)}:{line}" for path in FILES for line in findings(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import fcntl", "import fcntl"),
        ("from termios import x", "import termios"),
        ("import os\nos.getuid()", "os.getuid"),
        ("import signal\nsignal.SIGKILL", "signal.SIGKILL"),
        ("path.read_text()", "no encoding in path.read_text"),
        ("path.write_text(x)", "no encoding in path.write_text"),
        ("open('x')", "no encoding in open"),
        ("path.open('w')", "no encoding in path.open"),
    ],
)
def test_what_is_noticed(source, found):
    assert [line.partition(": ")[2] for line in findings(source)] == [found]


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import resource",
        "import os\nos.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else 1",
        "path.open('rb')",
        "open('x', mode='wb')",
        "path.read_text(encoding='utf-8')",
        "tarfile.open(path, 'r|*')",
    ],
)
def test_what_is_allowed(source):
    assert not list(findings(source))


def test_names_of_files_can_be_written_everywhere():
    """No character that Windows refuses, and no two names that differ in case alone."""
    root = ROOT.parents[1]
    tops = ("src", "recipes", "docs", "results", "tests", "benchmarks", "examples", "scripts")
    paths = [path for top in tops if (root / top).is_dir() for path in (root / top).rglob("*")]
    names = [str(path.relative_to(root)) for path in paths if "__pycache__" not in path.parts]
    assert not [name for name in names if RESERVED & set(name)]
    assert len({name.lower() for name in names}) == len(names)
