import copy
import functools
import gc
import os
import signal
import sys

import pytest

if os.name != "posix":
    collect_ignore = ["tasks/test_stopping.py"]  # every test sends signals that Windows lacks


def pytest_collectstart():
    """The process that hands tests out collects none, and need not wait for torch."""
    _prepare()


_begun_again = set()


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem, report, sched):
    """A test that was stopped with its process, since it hung, runs once more; where it hung has been printed."""
    if crashitem not in _begun_again:
        _begun_again.add(crashitem)
        sched.mark_test_pending(crashitem)
        report.outcome = "rerun"


def pytest_terminal_summary(terminalreporter):
    for name in sorted(_begun_again):
        terminalreporter.write_line(f"stopped with its process, and run again: {name}")


@functools.cache
def _prepare():
    import torch
    from hypothesis import settings

    # Compiled in this process: no processes of the compiler that wait for each other, and no locks shared with others.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.set_num_threads(1)
    settings.register_profile("elman", deadline=None, max_examples=40, derandomize=True)
    settings.load_profile("elman")


@functools.cache
def _set_seed():
    """Without a GPU torch.manual_seed keeps a stack trace for every kind of device there could be, at 2 ms a test."""
    import torch

    return torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed


def pytest_collection_finish():
    """What was imported and collected stays, so the garbage collector need not go through it again and again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _seed():
    _set_seed()(0)


@pytest.fixture
def hangups_heard():
    """SIGHUP as in a terminal, also where the tests run under nohup, which ignores it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True)
def _every_notice_again():
    """A notice is printed once per process; here once per test."""
    from elman.errors import said

    said.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory):
    """What is prepared is kept among the temporary files, and shared by all tests that set no folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_samples():
    """The samples that end a training on text have 20 words: 120 take longer than a small training itself."""
    from elman.tasks.text import task

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "sample", functools.partial(task.sample, count=20))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waits_for_the_disk():
    """What is written is safe when the system goes on, which is all that tests can see: 3 ms a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def _options_read_once():
    """The parser reads the options of a command anew for every line, at 10 to 30 ms; here once per command."""
    from cyclopts.argument import ArgumentCollection

    read, known = ArgumentCollection._from_callable.__func__, {}

    def copies(cls, command, *defaults, reserved=(), **how):
        key = command, defaults, tuple(reserved), *how.items()
        if key not in known:
            known[key] = read(cls, command, *defaults, reserved=key[2], **how)
        found = {id(one): copy.copy(one) for one in known[key]}
        for one in found.values():
            one.tokens, one.children = [], cls(found[id(child)] for child in one.children)
        return cls(found.values())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArgumentCollection, "_from_callable", classmethod(copies))
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_table_of_operators():
    """Of ONNX: torch makes the table for every graph, at half a second; here once, if graphs are tested at all."""
    if "onnxscript" not in sys.modules:
        yield
        return
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(functools.cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A small text that no test changes."""
    from support import text_runs

    return text_runs.write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session", autouse=True)
def _sketches():
    """Figures of pages are made and not drawn, which takes most of the time of a page, except for tests of drawings."""
    from elman.drawing import style

    draw = style._saved

    def sketch(figure, name, background):
        if background != "none":  # a file of its own
            return draw(figure, name, background)
        style.as_written(figure)
        return '<svg viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"></svg>'

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "_saved", sketch)
        yield draw


@pytest.fixture
def drawn(_sketches, monkeypatch):
    """Figures are drawn in this test."""
    from elman.drawing import style

    monkeypatch.setattr(style, "_saved", _sketches)
