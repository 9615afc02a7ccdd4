"""Requests to answers: a question is read within limits, computed in its turn, and written as JSON or as events."""

import asyncio
import contextlib
import sys
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from elman.errors import UserError, one_line
from elman.serve import answers, questions
from elman.serve.guard import failure
from elman.serve.limits import Limits, Refused
from elman.serve.operations import Operation
from elman.serve.services import Services, find, find_text
from elman.serve.tabs import Tab, Tabs
from elman.serve.text_views import compare
from elman.serve.worker import Worker

DISCARDED = 4 * 2**20
"""Bytes of a body that is too large which are read and thrown away, so that the client sees the answer."""


class Api:
    """The runs, tabs and worker of a server; `stopping` is set when it ends. `counts` are its counters."""

    def __init__(self, services: Services, limits: Limits) -> None:
        self.services, self.limits = services, limits
        self.tabs, self.worker = Tabs(limits), Worker(limits.waiting)
        self.stopping, self.counts = asyncio.Event(), Counter[tuple[str, int]]()
        self.streams, self.drawn = 0, 0

    def endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:

        async def answer(request: Request) -> Response:
            try:
                found = await self._answer(operation, request)
            except ClientDisconnect:
                found = Response(status_code=499)
            except Refused as refused:
                found = failure(refused)
            except UserError as error:
                found = failure(Refused(400, one_line(str(error))))
            except Exception as error:
                found = failure(Refused(500, _reported(operation.name, error)))
            self.counts[operation.name, found.status_code] += 1
            return found

        return answer

    async def _answer(self, operation: Operation, request: Request) -> Response:
        question = self._decode(operation, await self._body(request))
        if isinstance(question, questions.Leave):
            self.tabs.close(question.tab or "")
            return _json(answers.Left())
        tab = self.tabs.use(question.tab)
        work = self._work(operation.name, question, tab)
        if not operation.streams:
            return _json(await self.worker.answer(work))
        events = self.worker.events(work)
        first = await anext(events)
        while first is None:  # the text is still being read
            first = await anext(events)
        return Events(self, events, first)

    def _work(self, name: str, question: Any, tab: Tab) -> Generator[Any, None, Any]:
        if isinstance(question, questions.Compare):
            first, second = (find_text(self.services, one) for one in (question.run, question.other))
            for service in (first, second):
                service.check(question)
            return compare(first, second, question, tab)
        return find(self.services, question.run).ask(name, question, tab)

    def _decode(self, operation: Operation, body: bytes) -> questions.Question:
        try:
            found: questions.Question = msgspec.json.decode(body, type=operation.question)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, one_line(f"{operation.name}: {error}")) from None
        return found

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "a question is JSON; send the header Content-Type: application/json")
        size, parts = 0, list[bytes]()
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:18]) > DISCARDED:
            raise self._too_large()
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                async for part in request.stream():
                    size += len(part)
                    if size <= self.limits.body:
                        parts.append(part)
                    elif size > DISCARDED:
                        break
        except TimeoutError:
            raise Refused(408, f"the request did not arrive within {self.limits.request_seconds:g} s") from None
        if size > self.limits.body:
            raise self._too_large()
        return b"".join(parts)

    def _too_large(self) -> Refused:
        return Refused(413, f"the request is too large; at most {self.limits.body:,} bytes are read")


class Events(Response):
    """Server-sent events, until they end, the client leaves or the server stops."""

    def __init__(self, api: Api, events: AsyncGenerator[Any, None], first: Any) -> None:
        super().__init__(media_type="text/event-stream", headers={"x-accel-buffering": "no"})  # of nginx
        self.api, self.events, self.first = api, events, first
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self.api.streams += 1
        tasks = [asyncio.ensure_future(one) for one in (self._write(send), _left(receive), self.api.stopping.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            written, left, _ = (task.done() for task in tasks)
        finally:
            self.api.streams -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.events.aclose()
        with contextlib.suppress(OSError):
            if not (written or left):
                await _send(send, answers.Ended(reason="stopped"))
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send) -> None:
        try:
            await _send(send, self.first)
            async for event in self.events:
                if event is not None:
                    self.api.drawn += isinstance(event, answers.Drawn | answers.DrawnStep)
                    await _send(send, event)
        except OSError:
            return
        except UserError as error:
            await _send(send, answers.Broken(error=one_line(str(error))))
        except Exception as error:
            await _send(send, answers.Broken(error=_reported("generate", error)))


async def _send(send: Send, event: msgspec.Struct) -> None:
    name = str(event.__struct_config__.tag).encode()
    body = b"event: %b\ndata: %b\n\n" % (name, msgspec.json.encode(event))
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _left(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _json(answer: Any) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _reported(name: str, error: BaseException) -> str:
    """A line for the client; what happened is written for whoever runs the server."""
    traceback.print_exception(error, file=sys.stderr)
    return f"{name} failed ({type(error).__name__}); the server has written why"
