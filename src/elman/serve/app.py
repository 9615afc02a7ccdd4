"""The application: the page, the JSON interface, its description, and figures about the server."""

from collections.abc import Iterator

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from elman.serve import answers
from elman.serve.api import Api
from elman.serve.guard import Guard, failure
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
