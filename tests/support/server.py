"""A local server of a folder, with ranges and with connections that break off."""

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, with ranges; `cut` files lose their second half, as when a connection breaks off."""

    cut: frozenset[str] = frozenset()
    asked: list[str | None]

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data, span = path.read_bytes(), self.headers.get("Range")
        self.server.asked.append(span)
        start = int(span.removeprefix("bytes=").removesuffix("-")) if span else 0
        if start >= len(data) > 0:
            self.send_error(416)
            return
        self.send_response(206 if span else 200)
        if span:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        broken = path.name in self.server.cut
        self.wfile.write(data[start : len(data) // 2] if broken else data[start:])

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.folder, self.cut, self.asked = folder, set(), []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def running(server: http.server.HTTPServer) -> Iterator[int]:
    """The port of a server that answers in a thread, until the end."""
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    with server:
        try:
            yield server.server_port
        finally:
            server.shutdown()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    with running(server):
        yield server
