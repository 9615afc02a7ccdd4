"""elman serve: a page to look into models while typing, and a JSON interface for other programs."""

from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from elman.cli.groups import Machine
from elman.cli.options import Natural, RunFolders, group, record_of
from elman.errors import UserError
from elman.serve.limits import Limits

NEEDS = "elman serve needs the packages starlette and uvicorn: pip install 'elman[serve]'"


@group("Limits", 2, of=Limits())
class LimitOptions:
    """What one request, and all together, may take."""


def serve(
    runs: RunFolders,
    /,
    *,
    port: Natural = 8321,
    host: Annotated[str, Parameter(metavar="ADDRESS")] = "127.0.0.1",
    token: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    public_url: Annotated[str, Parameter(metavar="URL")] = "",
    open_page: Annotated[bool, Parameter(name="--open")] = False,
    limits: LimitOptions = LimitOptions(),
    machine: Machine = Machine(),
) -> None:
    """A page to look into models while typing, and a JSON interface; Ctrl-C ends it.

    Runs on text, music and pairs. Each word that is typed is shown with its surprisal, with what could follow, samples,
    components of mixtures and the path of the state. The page and the model stay on this machine.

    Args:
        port: where it listens; 0 is a free one
        host: only this machine by default; 0.0.0.0 lets others in who have the token
        token: that the address must hold (default: for other hosts a fresh one)
        public_url: the address at which a proxy, such as nginx, passes requests on to this server
        open_page: open the page in the browser
    """
    bounds = record_of(Limits(), limits)
    if not runs:
        raise UserError("give a run folder, or several")
    if port > 65_535:
        raise UserError(f"--port {port}: it must be 0 to 65535")
    if token is not None and not (token.isascii() and token.replace("-", "").replace("_", "").isalnum()):
        raise UserError("--token: it must be letters, digits, - and _, since it stands in the address")
    public = public_address(public_url)
    try:
        from elman.serve.server import serve as listen
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "h11", "anyio"):
            raise
        raise UserError(NEEDS) from None
    from elman.serve.services import open_services

    services = open_services(runs, machine.use(), bounds)

    def begun(address: str) -> None:
        print(f"elman: {', '.join(services)} at {address} (Ctrl-C ends)", flush=True)
        if open_page:
            import webbrowser

            webbrowser.open(address)

    listen(services, host=host, port=port, token=token, public=public, limits=bounds, begun=begun)
    print("elman: ended", flush=True)


def public_address(url: str) -> str:
    """The address of a proxy with its path to the last /; raises UserError where it is none."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named = False
    if url and (not named or parts.query or parts.fragment or "@" in parts.netloc or not url.isprintable()):
        raise UserError(f"--public-url {url!r}: it must be an address such as https://lab.example.org/elman/")
    place = parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, " "))
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}/" if url else ""
