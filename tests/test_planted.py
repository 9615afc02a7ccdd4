"""The harness of benchmarks/planted.py: its lists can be read, and a bug is planted only where its text stands once."""

import ast
import runpy
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def planted():
    return runpy.run_path(str(ROOT / "benchmarks" / "planted.py"))


def test_every_bug_has_a_name_a_file_a_change_and_tests(planted):
    bugs = planted["read_bugs"]()
    assert len(bugs) > 140
    assert not [name for name, count in Counter(bug.name for bug in bugs).items() if count > 1]
    for bug in bugs:
        assert (ROOT / "src" / "elman" / bug.file).is_file(), bug.name
        assert bug.before != bug.after, bug.name
        text = (ROOT / "src" / "elman" / bug.file).read_text(encoding="utf-8")
        assert text.count(bug.before) == 1, f"{bug.name}: its text has changed"
        assert bug.tests, bug.name
        assert all((ROOT / test.split("::")[0]).exists() for test in bug.tests), bug.name


def test_a_text_that_does_not_stand_exactly_once_is_not_changed(planted, tmp_path):
    path = tmp_path / "elman" / "part.py"
    path.parent.mkdir()
    path.write_text("one + two\n")
    bug = planted["Bug"]("sign", "part.py", "+", "-", ["tests"])
    bug.plant(tmp_path)
    assert path.read_text() == "one - two\n"
    path.write_text("one + two + three\n")
    with pytest.raises(ValueError, match=r"the text stands 2 times in part\.py"):
        bug.plant(tmp_path)
    assert path.read_text() == "one + two + three\n"


def test_a_note_stands_before_the_statement_of_each_place(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import reached

    text = b"SIZE = 3\n\ndef double(x, times=2):\n    y = x * times\n    return y\n"
    places = {at: _Between("part.py", text.index(of), text.index(of) + 1) for at, of in enumerate((b"3", b"2", b"*"))}
    module = ast.parse(text)
    found = ast.unparse(reached._Notes(module, text, places).visit(module)).splitlines()
    assert [line for line in found if "_note" in line] == ["    _note_place(1, 0)", "    _note_place(2)"]
    assert found[-2:] == ["    y = x * times", "    return y"]


class _Between(NamedTuple):
    file: str
    start: int
    end: int
