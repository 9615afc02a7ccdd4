"""The thread that computes: everybody's turn, what is refused, and what ends when its reader leaves."""

import asyncio
import threading

import pytest

from elman.serve.limits import Limits, Refused
from elman.serve.tabs import Tabs
from elman.serve.worker import Worker


@pytest.fixture
def worker():
    made = Worker(waiting=100)
    yield made
    made.stop()


def counting(name, log, count):
    for number in range(count):
        log.append(name)
        yield number


def test_streams_advance_side_by_side(worker):
    log = []

    async def read(name):
        return [event async for event in worker.events(counting(name, log, 30))]

    async def all_of_them():
        return await asyncio.gather(*map(read, range(20)))

    found = asyncio.run(all_of_them())
    assert found == [list(range(30))] * 20
    ends = [max(place for place, name in enumerate(log) if name == one) for one in range(20)]
    assert min(ends) >= len(log) - 3 * 20, "the first stream ends with the others"
    half = log[: len(log) // 2]
    assert all(half.count(one) >= 10 for one in range(20)), "no stream starves"


def test_an_answer_does_not_wait_for_the_end_of_streams(worker):
    log = []

    def holding(begun, held):
        begun.set()
        assert held.wait(10)
        return None
        yield

    def answering():
        log.append("answer")
        yield
        return 7

    async def main():
        begun, held = threading.Event(), threading.Event()
        first = asyncio.create_task(worker.answer(holding(begun, held)))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        streams = [worker.events(counting(one, log, 1000)) for one in range(10)]
        reading = [asyncio.create_task(anext(one)) for one in streams]
        asked = asyncio.create_task(worker.answer(answering()))
        while worker.queued < 11:
            await asyncio.sleep(0.001)
        held.set()
        assert await asked == 7
        await asyncio.gather(first, *reading)
        for one in streams:
            await one.aclose()

    asyncio.run(main())
    assert log.index("answer") < 3, "though ten streams waited before it"


def test_a_reader_that_leaves_ends_its_stream(worker):
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    async def main():
        stream = worker.events(endless())
        assert await anext(stream) == 1
        await stream.aclose()

    asyncio.run(main())
    assert closed.wait(5)


def test_what_fails_fails_where_it_was_asked(worker):
    def failing():
        yield
        raise ValueError("no")

    async def main():
        with pytest.raises(ValueError, match="no"):
            await worker.answer(failing())
        with pytest.raises(ValueError, match="no"):
            [event async for event in worker.events(failing())]

    asyncio.run(main())


def test_too_many_requests_are_refused():
    worker, release = Worker(waiting=2), threading.Event()

    def waiting():
        release.wait(5)
        return 1
        yield

    async def main():
        asked = [asyncio.create_task(worker.answer(waiting())) for _ in range(8)]
        await asyncio.sleep(0.1)
        release.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(main())
    refused = [one for one in found if isinstance(one, Refused)]
    assert {(one.status, one.retry_after) for one in refused} == {(429, 1)}
    assert 5 <= len(refused) <= 6
    assert [one for one in found if one == 1]
    worker.stop()


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_tabs_have_a_bound_and_an_age():
    clock = Clock()
    tabs = Tabs(Limits(tabs=3, tab_minutes=1.0), clock)
    for number in range(10):
        clock.now = 10.0 * number
        tabs.use(f"tab-{number}").keep("run", dict, dict)["own"] = number
    assert len(tabs) == 3
    assert tabs.use("tab-8").find("run", dict) == {"own": 8}
    clock.now += 10
    assert tabs.use("tab-0").find("run", dict) is None, "tab 7 was left longest ago, and tab 0 before it"
    assert tabs.use("tab-8").find("run", dict) == {"own": 8}
    clock.now += 60
    tabs.use("other")
    assert len(tabs) == 1
    tabs.close("other")
    assert len(tabs) == 0


def test_tabs_in_use_are_not_forgotten_for_another():
    clock = Clock()
    tabs = Tabs(Limits(tabs=2), clock)
    tabs.use("first")
    tabs.use("second")
    with pytest.raises(Refused, match="2 tabs are in use") as refused:
        tabs.use("third")
    assert (refused.value.status, refused.value.retry_after) == (429, 5)
    clock.now = 6.0
    tabs.use("third")
    assert len(tabs) == 2
