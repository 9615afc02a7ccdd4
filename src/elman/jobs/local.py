"""Jobs in processes of this machine: one executor for each, so that one that is killed takes no other with it."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import Any

from elman.jobs import begin_worker
from elman.jobs.launching import Outcome, attempt


class _Worker:
    """A spawned process that runs one call after another (`elman.jobs.processes`), and sees one GPU if it is named."""

    def __init__(self, gpu: str | None) -> None:
        others, self.gpu = set(active_children()), gpu
        self.executor = ProcessPoolExecutor(1, get_context("spawn"), begin_worker, (_see, gpu))
        self.executor.submit(os.getpid)  # the first call begins the process
        (self.process,) = set(active_children()) - others


class LocalJob:
    """A call in a worker, which is free again when the outcome has been taken."""

    def __init__(self, worker: _Worker, future: Future[Outcome], free: list[_Worker]) -> None:
        self._worker, self._future, self._free = worker, future, free

    def done(self) -> bool:
        return self._future.done()

    def outcome(self) -> Outcome:
        """How it ended; a process that was killed is a failure."""
        try:
            outcome = self._future.result()
        except BrokenProcessPool:
            self._worker.executor.shutdown()
            return Outcome(failure="its process was killed from outside; try fewer --jobs, finished work is kept")
        self._free.append(self._worker)
        return outcome

    def stop(self) -> None:
        self._worker.process.terminate()


class Local:
    """Processes of this machine, begun as they are needed; they end with this process, as if by SIGTERM.

    Each sees one of the `gpus`, which are named as in CUDA_VISIBLE_DEVICES: that which the fewest others see.
    """

    def __init__(self, gpus: Sequence[str] = ()) -> None:
        self._gpus = gpus
        self._workers: list[_Worker] = []
        self._free: list[_Worker] = []

    def start(self, name: str, function: Callable[..., Any], /, *arguments: Any) -> LocalJob:
        while self._free and not self._free[-1].process.is_alive():
            self._free.pop()
        if not self._free:
            self._free.append(_Worker(self._least_seen()))
            self._workers.append(self._free[-1])
        worker = self._free.pop()
        try:
            return LocalJob(worker, worker.executor.submit(attempt, function, *arguments), self._free)
        except BrokenProcessPool:  # it was killed while it was idle
            return self.start(name, function, *arguments)

    def _least_seen(self) -> str | None:
        seen = [worker.gpu for worker in self._workers if worker.process.is_alive()]
        return min(self._gpus, key=seen.count, default=None)

    def close(self) -> None:
        for worker in self._workers:
            worker.executor.shutdown(cancel_futures=True)


def _see(gpu: str | None) -> None:
    """Let this process see one GPU alone, unless None; before it has used any."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
