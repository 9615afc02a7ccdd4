"""Many jobs side by side, whichever launcher runs them: processes of this machine, jobs of Slurm, tasks of Ray."""

import os
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

from elman.errors import UserError, first_line
from elman.files import write_atomic
from elman.jobs import begin_worker
from elman.jobs.sharing import multi_process_service

Key = TypeVar("Key", bound=Hashable)
Tell = Callable[[str], None]

Launchers = Literal["local", "slurm", "ray"]

AT_ONCE = {"local": 1, "slurm": 100, "ray": 100}
"""Jobs given to a launcher at a time unless --jobs is given; Slurm and Ray let those wait that have no room."""


class Outcome(NamedTuple):
    """How a job ended: with a value, or with a failure in one line; an unexpected one has its `trace`."""

    value: Any = None
    failure: str | None = None
    trace: str = ""

    def reason(self, log: Path) -> str:
        """Why it failed, in one line; the trace of an unexpected failure is written to `log`."""
        if not self.trace:
            return str(self.failure)
        write_atomic(log, self.trace)
        return f"{self.failure}; see {log}"


class Job(NamedTuple):
    """A call that was begun elsewhere: whether it is done, how it ended, and how it is asked to end soon.

    `outcome` is called once, when it is done. By `stop` a training saves itself, another call is broken off.
    """

    done: Callable[[], bool]
    outcome: Callable[[], Outcome]
    stop: Callable[[], object]


class Launcher(Protocol):
    """Begins jobs."""

    def start(self, name: str, function: Callable[..., Any], /, *arguments: Any) -> Job:
        """Begin a call of a module's function; the name identifies it to the user, and to a later process."""

    def close(self) -> None:
        """Wait for the jobs that were asked to stop, and free everything."""


def attempt(function: Callable[..., Any], /, *arguments: Any) -> Outcome:
    """The outcome of a call, made where the job runs, so that failures look alike whichever launcher carries them."""
    try:
        return Outcome(function(*arguments))
    except UserError as error:
        return Outcome(failure=first_line(error))
    except Exception as error:
        return Outcome(failure=f"{type(error).__name__}: {first_line(error)}", trace=traceback.format_exc())


def outcome_of(found: Any) -> Outcome:
    """What `attempt` returned elsewhere."""
    return found if isinstance(found, Outcome) else Outcome(failure="its result does not come from elman")


PACKAGES = {"slurm": "submitit", "ray": "ray"}
"""What launchers need."""


