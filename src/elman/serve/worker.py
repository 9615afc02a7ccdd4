"""The thread that computes: one unit of work at a time, so that every request gets its turn.

A request is a generator. It yields after a small unit of work, such as a few tokens, and then waits behind the others,
so twenty samples advance together, and a text that was typed waits for one unit of theirs and not for their end. A
stream is asked for its next unit when the client has taken the last one: a slow reader waits alone.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeAlias, TypeVar

from elman.serve.limits import busy

AnswerT = TypeVar("AnswerT")
EventT = TypeVar("EventT")

Work: TypeAlias = Generator[None, None, AnswerT]  # computes an answer in units, and returns it
Stream: TypeAlias = Generator[EventT, None, None]  # computes events, one per unit


def done(work: Work[AnswerT]) -> AnswerT:
    """The answer of work that nothing else waits for."""
    while not (found := _advance(work)):
        pass
    return found[0]


class _Unit(NamedTuple):
    """A call to make, and what will have its result."""

    call: Callable[[], Any]
    future: "Future[Any]"


class Worker:
    """A thread with two queues, taken from in turn: of answers, and of streams.

    `waiting` units at most are queued; one more is refused. `units` and `seconds` count what was computed.
    """

    def __init__(self, waiting: int) -> None:
        self.units, self.seconds = 0, 0.0
        self._waiting = waiting
        self._queues: tuple[deque[_Unit], deque[_Unit]] = (deque(), deque())
        self._ready = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="elman-serve", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        return sum(map(len, self._queues))

    async def answer(self, work: Work[AnswerT]) -> AnswerT:
        """The answer of a piece of work; raises what it raises, and `Refused` where too much waits."""
        try:
            while True:
                finished: list[AnswerT] = await self._submit(lambda: _advance(work), stream=False)
                if finished:
                    return finished[0]
        finally:
            self._close(work)

    async def events(self, stream: Stream[EventT]) -> AsyncGenerator[EventT, None]:
        """The events of a stream, each computed when the one before it has been taken."""
        done = object()
        try:
            while True:
                found = await self._submit(lambda: next(stream, done), stream=True)
                if found is done:
                    return
                yield found
        finally:
            self._close(stream)

    def stop(self) -> None:
        """End the thread after its present unit; what waits is cancelled."""
        with self._ready:
            self._stopped = True
            self._ready.notify()
        self._thread.join(timeout=10)

    def _close(self, work: Generator[Any, None, Any]) -> None:
        """End a generator in the thread that runs it, since it may be in the middle of a unit."""
        with self._ready:
            self._queues[0].append(_Unit(work.close, Future()))
            self._ready.notify()

    async def _submit(self, call: Callable[[], Any], *, stream: bool) -> Any:
        unit = _Unit(call, Future())
        with self._ready:
            if self._stopped:
                raise asyncio.CancelledError
            if self.queued >= self._waiting:
                raise busy(f"{self.queued} requests wait for their turn")
            self._queues[stream].append(unit)
            self._ready.notify()
        return await asyncio.wrap_future(unit.future)

    def _run(self) -> None:
        turn = 0
        while True:
            with self._ready:
                while not (self.queued or self._stopped):
                    self._ready.wait()
                if self._stopped:
                    break
                turn = 1 - turn
                unit = (self._queues[turn] or self._queues[1 - turn]).popleft()
            if unit.future.set_running_or_notify_cancel():
                began = time.perf_counter()
                self._settle(unit)
                self.units += 1
                self.seconds += time.perf_counter() - began
        for queue in self._queues:
            while queue:
                queue.popleft().future.cancel()

    @staticmethod
    def _settle(unit: _Unit) -> None:
        try:
            found = unit.call()
        except BaseException as error:
            unit.future.set_exception(error)
        else:
            unit.future.set_result(found)


def _advance(work: Work[AnswerT]) -> list[AnswerT]:
    """Compute a unit; the answer, once it is there."""
    try:
        next(work)
    except StopIteration as stop:
        return [stop.value]
    return []
