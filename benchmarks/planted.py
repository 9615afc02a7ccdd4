"""Do the tests notice? Plants bugs in copies of the source, one at a time, and runs the tests of the module.

    python benchmarks/planted.py [--only WORD ...] [--jobs 2]

The bugs stand in `planted/*.toml`: a file of src/elman, a text that it holds exactly once, the text in its place, and
the tests that must then fail. The same tests are run on an unchanged copy first, where they must pass. Exit status 1
if a bug is not noticed, tests fail without one, or a text is not found exactly once.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import hypothesis
import msgspec
import pytest
import scipy.stats
import torch

ROOT = Path(__file__).resolve().parents[1]
PRELOADED = (hypothesis, msgspec, scipy.stats, torch)
"""Imported once here and not by each run of tests: the runs are forks of this process."""

TIME_LIMIT = 300.0
"""Seconds after which tests are stopped; a bug that makes them run for ever counts as noticed."""


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text of `file`, relative to src/elman, what replaces it, and the tests (paths or node ids) that must fail."""

    name: str
    file: str
    before: str
    after: str
    tests: list[str]

    def plant(self, source: Path) -> None:
        """Change the copy of the source; raises ValueError where the text does not stand there exactly once."""
        path = source / "elman" / self.file
        text = path.read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"the text stands {text.count(self.before)} times in {self.file}")
        path.write_text(text.replace(self.before, self.after))


def read_bugs() -> list[Bug]:
    """All bugs, file by file."""
    tables = [tomllib.loads(path.read_text()) for path in sorted(Path(__file__).with_suffix("").glob("*.toml"))]
    return [bug for table in tables for bug in msgspec.convert(table["bugs"], list[Bug])]


@contextlib.contextmanager
def copy_of_source() -> Iterator[Path]:
    """A temporary copy of src."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        yield source


def begin_tests(source: Path, tests: list[str], log: Path, plugins: Sequence[object] = (), first: bool = True) -> int:
    """Run the tests, until the first that fails, against a copy of the source in a fork of this process; its id."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    with log.open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(ROOT)
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    sys.dont_write_bytecode = True
    options = [*["-x"] * first, "-q", "-p", "no:cacheprovider", *without_xdist()]
    status = pytest.main([*options, *tests], plugins=plugins)
    sys.stdout.flush()
    os._exit(int(status))


def without_xdist() -> list[str]:
    try:
        import xdist  # noqa: F401
    except ImportError:
        return []
    return ["-n", "0"]


def wait(started: dict[int, float], limit: float = TIME_LIMIT) -> tuple[int, int | None]:
    """The process that ends next, and the exit status of its tests, None where they ran for too long."""
    while True:
        for pid, since in started.items():
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return pid, os.waitstatus_to_exitcode(status)
            if time.monotonic() - since > limit:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return pid, None
        time.sleep(0.05)


def run_all(tasks: list[tuple[Bug | None, list[str]]], jobs: int) -> Iterator[tuple[Bug | None, list[str], str, str]]:
    """Each task with its outcome ("passed", "failed", "endless" or what is wrong) and the end of its output."""
    waiting, running = tasks[::-1], dict[int, tuple[Bug | None, list[str], Path, contextlib.ExitStack]]()
    started = dict[int, float]()
    while waiting or running:
        while waiting and len(running) < jobs:
            bug, tests = waiting.pop()
            stack = contextlib.ExitStack()
            source = stack.enter_context(copy_of_source())
            try:
                if bug is not None:
                    bug.plant(source)
            except ValueError as error:
                stack.close()
                yield bug, tests, str(error), ""
                continue
            log = source.parent / "log"
            pid = begin_tests(source, tests, log)
            running[pid], started[pid] = (bug, tests, log, stack), time.monotonic()
        if not running:
            continue
        pid, status = wait(started)
        del started[pid]
        bug, tests, log, stack = running.pop(pid)
        outcome = {0: "passed", 1: "failed", None: "endless"}.get(status, f"pytest ended with status {status}")
        lines = log.read_text(errors="replace").splitlines()
        stack.close()
        yield bug, tests, outcome, "\n".join(lines[-25:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="bugs whose name or file has a word")
    parser.add_argument("--jobs", type=int, default=1, help="test runs side by side")
    arguments = parser.parse_args()
    bugs = read_bugs()
    if arguments.only:
        bugs = [bug for bug in bugs if any(word in f"{bug.name} {bug.file}" for word in arguments.only)]
    unchanged = sorted({tuple(bug.tests) for bug in bugs})
    wrong = 0
    for _, tests, outcome, output in run_all([(None, list(tests)) for tests in unchanged], arguments.jobs):
        if outcome != "passed":
            wrong += 1
            print(f"without a bug: {' '.join(tests)}: {outcome}\n{output}", file=sys.stderr, flush=True)
    print(f"{'bug':72} {'file':44} result")
    noticed = 0
    for bug, _, outcome, output in run_all([(bug, bug.tests) for bug in bugs], arguments.jobs):
        assert bug is not None
        result = {"failed": "noticed", "endless": "noticed: tests do not end", "passed": "NOT NOTICED"}.get(outcome)
        noticed += outcome in ("failed", "endless")
        print(f"{bug.name:72} {bug.file:44} {result or outcome}", flush=True)
        if result is None:
            print(output, file=sys.stderr, flush=True)
    print(f"{noticed} of {len(bugs)} planted bugs noticed")
    return int(bool(wrong) or noticed < len(bugs))


if __name__ == "__main__":
    sys.exit(main())
