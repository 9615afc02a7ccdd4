"""What the scripts for a GPU share: networks, processes with a time limit, rows of results, times and tables."""

import argparse
import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

import timing
from elman.jobs.sharing import multi_process_service

ROOT = Path(__file__).resolve().parents[1]


class Network(NamedTuple):
    """A network of Penn Treebank: its recipe, published figures, and settings that make it tiny.

    `perplexity`: of the test text, after fine-tuning. `step_ms`: a training step of the published code in float32 (its
    LSTM in TF32) on an H100 (docs/cost.md).
    """

    recipe: str
    perplexity: float
    step_ms: float
    tiny: tuple[str, ...]


_TINY = ("model.encoder.size=8", "model.core.sizes=[12, 12, 8]", "training.batch_size=4", "training.window.length=8")
_FEW = ("model.output.contexts.size=8", "model.output.contexts.heads={3=2}")
NETWORKS = {
    "awd-lstm": Network("recipes/ptb/awd-lstm.toml", 57.3, 16.2, _TINY),
    "mos": Network("recipes/ptb/awd-lstm-mos.toml", 54.44, 23.8, (*_TINY, *_FEW)),
    "doc": Network(
        "recipes/ptb/awd-lstm-doc.toml", 52.38, 26.3, (*_TINY, _FEW[0], "model.output.contexts.heads={2=1, 3=2}")
    ),
}


_RUNNING: list["Process"] = []


@atexit.register
def _end_all() -> None:
    """No process outlives the script."""
    for process in _RUNNING:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.run.pid, signal.SIGKILL)


class Process:
    """A command in a process group of its own, whose output goes to files: `log` its errors, `out` its results."""

    def __init__(self, command: Sequence[str], log: Path, out: Path | None = None, env: Mapping[str, str] = {}) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log, self.begun = log, time.monotonic()
        paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        given = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", **env}
        with log.open("a") as errors, (out or log).open("a") as results:
            self.run = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, env=given, stdout=results, stderr=errors, start_new_session=True
            )
        _RUNNING.append(self)

    def wait(self, until: float, grace: float = 20.0) -> str | None:
        """None after success, else in words what went wrong; from `until` on it it is asked to end, then killed."""
        for signal_number, deadline in ((signal.SIGTERM, until), (signal.SIGKILL, until + grace)):
            try:
                code = self.run.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(self.run.pid, signal_number)
            else:
                break
        else:
            code = self.run.wait()
        _RUNNING.remove(self)
        if code == 0:
            return None
        took = f"after {time.monotonic() - self.begun:.0f} s"
        if time.monotonic() > until:
            return f"stopped {took}, for lack of time"
        lines = self.log.read_text(errors="replace").splitlines()
        return f"exit status {code} {took}: {' '.join(lines[-1:])[:300]}"


@contextlib.contextmanager
def sharing(device: str, processes: int) -> Iterator[tuple[dict[str, str], str]]:
    """CUDA's Multi-Process Service while the block lasts: the environment of its clients, and whether it runs."""
    if device == "cpu" or processes < 2:
        yield {}, "without the Multi-Process Service"
        return
    told: list[str] = []
    with multi_process_service(told.append) as env:
        yield dict(env), told[0]


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as aligned text; numbers with four digits, and an em dash where there is none."""

    def text(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)

    cells = [list(columns), *([text(row.get(column)) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def row(what: str, reference: float | None = None, ours: float | None = None, **more: object) -> None:
    """Print a result as a line of JSON; where there are both figures, with their ratio."""
    ratio = {} if reference is None or not ours else {"ratio": reference / ours}
    print(json.dumps({"what": what, "reference": reference, "ours": ours, **ratio, **more}), flush=True)


def in_time(what: str, options: argparse.Namespace) -> bool:
    """Whether the section has time left; otherwise the omission is recorded."""
    if time.monotonic() < options.until:
        return True
    row(what, skipped="no time left")
    return False


@contextlib.contextmanager
def attempt(what: str) -> Iterator[None]:
    """Record an error of the block as a row instead of raising it."""
    try:
        yield
    except Exception as error:  # whatever fails, the next piece is tried
        row(what, error=f"{type(error).__name__}: {error}"[:500])


def milliseconds(what: str, candidates: timing.Candidates, options: argparse.Namespace) -> dict[str, float]:
    """Medians in ms of runs in turns, of ten in a row each; on a GPU by CUDA events. Failures are recorded."""
    found: dict[str, list[float]] = {}
    times = 1 if options.tiny else 10
    for name, run in candidates.items():
        with attempt(f"{what}: {name}"):
            run()
            found[name] = []
    for _ in range(options.repetitions):
        for name, values in found.items():
            values.append(_elapsed(candidates[name], times, options) / times)
    return {name: median(values) for name, values in found.items()}


def _elapsed(run: Callable[[], object], times: int, options: argparse.Namespace) -> float:
    if options.device.type != "cuda":
        begun = time.perf_counter()
        for _ in range(times):
            run()
        return 1e3 * (time.perf_counter() - begun)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)
