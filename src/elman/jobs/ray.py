"""Jobs as tasks of Ray: on a cluster that is running, or on one of this machine that is begun for the purpose."""

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from elman.errors import UserError, first_line
from elman.jobs.launching import Job, Outcome, attempt, outcome_of, package_of

RESOURCES = ("num_cpus", "num_gpus", "memory")
"""Options of a task; memory in bytes."""

OPTIONS = (*RESOURCES, "address", "cluster_cpus")

SMALLEST_STORE = 100_000_000
"""Bytes of the object store of a cluster of this machine: runs pass files, not objects."""

LONGEST_WAIT = 60.0
"""Seconds in which tasks that were asked to stop must end."""


class Ray:
    """A Ray cluster."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Connect or begin one; raises UserError where ray is missing, an option is wrong or there is no cluster."""
        ray = package_of("ray")
        for name in options.keys() - {*OPTIONS}:
            raise UserError(f"--ray {name}: there is no such option; choose {', '.join(OPTIONS)}")
        self._ray, self._tasks, self._owned = ray, list[Any](), not ray.is_initialized()
        self._resources = {"num_cpus": 1.0} | {
            name: _number(name, options[name]) for name in RESOURCES if name in options
        }
        if self._owned:
            try:
                ray.init(**_where(options), log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise UserError(f"--ray: {first_line(error)}") from None

    def start(self, name: str, function: Callable[..., Any], /, *arguments: Any) -> Job:
        ray = self._ray
        remote = ray.remote(_attempt_at).options(name=name, max_retries=0, **self._resources)
        task = remote.remote(str(Path.cwd()), function, *arguments)
        self._tasks.append(task)
        return Job(
            lambda: bool(ray.wait([task], timeout=0)[0]),
            lambda: self._outcome(task),
            lambda: ray.cancel(task, force=False),
        )

    def _outcome(self, task: Any) -> Outcome:
        """How a task ended; one that was cancelled, or whose worker or node died, is a failure."""
        try:
            return outcome_of(self._ray.get(task))
        except self._ray.exceptions.RayError as error:
            return Outcome(failure=f"{type(error).__name__}: {first_line(error)}")

    def close(self) -> None:
        """Wait for the tasks, which have ended or were asked to, for a minute at most; end a cluster begun here."""
        if self._tasks:
            self._ray.wait(self._tasks, num_returns=len(self._tasks), timeout=LONGEST_WAIT)
        if self._owned:
            self._ray.shutdown()


def _attempt_at(place: str, function: Callable[..., Any], /, *arguments: Any) -> Outcome:
    os.chdir(place)
    return attempt(function, *arguments)


def _where(options: Mapping[str, str]) -> dict[str, Any]:
    if "address" in options:
        own = {name: value for name, value in os.environ.items() if name.startswith("ELMAN_")}
        return {"address": options["address"]} | ({"runtime_env": {"env_vars": own}} if own else {})
    cpus = {"num_cpus": int(_number("cluster_cpus", options["cluster_cpus"]))} if "cluster_cpus" in options else {}
    return {"address": "local", "include_dashboard": False, "object_store_memory": SMALLEST_STORE} | cpus


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UserError(f"--ray {name}={text}: it must be a number, 0 or more")
    return value
