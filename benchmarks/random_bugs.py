"""Do the tests notice bugs that nobody chose? `python benchmarks/random_bugs.py --count 400 --seed 7`.

Draws places of the source at random, each an operator, comparison, constant, slice or condition, changes it in a copy
(`planted.copy_of_source`) and runs the examples in the module and the tests that reach the place (`reached.py` records
them in one run of all tests, which `--record FILE` keeps), the quick ones first, until one fails.
What nobody noticed is printed as a difference, to be judged: a bug, or a change that no behaviour shows (a bound that
is never met, a speed). Exit status 1 if something went unnoticed.
"""

import argparse
import ast
import compileall
import inspect
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import planted
from reached import Record, read_record
from warm import Warm, run_warm

ROOMS = ("network", "learning", "evaluation", "data", "decoding", "tasks", "serve", "export", "analysis")
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARED |= {"is not": "is", "is": "is not", "not in": "in", "in": "not in"}
COMPUTED = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "//", "**": "*", "@": "*", "|": "&", "&": "|"}
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "mean", "floor": "ceil", "ceil": "floor"}


class Place(NamedTuple):
    """The text between two offsets (bytes) of a file of src/elman, and what is put there."""

    file: str
    line: int
    start: int
    end: int
    after: str

    def changed(self, text: bytes) -> bytes:
        """The text of the file after the change."""
        return text[: self.start] + self.after.encode() + text[self.end :]

    def shown(self) -> str:
        """The line as it is and as it becomes."""
        text = (planted.ROOT / "src" / "elman" / self.file).read_bytes()
        begin, stop = text.rfind(b"\n", 0, self.start) + 1, text.find(b"\n", self.end)
        changed = text[begin : self.start] + self.after.encode() + text[self.end : stop]
        return f"- {text[begin:stop].decode().strip()}\n+ {changed.decode().strip()}"


class Finder(ast.NodeVisitor):
    """Collects the places of one file; what is only shown, annotated or for a type checker has none."""

    def __init__(self, file: str, text: bytes) -> None:
        self.file, self.text, self.places = file, text, list[Place]()
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def _at(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _change(self, line: int, start: int, end: int, after: str) -> None:
        self.places.append(Place(self.file, line, start, end, after))

    def _exchange(self, left: ast.expr, right: ast.expr, changes: dict[str, str]) -> None:
        """The operator between two operands, as far as parentheses do not hide it."""
        start, end = self._at(left)[1], self._at(right)[0]
        words = self.text[start:end].decode()
        if (found := re.fullmatch(r"([\s)]*)(\S+|is not|not in)([\s(]*)", words)) and found[2] in changes:
            at = start + len(found[1])
            self._change(left.lineno, at, at + len(found[2]), changes[found[2]])

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._exchange(left, right, COMPARED)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.JoinedStr, ast.Constant)
        if not any(isinstance(one, texts) and isinstance(getattr(one, "value", ""), str) for one in (node.left,)):
            self._exchange(node.left, node.right, COMPUTED)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._exchange(left, right, {"and": "or", "or": "and"})
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, _ = self._at(node)
        inner = self._at(node.operand)[0]
        if isinstance(node.op, ast.Not | ast.USub) and b"(" not in self.text[start:inner]:
            self._change(node.lineno, start, inner, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self._at(node)
        if isinstance(node.value, bool):
            self._change(node.lineno, start, end, str(not node.value))
        elif isinstance(node.value, int):
            self._change(node.lineno, start, end, str(node.value + 1))
        elif isinstance(node.value, float):
            self._change(node.lineno, start, end, repr(node.value * 2 if node.value else 1.0))

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                start, end = self._at(bound)
                self._change(bound.lineno, start, end, f"({self.text[start:end].decode()}) + 1")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        start, end = self._at(node.test)
        self._change(node.lineno, start, end, f"not ({self.text[start:end].decode()})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if not isinstance(node.body[-1], ast.Raise):
            start, end = self._at(node.test)
            self._change(node.lineno, start, end, f"not ({self.text[start:end].decode()})")
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func
        word = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
        if word in EXCHANGED and not (isinstance(name, ast.Name) and word == "sum"):
            _, end = self._at(name)
            self._change(node.lineno, end - len(word), end, EXCHANGED[word])
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if part is not None:
                self.visit(part)

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:
            self.visit(part)


def places_of(words: Sequence[str]) -> list[Place]:
    """All places of the files whose path has one of the words."""
    found = []
    base = planted.ROOT / "src" / "elman"
    for path in sorted(base.rglob("*.py")):
        file = path.relative_to(base).as_posix()
        if any(file.startswith(word) for word in words) and path.name != "__init__.py":
            finder = Finder(file, path.read_bytes())
            finder.visit(ast.parse(path.read_bytes()))
            found += finder.places
    return found


class Outcome(NamedTuple):
    """What the tests said of a place ("failed", "passed", "endless" or a status), which of them, and the seconds."""

    said: str
    shown: str
    seconds: float


def outcome(number: int, place: Place, record: Record, warm: Warm, stages: int) -> Outcome:
    """Of one place: warm where the change is within functions, and in a new process otherwise."""
    since, path, shown = time.monotonic(), warm.source / "elman" / place.file, ""
    before = path.read_bytes()
    after = place.changed(before)
    for stage in record.stages(number, place.file)[:stages]:
        while tests := [test for test in stage if test not in _WRONG]:
            if within_functions(before, after):
                said, shown = warm.run(path, after, tests, record.cost(tests))
            else:
                said, shown = _cold(path, after, tests, record.cost(tests), warm.source)
            test = shown.partition("\n")[0]
            if said == "passed" or test not in stage or _fails_now(test, path, before, record, warm) is False:
                break
            _WRONG.add(test)  # without a change, too
        if tests and said != "passed":
            return Outcome(said, shown, time.monotonic() - since)
    return Outcome("passed", "", time.monotonic() - since)


_PASSED_ALONE, _WRONG = set[str](), set[str]()


def _fails_now(test: str, path: Path, before: bytes, record: Record, warm: Warm) -> bool:
    """Whether a test fails by itself where nothing is changed."""
    if test not in _PASSED_ALONE and warm.run(path, before, [test], record.cost([test]))[0] == "passed":
        _PASSED_ALONE.add(test)
    return test not in _PASSED_ALONE


_COLD = """
import json, pytest, sys
sys.path[:0], tests = sys.argv[1:3], json.load(sys.stdin)
from reached import Chosen
from planted import without_xdist
options = ["-x", "-q", "-p", "no:cacheprovider", *without_xdist()]
sys.exit(pytest.main([*options, *dict.fromkeys(test.split("::")[0] for test in tests)], plugins=[Chosen(tests)]))
"""


def _cold(path: Path, text: bytes, tests: list[str], seconds: float, source: Path) -> tuple[str, str]:
    before, tests = path.read_bytes(), [test for test in tests if test.startswith("tests/")]
    path.write_bytes(text)
    command = [sys.executable, "-B", "-c", _COLD, str(source), str(Path(__file__).parent)]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(tests).encode(),
            capture_output=True,
            check=False,
            cwd=planted.ROOT,
            timeout=90 + 12 * seconds,
        )
    except subprocess.TimeoutExpired:
        return "endless", ""
    finally:
        path.write_bytes(before)
    said = {0: "passed", 1: "failed", 5: "passed"}.get(done.returncode, f"failed (status {done.returncode})")
    found = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("FAILED ")]
    return said, found[0].removeprefix("FAILED ").split(" - ")[0] if found else ""


