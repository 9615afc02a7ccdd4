"""Jobs of a Slurm cluster, by submitit, which moves calls and their outcomes as pickles in a folder of its own.

A job whose time is over, or that is pre-empted, saves its training and is queued again by itself. A driver that is
begun again finds the jobs of the one before by their names.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from elman.errors import UserError, first_line
from elman.files import write_atomic
from elman.formats import parse_json
from elman.jobs import handling
from elman.jobs.launching import Job, Outcome, attempt, outcome_of, package_of

RENAMED = {"time": "timeout_min", "memory": "slurm_mem", "gpus": "gpus_per_node", "cpus": "cpus_per_task"}
"""Options that submitit calls otherwise; the rest are sbatch's own, such as partition, account and constraint."""

USUAL = {"timeout_min": 24 * 60, "cpus_per_task": 1, "slurm_use_srun": True}

TIMES_QUEUED_AGAIN = 1000
"""How often a job may run out of time and be queued again."""

LONGEST_WAIT = 60.0
"""Seconds in which jobs that were asked to stop must end; longer ones are left to Slurm, which has been asked."""


class Resumed:
    """A call that is made again by the same job where Slurm ends the first: what is unfinished there is continued."""

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Outcome:
        """Make the call; the signal that precedes the end of the job's time lets a training save itself first."""
        warning = getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}")
        queue_again, warned = signal.getsignal(warning), list[int]()

        def warn(number: int, _: FrameType | None) -> None:
            warned.append(number)
            os.kill(os.getpid(), signal.SIGTERM)

        with handling(warn, warning):
            outcome = attempt(function, *arguments)
        if warned and outcome.failure is None and callable(queue_again):
            queue_again(warned[0], None)  # of submitit: calls `checkpoint` and does not return
        return outcome

    def checkpoint(self, function: Callable[..., Any], *arguments: Any) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, function, *arguments)


def _outcome(job: Any) -> Outcome:
    """How a job of submitit ended; one without a result was killed, or its node was lost."""
    try:
        return outcome_of(job.result())
    except Exception as error:  # submitit wraps the errors of jobs and of Slurm in several classes
        # The message holds a trace, whose last line names the error.
        raised = re.findall(r"^[A-Z]\w*: .+", str(error), re.MULTILINE)
        return Outcome(failure=f"{raised[-1] if raised else first_line(error)} (see {job.paths.stderr})")


def _stop(job: Any) -> None:
    if type(job).__name__ == "LocalJob":  # whose own way kills the process after a second
        os.kill(int(job.job_id), signal.SIGTERM)
    else:
        job.cancel(check=False)


class Slurm:
    """A Slurm cluster, or with the option cluster=local processes of this machine that imitate one."""

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        """Raise UserError where submitit is missing, there is no Slurm, or an option is unknown or wrong."""
        executor = package_of("slurm").AutoExecutor
        self._folder = (folder / "slurm").absolute()
        self._names, self._jobs = self._folder / "jobs.json", list[Any]()
        given = {name: value for name, value in options.items() if name != "cluster"}
        limits = {f"{cluster}_max_num_timeout": TIMES_QUEUED_AGAIN for cluster in ("slurm", "local")}
        try:
            self._executor = executor(self._folder / "%j", cluster=options.get("cluster", "slurm"), **limits)
            self._executor.update_parameters(**USUAL | {_name(key): _value(given[key]) for key in given})
        except (NameError, ValueError, AssertionError, RuntimeError, TypeError) as error:
            raise UserError(f"--slurm: {first_line(error)}") from None
        self._submitted = self._read()

    def start(self, name: str, function: Callable[..., Any], /, *arguments: Any) -> Job:
        """Submit a call, unless one of this name is queued or running already; raises UserError where Slurm refuses."""
        job = self._found(name)
        if job is None:
            try:
                self._executor.update_parameters(name="".join(c if c.isalnum() else "-" for c in name)[:60])
                job = self._executor.submit(Resumed(), function, *arguments)
            except Exception as error:  # classes of submitit and of subprocess
                raise UserError(f"{name}: could not be submitted: {first_line(error)}") from None
            self._submitted[name] = str(job.job_id)
            write_atomic(self._names, msgspec.json.encode(self._submitted))
        self._jobs.append(job)
        return Job(job.done, partial(_outcome, job), partial(_stop, job))

    def close(self) -> None:
        """Wait for the jobs, which have ended or were asked to, for a minute at most."""
        deadline = time.monotonic() + LONGEST_WAIT
        while not all(job.done() for job in self._jobs) and time.monotonic() < deadline:
            time.sleep(0.1)

    def _found(self, name: str) -> Any:
        """The job that an earlier process submitted under a name, if it has not ended."""
        number = self._submitted.get(name)
        if number is None or self._executor.cluster != "slurm":
            return None
        from submitit import SlurmJob as Submitted

        job: Any = Submitted(self._folder / "%j", number)
        return None if job.done(force_check=True) else job

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.convert(parse_json(self._names.read_bytes()), dict[str, str])
        except (OSError, ValueError):
            return {}


def _name(option: str) -> str:
    return RENAMED.get(option, f"slurm_{option}")


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
