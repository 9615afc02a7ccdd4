"""Connections: how many there may be, and how long a client may take to send the head of a request.

uvicorn waits for a head as long as a client likes, so that a few hundred slow connections would keep all others out,
and it has no option for that. `Connections` stands around it on both sides: as the protocol that asyncio calls, before
uvicorn's own, and as the application that uvicorn calls once a head has arrived.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from elman.serve.limits import Limits

_LINGER = 0.5
"""Seconds within which a client that is refused can read why, and its next request is awaited after its last byte."""

_LINE = b'{"error":"too many connections; try again in 1 s"}'
TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_LINE), _LINE)
)


class Connections:
    """The connections of an application, within limits, by the addresses of both ends."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        plain = uvicorn.Config(app, http="h11", log_config=None)
        plain.load()
        self.app, self.limits = app, limits
        self.open: dict[Any, Bounded] = {}
        self._http = cast(Callable[..., asyncio.Protocol], plain.http_protocol_class)

    def protocol(self, **given: Any) -> "Bounded":
        """The protocol of a new connection, from what uvicorn gives to its own."""
        return Bounded(self, self._http(**given))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = self.open.get((scope["client"], scope["server"]))
        if connection is None:  # it is closed already
            await self.app(scope, receive, send)
            return
        connection.head_arrived()
        connection.requests += 1
        try:
            await self.app(scope, receive, send)
        finally:
            connection.requests -= 1
            connection.end_if_asked()


class Bounded(asyncio.Protocol):
    """A connection, of which uvicorn's protocol sees nothing if there are too many."""

    def __init__(self, all_open: Connections, inner: asyncio.Protocol) -> None:
        self.requests = 0
        self._all, self._inner = all_open, inner
        self._refused = self._ended = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport, self._loop = transport, asyncio.get_running_loop()
        ends = (transport.get_extra_info(end) for end in ("peername", "sockname"))
        self._ends = tuple(None if end is None else end[:2] for end in ends)
        if len(self._all.open) >= self._all.limits.connections:
            self._refused = True
            transport.write(TOO_MANY)
            if transport.can_write_eof():
                transport.write_eof()
            self._loop.call_later(_LINGER, transport.close)
            return
        self._all.open[self._ends] = self
        # asyncio leaves this out for a socket that was made elsewhere, and each answer waits 40 ms for the client.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._inner.connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._inner.data_received(data)
        if not self.requests:
            self._expect_head()

    def eof_received(self) -> bool | None:
        """Pass it on; a client that asked and sends no more still takes its answers, then the connection is closed."""
        if self._refused:
            return None
        self._inner.eof_received()
        self._ended = True
        self.end_if_asked()
        return True

    def end_if_asked(self) -> None:
        """Close the connection, where the client sends no more and no request follows the last one."""
        if self._ended and not self.requests:
            self._loop.call_later(_LINGER, lambda: None if self.requests else self._transport.close())

    def connection_lost(self, exc: Exception | None) -> None:
        self.head_arrived()
        if not self._refused:
            self._all.open.pop(self._ends, None)
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def head_arrived(self) -> None:
        """The head of a request is complete: wait for no other one until it is answered."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self._loop.call_later(self._all.limits.request_seconds, self._transport.close)
