"""Tests of a changed source in forks of a process that has imported and collected everything.

The functions of the changed file get the code of the changed text (a function is known by its qualified name and its
line), and subprocesses and later imports read the changed file. What a module computes when it is imported does not
change that way: `planted.begin_tests` is for it.
"""

import contextlib
import gc
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from hypothesis.internal.conjecture import engine

import planted


def node_name(test: str) -> str:
    """The name of a test, whatever folder the copy of the source lies in."""
    return re.sub(r"^.*src/elman/", "src/elman/", test)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Warm:
    """A plugin that collects tests and then leaves the loop to `work`, which calls `run` for each change."""

    def __init__(self, source: Path, work: Callable[["Warm"], None]) -> None:
        self.source, self.work, self.failed = source, work, ""
        self.said, self.at = source.parent / "failed", source.parent / "at"
        self.items, self.functions = dict[str, pytest.Item](), dict[tuple[str, str, int], list[FunctionType]]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        self.items = {node_name(item.nodeid): item for item in session.items}
        gc.unfreeze()
        base = str(self.source)
        for one in gc.get_objects():
            if type(one) is FunctionType and one.__code__.co_filename.startswith(base):
                self.functions.setdefault(_key(one.__code__), []).append(one)
        gc.collect()
        gc.freeze()
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid
            self.said.write_text(f"{node_name(report.nodeid)}\n{str(report.longrepr)[-1500:]}")

    def run(self, path: Path, text: bytes, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """The outcome of the tests where a file has this text ("passed", "failed", "endless"), and what failed."""
        before, times = path.read_bytes(), path.stat()
        path.write_bytes(text)
        os.utime(path, (1e9, 1e9 + hash(text) % 10**8))  # a compiled module is known by its file's seconds and length
        self.said.unlink(missing_ok=True)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            self._child(path, text, tests, seconds)
        status, since = None, time.monotonic()
        while status is None:
            done, found = os.waitpid(pid, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(found)
            elif time.monotonic() - since > 15 + 4 * seconds:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                status = -signal.SIGXCPU
            else:
                time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        shutil.rmtree(self.source.parent / "tmp", ignore_errors=True)
        said = self.said.read_text() if self.said.exists() else self.at.read_text() if status else ""
        return {0: "passed", 1: "failed", -signal.SIGXCPU: "endless"}.get(status, f"failed (status {status})"), said

    def _child(self, path: Path, text: bytes, tests: Sequence[str], seconds: float) -> None:
        os.setsid()
        engine.MAX_SHRINKING_SECONDS = 1  # of examples that hypothesis has found
        resource.setrlimit(resource.RLIMIT_CPU, (int(6 + seconds), int(8 + seconds)))
        status = 3
        try:
            for code in _codes(compile(text, str(path), "exec", dont_inherit=True)):
                for function in self.functions.get(_key(code), ()):
                    if len(function.__code__.co_freevars) == len(code.co_freevars):
                        function.__code__ = code
            factory = self.session.config._tmp_path_factory  # type: ignore[attr-defined]
            factory._basetemp = self.source.parent / "tmp"
            factory._basetemp.mkdir(exist_ok=True)
            items = [self.items[test] for test in tests if test in self.items]
            status = 0
            for item, following in zip(items, [*items[1:], None], strict=True):
                self.at.write_text(node_name(item.nodeid))
                self.session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    status = 1
                    break
        except BaseException as error:
            self.said.write_text(f"{type(error).__name__}: {error}")
            status = 1
        finally:
            os._exit(status)


def run_warm(source: Path, files: Sequence[str], work: Callable[[Warm], None]) -> None:
    """Import and collect the tests of the files against a copy of the source, and call `work`."""
    os.chdir(planted.ROOT)
    sys.path.insert(0, str(source))
    os.environ["PYTHONPATH"] = str(source)
    log = (source.parent / "log").open("w")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    pytest.main(["-q", "-p", "no:cacheprovider", *planted.without_xdist(), *files], plugins=[Warm(source, work)])
