"""Connections: how many there may be, and how long a client may take to send the head of a request.

uvicorn waits for a head as long as a client likes, so that a few hundred slow connections would keep all others out.
"""

import asyncio
import socket
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from elman.serve.limits import Limits

_LINGER = 0.5
"""Seconds within which a client that is refused can read why."""

_LINE = b'{"error":"too many connections; try again in 1 s"}'
TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_LINE), _LINE)
)


def protocol_of(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol of a server with these limits."""

    class Bounded(H11Protocol):
        """HTTP/1.1 within limits."""

        _refused = False
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            if len(self.connections) >= limits.connections:
                self._refused = True
                transport.write(TOO_MANY)
                if transport.can_write_eof():
                    transport.write_eof()
                self.loop.call_later(_LINGER, transport.close)
                return
            # asyncio leaves this out for a socket that was made elsewhere, and each answer waits 40 ms for the client.
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().connection_made(transport)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            if self._refused:
                return
            super().data_received(data)
            if self.cycle is None or self.cycle.response_complete:
                self._expect_head()
            else:
                self._head_arrived()

        def eof_received(self) -> None:
            if not self._refused:
                super().eof_received()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head_arrived()
            if not self._refused:
                super().connection_lost(exc)

        def _expect_head(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(limits.request_seconds, self.transport.close)

        def _head_arrived(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return cast(type[asyncio.Protocol], Bounded)
