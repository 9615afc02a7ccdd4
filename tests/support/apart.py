"""Programs in processes of their own that need not import packages: children of one that has done so, and no more."""

import multiprocessing
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

PACKAGES = ["torch", "numpy", "scipy.stats", "matplotlib.figure", "cyclopts", "msgspec", "safetensors", "jaxtyping"]
SECONDS = 200


def run(code, *arguments, environment, paths=()):
    """The exit status of a program, and what it printed; `paths` are searched for modules before others."""
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    if os.name == "posix":
        context.set_forkserver_preload(PACKAGES)
    with TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("stdout", "stderr")]
        given = code, [*map(str, arguments)], dict(environment), [*map(str, paths)], files
        process = context.Process(target=_run, args=given)
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"after {SECONDS} s: {arguments}")
        stdout, stderr = (file.read_text(encoding="utf-8") for file in files)
    return SimpleNamespace(returncode=process.exitcode, stdout=stdout, stderr=stderr)


def _run(code, arguments, environment, paths, files):
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0], sys.argv = paths, ["-c", *arguments]
    streams = [file.open("w", encoding="utf-8", buffering=1) for file in files]
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream.fileno(), number)
    sys.stdout, sys.stderr = streams
    exec(code, {"__name__": "__main__"})
