"""The application (page, JSON interface, its description, figures about itself) and the server process that runs it."""

import asyncio
import contextlib
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import cast

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from elman.errors import UserError, first_line
from elman.serve import answers
from elman.serve.api import Api
from elman.serve.connections import Connections
from elman.serve.guard import Guard, failure, is_loopback
from elman.serve.limits import Limits, Refused
from elman.serve.operations import OPERATIONS, openapi
from elman.serve.page_files import TYPES, page_files
from elman.serve.services import Services, listed


def build_app(
    services: Services, limits: Limits, host: str = "127.0.0.1", token: str | None = None, public: str = ""
) -> tuple[ASGIApp, Api]:
    """The application for these runs, and what it keeps; `public` is its address behind a proxy."""
    api = Api(services, limits)
    page = dict(page_files())
    description = msgspec.json.encode(openapi())

    async def file(request: Request) -> Response:
        path = request.url.path.removeprefix("/") or "index.html"
        body = page.get(path)
        if body is None:
            raise HTTPException(404)
        return Response(body, media_type=TYPES["." + path.rpartition(".")[2]])

    async def runs(_: Request) -> Response:
        found = answers.Runs(
            runs=listed(services),
            longest_text=limits.text,
            most_steps=limits.steps,
            most_drawn=limits.drawn,
        )
        return Response(msgspec.json.encode(found), media_type="application/json")

    async def described(_: Request) -> Response:
        return Response(description, media_type="application/json")

    async def health(_: Request) -> Response:
        return Response(msgspec.json.encode({"status": "ok", "runs": len(services)}), media_type="application/json")

    async def metrics(_: Request) -> Response:
        return PlainTextResponse("".join(_metrics(api)), media_type="text/plain; version=0.0.4")

    routes = [
        *(Route(f"/api/{one.name}", api.endpoint(one), methods=["POST"]) for one in OPERATIONS),
        Route("/api/runs", runs),
        Route("/openapi.json", described),
        Route("/health", health),
        Route("/metrics", metrics),
        Route("/", file),
        *(Route(f"/{path}", file) for path in page),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    return Guard(app, host, token, limits.request_seconds, public), api


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: "there is nothing at this address", 405: f"{request.method} is not for this address"}
    return failure(Refused(error.status_code, what.get(error.status_code, error.detail)))


def _metrics(api: Api) -> Iterator[str]:
    yield "# TYPE elman_requests_total counter\n"
    for (name, status), count in sorted(api.counts.items()):
        yield f'elman_requests_total{{operation="{name}",status="{status}"}} {count}\n'
    figures = {
        "tokens_drawn_total": ("counter", api.drawn),
        "units_total": ("counter", api.worker.units),
        "compute_seconds_total": ("counter", round(api.worker.seconds, 6)),
        "units_waiting": ("gauge", api.worker.queued),
        "streams_open": ("gauge", api.streams),
        "tabs": ("gauge", len(api.tabs)),
    }
    for name, (kind, value) in figures.items():
        yield f"# TYPE elman_{name} {kind}\nelman_{name} {value}\n"


GRACE = 3  # seconds within which requests may end when the server does
BACKLOG = 1024  # connections that the machine keeps until they are accepted


class Server(uvicorn.Server):
    """A uvicorn server that ends its streams, and the process as usual, when it is asked to end."""

    def __init__(self, config: uvicorn.Config, api: Api) -> None:
        super().__init__(config)
        self.api = api

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then as every server."""
        self.api.stopping.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ctrl-C is how a server ends, so the signal is not raised again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def serve(
    services: Services,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    public: str = "",
    limits: Limits = Limits(),  # noqa: B008 - a frozen record
    begun: Callable[[str], None] = print,
) -> None:
    """Serve runs until the process is asked to end.

    Where other machines reach the host, or a proxy at the address `public` passes their requests on, a token is made
    unless one is given. `begun` is called with the address, the token in it. Raises UserError where the
    address cannot be used.
    """
    if token is None and (public or not is_loopback(host)):
        token = secrets.token_urlsafe(16)
    listening = listen(host, port)
    more_files()
    app, api = build_app(services, limits, host, token, public)
    server = server_of(app, api)
    begun((public or address(host, listening.getsockname()[1])) + ("" if token is None else f"?token={token}"))
    try:
        asyncio.run(server.serve(sockets=[listening]))
    finally:
        api.worker.stop()
        listening.close()


def server_of(app: ASGIApp, api: Api) -> Server:
    """The server of an application, within the limits of its API."""
    connections = Connections(app, api.limits)
    config = uvicorn.Config(
        connections,
        http=cast(type[asyncio.Protocol], connections.protocol),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=GRACE,
        backlog=BACKLOG,
        h11_max_incomplete_event_size=16_384,
    )
    return Server(config, api)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; raises UserError where the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise UserError(
            f"--host {host} --port {port}: {first_line(error)}; choose another with --port, or --port 0 for a free one"
        ) from None


def address(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    shown = {"0.0.0.0": socket.gethostname(), "[::]": socket.gethostname()}.get(name, name)
    return f"http://{shown}:{port}/"


def more_files() -> None:
    """Allow this process as many open connections as the machine permits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
