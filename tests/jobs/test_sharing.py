"""Jobs that share a GPU: the Multi-Process Service is started and ended with them, or a line says why it is not."""

import os
import sys
from pathlib import Path

import pytest

from elman.cli.launching import LaunchOptions
from elman.jobs import sharing
from elman.jobs.launching import Crew, Launch
from support.systems import posix
from support.work import variable

FAKE = """#!{python}
import os, sys
with open({log!r}, "a") as log:
    print(" ".join(sys.argv[1:]) or sys.stdin.read().strip(), os.environ["CUDA_MPS_PIPE_DIRECTORY"], file=log)
sys.exit({status})
"""
WORKS = "jobs share the GPU by CUDA's Multi-Process Service, which ends with them"


@pytest.fixture
def control(tmp_path, monkeypatch):
    """A control program that writes down what it is asked: a function of the status with which it exits."""
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.setattr(sharing, "PIPES", tmp_path / "none")
    monkeypatch.setattr(sharing, "CLIENT", ["true"])
    log = tmp_path / "log.txt"

    def install(status: int = 0) -> Path:
        path = tmp_path / "bin" / sharing.CONTROL
        path.parent.mkdir()
        path.write_text(FAKE.format(python=sys.executable, log=str(log), status=status))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)
        return log

    return install


@posix
def test_workers_are_clients_of_a_service_that_ends_with_them(control):
    log, told, found = control(), [], {}
    with Crew(Launch(jobs=2, share_gpu=True), told.append) as crew:
        for key in range(2):
            crew.start(key, "job", variable, "CUDA_MPS_PIPE_DIRECTORY")
        while crew.running:
            found |= dict(crew.ended())
        assert len(log.read_text().splitlines()) == 1
    first, last = log.read_text().splitlines()
    pipes = first.removeprefix("-d ")
    assert last == f"quit {pipes}"
    assert [found[key].value for key in range(2)] == [pipes, pipes]
    assert told == [WORKS]
    assert not Path(pipes).exists()
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ


@posix
def test_without_a_service_that_works_jobs_take_turns(control, monkeypatch):
    told = []
    with sharing.multi_process_service(told.append) as env:
        assert env == {}
    log = control(status=3)
    with sharing.multi_process_service(told.append) as env:
        assert env == {}
    assert log.read_text().splitlines()[-1].startswith("quit")  # what may have begun is ended
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/somewhere")
    with sharing.multi_process_service(told.append) as env:
        assert env == {}
    assert told[0].endswith("is not installed")
    assert "does not work" in told[1]
    assert "non-zero exit status 3" in told[1]
    assert told[2] == "jobs share the GPU by the Multi-Process Service that is running"


@pytest.mark.parametrize(
    ("jobs", "device", "gpus", "shared"),
    [(1, "cuda", 1, False), (2, "cuda:0", 1, True), (3, "auto", 2, True), (2, "cuda", 2, False), (4, "cpu", 1, False)],
)
def test_a_gpu_is_shared_where_there_are_fewer_than_jobs(jobs, device, gpus, shared, monkeypatch, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    assert LaunchOptions(jobs=jobs).launch(tmp_path, device).share_gpu is shared
