"""Who may ask: the checks of every request before anything is computed, and the headers of every answer.

A page of another site must not reach a server on this machine: its name must be the server's own (against DNS
rebinding), requests that another site sends are refused, and nothing allows other sites to read. Where the server
listens to other machines, the address holds a token, which the browser then keeps as a cookie.
"""

import asyncio
import contextlib
import hmac
import ipaddress
import socket
from collections.abc import Iterator
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elman.serve.answers import Failure
from elman.serve.limits import Refused

COOKIE = "elman-token"

OPEN = frozenset({"/health"})  # paths that need no token

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Nothing but the page's own files, no code within a page, no network, no frame of another site."""


def failure(refused: Refused) -> Response:
    """The answer to a request that is refused: its status and one line."""
    headers = {} if refused.retry_after is None else {"retry-after": str(refused.retry_after)}
    if refused.status in (408, 413):
        headers["connection"] = "close"  # what is left of the body is not read
    body = msgspec.json.encode(Failure(error=str(refused)))
    return Response(body, refused.status, headers, media_type="application/json")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets requests for `host` through to an application that bring the token, where there is one."""

    def __init__(self, app: ASGIApp, host: str, token: str | None, send_seconds: float, public: str = "") -> None:
        self.app, self.token, self.send_seconds = app, token, send_seconds
        self.public = urlsplit(public)
        self.any_address = not is_loopback(host)
        self.names = {"localhost", host.lower(), *([socket.gethostname().lower()] if self.any_address else [])}
        self.names |= {self.public.hostname} if self.public.hostname else set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                fixed = ((name.encode(), value.encode()) for name, value in HEADERS.items())
                message = {**message, "headers": [*message["headers"], *(one for one in fixed if one[0] not in given)]}
            try:
                async with asyncio.timeout(self.send_seconds):
                    await send(message)
            except TimeoutError:
                raise OSError("the client takes nothing") from None

        try:
            answer = self._checked(scope)
        except Refused as refused:
            answer = failure(refused)
        await (self.app if answer is None else answer)(scope, receive, guarded)

    def _checked(self, scope: Scope) -> Response | None:
        """None to let a request through, or an answer to it; raises `Refused`."""
        asked = HTTPConnection(scope)
        headers = asked.headers
        host = headers.get("host", "")
        if not self._is_own(host):
            raise Refused(403, "this server has another name; use the address that it printed")
        origin = headers.get("origin")
        if (origin is not None and not self._is_own_page(origin, host)) or (
            headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
        ):
            raise Refused(403, "requests of other sites are refused")
        if self.token is None or scope["path"] in OPEN:
            return None
        if self._is_token(asked.query_params.get("token", "")):
            if scope["method"] == "GET" and scope["path"] == "/":
                answer = RedirectResponse("./", 303)
                secure, path = self.public.scheme == "https", self.public.path or "/"
                answer.set_cookie(COOKIE, self.token, path=path, secure=secure, httponly=True, samesite="strict")
                return answer
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        bearer = given.strip() if scheme.lower() == "bearer" else ""
        if self._is_token(bearer) or any(map(self._is_token, _cookies_of(headers))):
            return None
        raise Refused(401, "the token is missing or wrong; use the whole address that the server printed")

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.any_address or address.is_loopback

    def _is_own_page(self, origin: str, host: str) -> bool:
        """Whether an origin is the page of this server, or of the proxy before it."""
        place = _place_of(origin)
        return place == host or (bool(place) and origin.lower() == f"{self.public.scheme}://{self.public.netloc}")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.token or "").encode())


def _cookies_of(headers: Headers) -> Iterator[str]:
    """The cookies of our name; other servers on this machine may send unreadable ones with them."""
    for part in ";".join(headers.getlist("cookie")).split(";"):
        if part.strip().startswith(f"{COOKIE}="):
            with contextlib.suppress(CookieError):
                yield from (one.value for one in SimpleCookie(part).values())


def _place_of(origin: str) -> str | None:
    """The host and port of an origin; None where it is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None