def within_functions(before: bytes, after: bytes) -> bool:
    """Whether two texts of a module differ in functions alone, and not in what is computed when it is imported."""

    def outside(code: CodeType) -> object:
        parts = [
            part if not isinstance(part, CodeType) else None if part.co_flags & inspect.CO_OPTIMIZED else outside(part)
            for part in code.co_consts
        ]
        return code.co_code, code.co_names, repr(parts)

    return outside(compile(before, "", "exec")) == outside(compile(after, "", "exec"))


def main() -> int:
    """Draw, record, plant, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="beginnings of paths in src/elman")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep there, or read, which tests reach the places")
    parser.add_argument("--stages", type=int, default=3, help="1: a few quick tests of a file, 2: more, 3: whole files")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further place after them")
    parser.add_argument("--skip", type=int, default=0, help="places of the draw that were tested before")
    parser.add_argument("--list", action="store_true", help="show the places, and run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add a line to FILE for each place")
    options = parser.parse_args()
    places = places_of(options.rooms)
    drawn = random.Random(options.seed).sample(places, min(options.count, len(places)))
    if options.list:
        for number, place in enumerate(drawn):
            print(f"{number} {place.file}:{place.line}\n{place.shown()}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        record = read_record(options.record or Path(folder) / "record.json", drawn)
    counts = Counter[str]()

    def work(warm: Warm) -> None:
        until = time.monotonic() + 60 * options.minutes
        for number, place in [*enumerate(drawn)][options.skip :]:
            found = outcome(number, place, record, warm, options.stages)
            counts["not noticed" if found.said == "passed" else "noticed"] += 1
            if found.said == "passed":
                reached = len(record.reached.get(number, ()))
                print(f"{number} {place.file}:{place.line}: NOT NOTICED, {reached} tests\n{place.shown()}", file=output)
            if options.json is not None:
                with options.json.open("a") as file:
                    line = {"number": number, **place._asdict(), **found._asdict()}
                    file.write(json.dumps(line) + "\n")
            if time.monotonic() > until:
                return

    with planted.copy_of_source() as source, os.fdopen(os.dup(1), "w", buffering=1) as output:
        compileall.compile_dir(source, quiet=1)
        tests = {
            test for number, place in enumerate(drawn) for stage in record.stages(number, place.file) for test in stage
        }
        files = {test.split("::")[0] for test in tests}
        run_warm(source, sorted(str(source.parent / file) if file.startswith("src/") else file for file in files), work)
        print(
            f"seed {options.seed}: of {len(places)} places {counts.total()} drawn, {counts['noticed']} noticed",
            file=output,
        )
    return int(bool(counts["not noticed"]))


if __name__ == "__main__":
    sys.exit(main())
