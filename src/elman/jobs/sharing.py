"""Several processes on one GPU: CUDA's Multi-Process Service runs their kernels at the same time, not in turns.

A training step of a small network leaves most of a GPU empty. NVIDIA's driver brings the service, whose control program
is started for one command with pipes of its own, and ended with it; one that runs already is used as it is.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"
PIPES = Path(tempfile.gettempdir()) / "nvidia-mps"
"""Where the service of a machine has its pipes, unless CUDA_MPS_PIPE_DIRECTORY names another place."""

CLIENT = [sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"]
"""A process that uses the GPU, which shows whether the service lets it."""


@contextlib.contextmanager
def multi_process_service(tell: Callable[[str], object]) -> Iterator[Mapping[str, str]]:
    """The service while the block lasts: the variables of the environment that its clients need.

    `tell` gets one line: that it runs, or why the processes share the GPU without it, one after the other.
    """
    control, pipes = shutil.which(CONTROL), os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    if pipes or (PIPES / "control").exists():
        tell("jobs share the GPU by the Multi-Process Service that is running")
        yield {}
        return
    if control is None:
        tell(f"jobs take turns on the GPU: {CONTROL}, which lets them run at the same time, is not installed")
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="elman-mps-", ignore_cleanup_errors=True) as folder:
        env = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
        for path in env.values():
            Path(path).mkdir()
        given = {**os.environ, **env}
        try:
            problem = _start(control, given)
            if problem is None:
                tell("jobs share the GPU by CUDA's Multi-Process Service, which ends with them")
            else:
                tell(f"jobs take turns on the GPU: its Multi-Process Service does not work ({problem})")
            yield env if problem is None else {}
        finally:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                _run([control], given, 30, b"quit\n")


def _start(control: str, env: Mapping[str, str]) -> str | None:
    """None, or in words why it does not work."""
    for command, seconds in (([control, "-d"], 30), (CLIENT, 60)):
        try:
            _run(command, env, seconds)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error).partition("\n")[0]
    return None


def _run(command: Sequence[str], env: Mapping[str, str], seconds: float, given: bytes = b"") -> None:
    """Without pipes for its output, which the service would keep open."""
    null = subprocess.DEVNULL
    subprocess.run(command, input=given, env=env, check=True, timeout=seconds, stdout=null, stderr=null)