def package_of(launcher: str) -> Any:
    """The package of a launcher; raises UserError where it is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return import_module(PACKAGES[launcher])
    except ImportError:
        needed = PACKAGES[launcher]
        raise UserError(f"--launcher {launcher} needs the package {needed}: pip install 'elman[{launcher}]'") from None


@dataclass(frozen=True)
class Launch:
    """How many jobs run, and where.

    Attributes:
        launcher: local, slurm or ray.
        jobs: how many are begun at a time; None: as many as is usual for the launcher.
        retries: how often a job that failed is begun again.
        options: of the launcher itself, such as the partition of Slurm.
        folder: where a launcher keeps its files.
        gpus: GPUs that local jobs share, each job seeing one, named as in CUDA_VISIBLE_DEVICES; none: all see all.
        share_gpu: several local jobs at a time compute on one GPU of CUDA.
    """

    launcher: Launchers = "local"
    jobs: int | None = None
    retries: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
    gpus: tuple[str, ...] = ()
    share_gpu: bool = False

    @property
    def at_once(self) -> int:
        return self.jobs or AT_ONCE[self.launcher]

    def begin(self, tell: Tell) -> Launcher:
        """The launcher; raises UserError where its package is missing, or an option is unknown or wrong."""
        if self.launcher == "slurm":
            from elman.jobs.slurm import Slurm

            return Slurm(self.folder, self.options)
        if self.launcher == "ray":
            from elman.jobs.ray import Ray

            return Ray(self.options)
        return Local(self.gpus, multi_process_service(tell) if self.share_gpu else None)


@dataclass(frozen=True)
class _Begun:
    """A running job, with what begins it again, and how often it has failed."""

    job: Job
    again: Callable[[], Job]
    failures: int


class Crew(Generic[Key]):
    """Jobs by key that run side by side; one that fails is begun again as often as the launch permits.

    `tell` is called with a line for that, in which `shown` names the job by its key. If the block ends by an exception,
    the jobs are asked to stop and waited for. Raises UserError as `Launch.begin`.
    """

    def __init__(self, launch: Launch, tell: Tell, shown: Callable[[Key], str] = str) -> None:
        self.launch, self.tell, self.shown = launch, tell, shown
        self._launcher = launch.begin(tell)
        self._running: dict[Key, _Begun] = {}
        self._stopped: set[Key] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is not None:
                for key in self._running:
                    self.stop(key)
        finally:
            self._launcher.close()

    @property
    def running(self) -> list[Key]:
        return list(self._running)

    @property
    def room(self) -> int:
        return max(0, self.launch.at_once - len(self._running))

    def start(self, key: Key, name: str, function: Callable[..., Any], /, *arguments: Any) -> None:
        self._stopped.discard(key)
        begin = partial(self._launcher.start, name, function, *arguments)
        self._running[key] = _Begun(begin(), begin, 0)

    def stop(self, key: Key) -> None:
        """Ask a job to end soon; it is not begun again."""
        if key not in self._stopped:
            self._stopped.add(key)
            self._running[key].job.stop()

    def ended(self) -> list[tuple[Key, Outcome]]:
        """The jobs that have ended since the last call, without waiting; jobs that are begun again are not listed."""
        found = list[tuple[Key, Outcome]]()
        for key, begun in list(self._running.items()):
            if not begun.job.done():
                continue
            outcome = begun.job.outcome()
            del self._running[key]
            if outcome.failure is None or key in self._stopped or begun.failures >= self.launch.retries:
                found.append((key, outcome))
            else:
                self.tell(f"{self.shown(key)}: failed ({outcome.failure}); it is begun again")
                self._running[key] = _Begun(begun.again(), begun.again, begun.failures + 1)
        return found


class _Worker:
    """A spawned process that runs one call after another (`elman.jobs.processes`), and sees one GPU if it is named."""

    def __init__(self, gpu: str | None, env: Mapping[str, str]) -> None:
        others, self.gpu = set(active_children()), gpu
        seen = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        self.executor = ProcessPoolExecutor(1, get_context("spawn"), begin_worker, (_see, {**env, **seen}))
        self.executor.submit(os.getpid)  # the first call begins the process
        (self.process,) = set(active_children()) - others


class Local:
    """Processes of this machine, begun as they are needed; they end with this process, as if by SIGTERM.

    Each sees one of the `gpus`, named as in CUDA_VISIBLE_DEVICES: the one that the fewest others see.
    `sharing` lasts until `close`, and gives variables of their environment.
    """

    def __init__(
        self, gpus: Sequence[str] = (), sharing: AbstractContextManager[Mapping[str, str]] | None = None
    ) -> None:
        self._gpus, self._ending = gpus, ExitStack()
        self._env = {} if sharing is None else self._ending.enter_context(sharing)
        self._workers: list[_Worker] = []
        self._free: list[_Worker] = []

    def start(self, name: str, function: Callable[..., Any], /, *arguments: Any) -> Job:
        while self._free and not self._free[-1].process.is_alive():
            self._free.pop()
        if not self._free:
            seen = [worker.gpu for worker in self._workers if worker.process.is_alive()]
            self._free.append(_Worker(min(self._gpus, key=seen.count, default=None), self._env))
            self._workers.append(self._free[-1])
        worker = self._free.pop()
        try:
            future = worker.executor.submit(attempt, function, *arguments)
        except BrokenProcessPool:  # it was killed while it was idle
            return self.start(name, function, *arguments)
        return Job(future.done, lambda: self._outcome(worker, future), worker.process.terminate)

    def _outcome(self, worker: _Worker, future: Future[Outcome]) -> Outcome:
        """How a call ended, whose worker is free then; a process that was killed is a failure."""
        try:
            outcome = future.result()
        except BrokenProcessPool:
            worker.executor.shutdown()
            return Outcome(failure="its process was killed from outside; try fewer --jobs, finished work is kept")
        self._free.append(worker)
        return outcome

    def close(self) -> None:
        for worker in self._workers:
            worker.executor.shutdown(cancel_futures=True)
        self._ending.close()


def _see(env: Mapping[str, str]) -> None:
    """Let this process see what the variables say, before it has used any GPU."""
    os.environ.update(env)
