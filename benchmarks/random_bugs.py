"""Do the tests notice bugs that nobody chose? `python benchmarks/random_bugs.py --count 400 --seed 7`.

Draws places of the source at random, each an operator, comparison, constant, slice or condition, changes it in a copy
(`planted.copy_of_source`) and runs the examples in the module and the tests that import it: first the file with its
name, then its room's, then others, then tests of modules that import it, at most `--files` of them, until one fails. A
module that no test imports has the tests that name its classes and functions.
What nobody noticed is printed as a difference, to be judged: a bug, or a change that no behaviour shows (a bound that
is never met, a speed). Exit status 1 if something went unnoticed.
"""

import argparse
import ast
import contextlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import planted

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

    def plant(self, source: Path) -> None:
        """Change the copy of the source."""
        path = source / "elman" / self.file
        text = path.read_bytes()
        path.write_bytes(text[: self.start] + self.after.encode() + text[self.end :])

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


@cache
def _imports(path: Path) -> frozenset[str]:
    """The modules that a file imports anywhere, with the names that it takes from them."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({node.module, *(f"{node.module}.{name.name}" for name in node.names)})
    return frozenset(found)


@cache
def _all(folder: str, pattern: str) -> tuple[Path, ...]:
    return tuple(sorted((planted.ROOT / folder).rglob(pattern)))


@cache
def tests_of(file: str, most: int) -> tuple[str, ...]:
    """The test files of a module of src/elman, then of the modules that import it, nearest first."""
    wanted, seen = {f"elman.{file.removesuffix('.py').replace('/', '.')}"}, set[str]()
    stem, (room, *_), nearest = Path(file).stem, file.split("/"), list[Path]()
    base, every = planted.ROOT / "src", _all("tests", "test_*.py")
    for _ in range(3):
        of_room = [path for path in every if room in path.parts and path.stem.startswith(f"test_{stem}")]
        found = {*of_room, *(path for path in every if _imports(path) & wanted)} - {*nearest}
        nearest += sorted(found, key=lambda path: (path not in of_room, room not in path.parts, path))
        seen |= wanted
        using = [path for path in _all("src/elman", "*.py") if _imports(path) & wanted]
        wanted = {".".join(path.relative_to(base).with_suffix("").parts) for path in using} - seen
    nearest = nearest or _naming(base / "elman" / file)
    if nearest:
        return tuple(path.relative_to(planted.ROOT).as_posix() for path in nearest[:most])
    return (f"tests/{room}",)


def _naming(module: Path) -> list[Path]:
    """The test files that name a class or function of a module, most often first: parts are found by their kinds."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    names = [node.name for node in ast.parse(module.read_bytes()).body if isinstance(node, kinds)]
    word = re.compile(rf"\b({'|'.join(names)})\b") if names else re.compile("(?!)")
    counts = {path: len(word.findall(path.read_text())) for path in _all("tests", "test_*.py")}
    return sorted((path for path in counts if counts[path]), key=lambda path: (-counts[path], path))


def outcomes(places: Sequence[Place], files: int) -> Iterator[tuple[Place, tuple[str, ...], str, float]]:
    """Each place with its tests, what they said ("failed", "passed", "endless" or a status), and the seconds."""
    for place in places:
        tests, since = tests_of(place.file, files), time.monotonic()
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(planted.copy_of_source())
            place.plant(source)
            module = source / "elman" / place.file
            examples = (
                ["--doctest-modules", "--import-mode=importlib", str(module)] if b">>>" in module.read_bytes() else []
            )
            pid = planted.begin_tests(source, [*examples, *tests], source.parent / "log")
            _, status = planted.wait({pid: time.monotonic()})
        said = {0: "passed", 1: "failed", None: "endless"}.get(status, f"failed (status {status})")
        yield place, tests, said, time.monotonic() - since


def main() -> int:
    """Draw, plant, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="beginnings of paths in src/elman")
    parser.add_argument("--files", type=int, default=5, help="test files for each place at most")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further place after them")
    parser.add_argument("--skip", type=int, default=0, help="places of the draw that were tested before")
    parser.add_argument("--list", action="store_true", help="show the places and their tests, and run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add a line to FILE for each place")
    options = parser.parse_args()
    places, until = places_of(options.rooms), time.monotonic() + 60 * options.minutes
    drawn = random.Random(options.seed).sample(places, min(options.count, len(places)))[options.skip :]
    if options.list:
        for place in drawn:
            print(f"{place.file}:{place.line} {' '.join(tests_of(place.file, options.files))}\n{place.shown()}")
        return 0
    counts = Counter[str]()
    for place, tests, said, seconds in outcomes(drawn, options.files):
        counts["not noticed" if said == "passed" else "noticed"] += 1
        if said == "passed":
            print(f"{place.file}:{place.line}: NOT NOTICED by {' '.join(tests)}\n{place.shown()}", flush=True)
        if options.json is not None:
            with options.json.open("a") as file:
                file.write(json.dumps({**place._asdict(), "tests": tests, "said": said, "seconds": seconds}) + "\n")
        if time.monotonic() > until:
            break
    print(f"seed {options.seed}: of {len(places)} places {counts.total()} drawn, {counts['noticed']} noticed")
    return int(bool(counts["not noticed"]))


if __name__ == "__main__":
    sys.exit(main())
