"""Which tests reach which places of the source: recorded in one run of all tests over a copy that says so.

A call that notes its number and the running test is put before the statement of each place. A place that is computed
when its module is imported (a constant, a default of a field) counts as reached by every function of the module, and a
default of a parameter by its function.
"""

import ast
import json
import re
import time
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

import planted

IMPORT = ast.parse("from noted_places import _note_place").body
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOTE = """
import os
_SEEN = set()

def _note_place(*numbers):
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    for number in numbers:
        if (number, test) not in _SEEN:
            _SEEN.add((number, test))
            handle = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.write(handle, f"{{number}}\\t{{test}}\\n".encode())
            os.close(handle)
"""


class Between(Protocol):
    """The text between two offsets (bytes) of a file of src/elman."""

    @property
    def file(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class _Notes(ast.NodeTransformer):
    """Puts the calls into the tree of one file."""

    def __init__(self, module: ast.Module, text: bytes, places: dict[int, Between]) -> None:
        self.before, self.within, self.anywhere = dict[int, list[int]](), dict[int, list[int]](), list[int]()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))

        def holds(node: ast.stmt, place: Between) -> bool:
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            return begin <= place.start and place.end <= end

        for number, place in places.items():
            around = [node for node in ast.walk(module) if isinstance(node, ast.stmt) and holds(node, place)]
            scope = next((one for one in reversed(around) if isinstance(one, (*FUNCTIONS, ast.ClassDef))), None)
            if around[-1] is scope and isinstance(scope, FUNCTIONS):
                self.within.setdefault(id(scope), []).append(number)
            elif isinstance(scope, FUNCTIONS):
                self.before.setdefault(id(around[-1]), []).append(number)
            else:
                self.anywhere.append(number)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, FUNCTIONS) and any("jit" in ast.unparse(one) for one in node.decorator_list):
            return node
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                notes = [[_call(self.before[id(one)])] if id(one) in self.before else [] for one in body]
                setattr(node, name, [part for note, one in zip(notes, body, strict=True) for part in (*note, one)])
        if isinstance(node, FUNCTIONS) and (numbers := [*self.within.get(id(node), []), *self.anywhere]):
            node.body.insert(int(ast.get_docstring(node) is not None), _call(numbers))
        return node


def _call(numbers: Sequence[int]) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Name("_note_place", ast.Load()), [ast.Constant(number) for number in numbers], []))


class _Seconds:
    """Writes down how long each test takes to set up, to run and to clear away."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        with self.file.open("a") as file:
            file.write(f"{report.nodeid}\t{report.when}\t{report.duration}\t{report.outcome}\n")


class Chosen:
    """Runs these tests alone, in this order, of all that were collected."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: at for at, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = [item for item in items if item.nodeid in self.order or isinstance(item, pytest.DoctestItem)]
        kept.sort(key=lambda item: self.order.get(item.nodeid, -1))
        config.hook.pytest_deselected(items=[item for item in items if item not in {*kept}])
        items[:] = kept


class Record(NamedTuple):
    """The tests that reach each place, by its number, and the seconds of each test: to set it up, and all else."""

    reached: dict[int, set[str]]
    seconds: dict[str, tuple[float, float]]

    def stages(self, number: int, module: str) -> list[list[str]]:
        """The tests of a place: quick ones of the module's own file and of each other, more of them, the files' others.

        What another test prepared (a trained network, a cache) is used without a record, hence the last of these.
        """
        longest, by_file = dict[str, float](), dict[str, list[str]]()
        for test, (begun, _) in self.seconds.items():
            longest[_file(test)] = max(longest.get(_file(test), 0.0), begun)
        quick = sorted(self.seconds, key=lambda test: sum(self.seconds[test]))
        for test in quick:
            if test in self.reached.get(number, ()):
                by_file.setdefault(_file(test), []).append(test)
        own = [test for file, tests in by_file.items() if f"/test_{Path(module).stem}" in file for test in tests[:20]]
        turns = [test for row in zip_longest(*by_file.values()) for test in row if test is not None]
        in_turn = list(dict.fromkeys([*own, *turns]))
        beside = [test for test in quick if _file(test) in by_file]
        chosen, found = set[str](), list[list[str]]()
        for most, seconds, candidates in ((40, 5.0, in_turn), (400, 15.0, in_turn), (1000, 5.0, beside)):
            stage, files = list[str](), set[str]()
            for test in candidates:
                file = _file(test)
                cost = self.seconds[test][1] + longest[file] * (file not in files)
                if test not in chosen and len(stage) < most and (cost <= seconds or not stage):
                    seconds -= cost
                    stage.append(test)
                    files.add(file)
            chosen |= {*stage}
            first = {file: at for at, file in reversed([*enumerate(map(_file, stage))])}
            found.append(sorted(stage, key=lambda test: first[_file(test)]))
        return [stage for stage in found if stage]

    def cost(self, tests: Sequence[str]) -> float:
        """Seconds that the tests took when they were recorded, at most."""
        return sum(sum(self.seconds[test]) for test in tests)


def _file(test: str) -> str:
    return test.split("::")[0]


def read_record(path: Path, places: Sequence[Between]) -> Record:
    """The record of a file, which is made first where there is none; raises ValueError if it has other places."""
    where = [[place.file, place.start, place.end] for place in places]
    if not path.exists():
        path.write_text(json.dumps({"places": where, **_record(places)}))
    found = json.loads(path.read_text())
    if found["places"] != where:
        raise ValueError(f"{path} is a record of other places, or of another state of the source")
    reached = {int(number): {*tests} for number, tests in found["reached"].items()}
    return Record(reached, {test: (begun, other) for test, (begun, other) in found["seconds"].items()})


def _record(places: Sequence[Between]) -> dict[str, object]:
    with planted.copy_of_source() as source:
        log, written = source.parent / "reached", source.parent / "seconds"
        for file in {place.file for place in places}:
            path = source / "elman" / file
            text = path.read_bytes()
            module = ast.parse(text)
            notes = _Notes(module, text, {at: place for at, place in enumerate(places) if place.file == file})
            module = ast.fix_missing_locations(notes.visit(module))
            module.body[(at := int(ast.get_docstring(module) is not None)) : at] = IMPORT
            path.write_text(ast.unparse(module))
        (source / "noted_places.py").write_text(NOTE.format(log=str(log)))
        pid = planted.begin_tests(source, ["tests"], source.parent / "log", plugins=[_Seconds(written)], first=False)
        planted.wait({pid: time.monotonic()}, limit=float("inf"))
        seconds, reached, other = dict[str, list[float]](), dict[int, set[str]](), set[str]()
        for line in written.read_text().splitlines():
            test, when, spent, outcome = line.rsplit("\t", 3)
            seconds.setdefault(test, [0.0, 0.0])[when != "setup"] += float(spent)
            other |= {test} if outcome != "passed" else set()
        for line in log.read_text().splitlines():
            number, test = line.split("\t")
            reached.setdefault(int(number), set()).add(re.sub(r" \(\w+\)$", "", test))
        seconds = {test: spent for test, spent in seconds.items() if test not in other}
        return {"reached": {at: sorted(tests & {*seconds}) for at, tests in reached.items()}, "seconds": seconds}
