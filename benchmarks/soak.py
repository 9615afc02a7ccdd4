"""Does a process that trains, serves and reloads for an hour keep its size? Memory, descriptors and threads per turn.

    python benchmarks/soak.py [--minutes 60] [--folder FOLDER]

One process. In each turn it trains a small run (texts, music, pairs, series, tags and trees in turn), opens it,
evaluates, draws and exports it, then serves three runs: clients ask, sample, adapt, leave in the middle of a sample,
close half of the connection and send what is no request; the server ends. After each turn the resident memory, the open
descriptors and the threads are noted as a JSON line. Exit status 1 if, between the second and the last quarter, medians
of descriptors or threads grow, or memory by more than `MOST` MB (Linux only).
"""

import argparse
import contextlib
import gc
import http.client
import io
import itertools
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
import torch

import elman
from elman.cli import main as elman_main
from elman.serve.limits import Limits
from elman.serve.server import build_app, listen, server_of
from elman.serve.services import open_services
from killed_work import train, write_inputs

MOST = 20
KINDS = {"text": "txt", "music": "npz", "pairs": "tsv", "series": "csv", "tags": "ptb", "trees": "ptb"}


def quietly(*command: Any) -> None:
    """A command of elman, which must end well."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
        if elman_main([str(one) for one in command]):
            raise RuntimeError(f"{command}: {told.getvalue()}")


def train_and_open(kind: str, inputs: Path, place: Path) -> None:
    """Train a run anew and use it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if train(inputs, place, kind, KINDS[kind]):
            raise RuntimeError(f"training {kind}")
    run = place / "run"
    elman.load(run)
    quietly("evaluate", run, "--split", "test", "--threads", "1", "--json")
    if kind == "text":
        quietly("generate", run, "--sentences", "2", "--seed", "1", "--threads", "1")
        quietly("score", run, inputs / "text.txt", "--threads", "1", "--out", place / "scores.tsv")
        quietly("report", run)
        quietly("export", run, "--out", place / "export")


@contextlib.contextmanager
def serving(folders: list[Path]) -> Iterator[int]:
    """A server in a thread of this process; its port."""
    limits = Limits()
    app, api = build_app(open_services(folders, torch.device("cpu"), limits), limits)
    server, listening = server_of(app, api), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        api.worker.stop()
        listening.close()


def ask(port: int, operation: str, **question: Any) -> int:
    """The status of an answer that is read to its end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", f"/api/{operation}", json.dumps(question), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def impolite(port: int, written: bytes, read: int, half: bool) -> None:
    """A client that writes these bytes, closes its half perhaps, reads up to `read` bytes and leaves."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(written)
        if half:
            connection.shutdown(socket.SHUT_WR)
        if read:
            connection.recv(read)


def visit(port: int, turn: int) -> None:
    """What clients do in one turn, several at once."""
    body = json.dumps({"text": "w1 w2", "drawn": 2000, "seed": turn}).encode()
    head = (
        "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    sample = head.encode() % len(body) + body

    def client(number: int) -> None:
        tab = f"tab-{turn:06d}-{number}"
        ask(port, "score", text="w1 w2 w3 " * 20, tab=tab)
        ask(port, "next", text="w1", tab=tab)
        ask(port, "generate", text="w1", drawn=50, seed=number, tab=tab)
        ask(port, "adapt", text="w3 w2 w1", tab=tab)
        ask(port, "score", run="nothing", text="w1")
        impolite(port, sample, 200, half=False)
        impolite(port, sample[:-5], 0, half=True)
        impolite(port, sample, 500, half=True)
        impolite(port, b"\x16\x03\x01 what is no request\r\n\r\n", 100, half=False)
        if number % 2:
            ask(port, "leave", tab=tab)

    clients = [threading.Thread(target=client, args=[number]) for number in range(6)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()


def size() -> dict[str, float]:
    """Resident megabytes, open descriptors and threads of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return {
        "megabytes": round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1),
        "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": int(status.split("Threads:")[1].split()[0]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--folder", type=Path, help="an empty folder that is kept (default: a temporary one)")
    options = parser.parse_args()
    until, sizes = time.monotonic() + 60 * options.minutes, list[dict[str, float]]()
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        folder = options.folder or Path(temporary)
        os.environ["ELMAN_CACHE"] = str(folder / "cache")
        inputs = folder / "inputs"
        inputs.mkdir(parents=True)
        write_inputs(inputs)
        for turn in itertools.count():
            began = time.monotonic()
            for kind in KINDS if turn == 0 else [list(KINDS)[turn % len(KINDS)]]:
                train_and_open(kind, inputs, folder / kind)
            with serving([folder / kind / "run" for kind in ("text", "music", "pairs")]) as port:
                visit(port, turn)
            sizes.append(size())
            print(json.dumps({"turn": turn, "seconds": round(time.monotonic() - began, 2), **sizes[-1]}), flush=True)
            if time.monotonic() > until:
                break
    quarter = max(1, len(sizes) // 4)
    grown = {
        name: round(
            statistics.median(one[name] for one in sizes[-quarter:])
            - statistics.median(one[name] for one in sizes[quarter : 2 * quarter] or sizes[:1]),
            1,
        )
        for name in sizes[0]
    }
    print(json.dumps({"turns": len(sizes), "grown": grown}))
    return int(grown["descriptors"] > 0 or grown["threads"] > 0 or grown["megabytes"] > MOST)


if __name__ == "__main__":
    sys.exit(main())
