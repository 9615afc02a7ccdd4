"""elman serve: time from a key to the heat map, twenty tabs that sample at once, memory after many tabs, connections.

    python benchmarks/serve.py RUN

starts a server of its own and prints one JSON line per measurement. On a busy machine the times are those of its load.
The time until the heat map is painted is measured where playwright and chromium are installed (`elman[browser]`).
"""

import argparse
import http.client
import itertools
import json
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

WORDS = 200
TABS, EACH = 20, 100
LEFT = 500
CONNECTIONS = 1000
JSON = {"content-type": "application/json"}


class Client:
    """A connection that is kept, as a browser's."""

    def __init__(self, port: int, tab: str | None = None) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.tab = tab

    def ask(self, operation: str, **question: Any) -> Any:
        """The answer to a question."""
        body = json.dumps(question | ({"tab": self.tab} if self.tab else {}))
        self.connection.request("POST", f"/api/{operation}", body, JSON)
        answer = self.connection.getresponse()
        found = answer.read()
        assert answer.status == 200, found
        return json.loads(found)


def key_to_heat_map(port: int, vocabulary: list[str]) -> dict[str, Any]:
    """Milliseconds of a request after each letter, once the text has 200 words."""
    client = Client(port, "the-tab-that-types")
    text = " ".join(vocabulary[number % len(vocabulary)] for number in range(WORDS))
    began = time.perf_counter()
    client.ask("score", text=text)
    whole = 1000 * (time.perf_counter() - began)
    times, computed = [], []
    for number in range(20):
        word = vocabulary[number % len(vocabulary)]
        for end in range(1, len(word) + 1):
            began = time.perf_counter()
            found = client.ask("score", text=f"{text} {word[:end]}")
            times.append(1000 * (time.perf_counter() - began))
            computed.append(found["computed"])
        text = f"{text} {word}"
    return {
        "keys": len(times),
        "median_ms": round(statistics.median(times), 2),
        "p95_ms": round(sorted(times)[int(0.95 * len(times))], 2),
        "median_computed": statistics.median(computed),
        "whole_text_ms": round(whole, 1),
    }


WATCH = """() => {
  const area = document.querySelector("#write textarea"), map = document.querySelector("#heat-map");
  window.times = [];
  let at = null;
  area.addEventListener("keydown", () => { at = performance.now(); }, true);
  new MutationObserver(() => {
    const began = at;
    at = null;
    if (began !== null) requestAnimationFrame(() => setTimeout(() => window.times.push(performance.now() - began)));
  }).observe(map, { childList: true, subtree: true, attributes: true, characterData: true });
}"""
"""In the page: milliseconds from a key to the frame after the heat map has changed."""


def painted(port: int, vocabulary: list[str]) -> dict[str, Any]:
    """Milliseconds from a key to the painted heat map of a headless browser, once the text has 200 words.

    Keys that change nothing in the map, such as a space, are not counted.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {"left_out": "playwright is not installed"}
    if (program := shutil.which("chromium")) is None:
        return {"left_out": "chromium is not installed"}
    text = " ".join(vocabulary[number % len(vocabulary)] for number in range(WORDS))
    keys = " " + " ".join(vocabulary[:8])
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as driver, driver.chromium.launch(executable_path=program, args=flags) as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        area = page.locator("#write textarea")
        area.fill(text)
        page.wait_for_timeout(3000)
        page.evaluate(WATCH)
        area.press("End")
        page.evaluate("() => { window.times = []; }")
        page.keyboard.type(keys, delay=250)
        page.wait_for_timeout(2000)
        times = sorted(page.evaluate("() => window.times"))
    return {
        "keys": len(times),
        "median_ms": round(statistics.median(times), 1),
        "p95_ms": round(times[int(0.95 * len(times))], 1),
    }


def sampling(port: int) -> dict[str, Any]:
    """Twenty samples at once: the seconds of each, and how far the slowest was when the first ended."""
    log: list[tuple[float, int]] = []
    start = threading.Barrier(TABS)

    def sample(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        question = {"drawn": EACH, "seed": number, "tab": f"tab-that-samples-{number}"}
        start.wait()
        connection.request("POST", "/api/generate", json.dumps(question), JSON)
        answer = connection.getresponse()
        for line in answer:
            if line.startswith(b"event: token"):
                log.append((time.perf_counter(), number))

    threads = [threading.Thread(target=sample, args=[number]) for number in range(TABS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    client, keys = Client(port, "types-meanwhile"), []
    while any(thread.is_alive() for thread in threads) and len(keys) < 50:
        at = time.perf_counter()
        client.ask("score", text=" ".join(["the"] * (len(keys) + 1)))
        keys.append(1000 * (time.perf_counter() - at))
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    ends = [max(at for at, one in log if one == number) - began for number in range(TABS)]
    first = began + min(ends)
    slowest = min(sum(one == number and at <= first for at, one in log) for number in range(TABS))
    gaps = []
    for number in range(TABS):
        times = [at for at, one in log if one == number]
        gaps.append(max(after - before for before, after in itertools.pairwise(times)))
    return {
        "tabs": TABS,
        "tokens_each": EACH,
        "tokens_per_s": round(TABS * EACH / max(ends), 1),
        "first_end_s": round(min(ends), 2),
        "last_end_s": round(max(ends), 2),
        "slowest_has_when_first_ends": slowest,
        "longest_wait_for_a_token_s": round(max(gaps), 3),
        "key_meanwhile_median_ms": round(statistics.median(keys), 1),
    }


def memory(process: int) -> float:
    """Resident megabytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def tabs_left(port: int, process: int, vocabulary: list[str]) -> dict[str, Any]:
    """Memory before and after tabs that type 200 words and are left, some with and some without a farewell."""
    text = " ".join(vocabulary[number % len(vocabulary)] for number in range(WORDS))
    before, reached, refused = memory(process), [], 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for number in range(LEFT):
        tab = f"tab-that-is-left-{number}"
        body = json.dumps({"text": f"{vocabulary[number % len(vocabulary)]} {text}", "tab": tab})
        while True:
            connection.request("POST", "/api/score", body, JSON)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 429:
                break
            refused += 1
            time.sleep(float(answer.headers["retry-after"]))
        if number % 2:
            connection.request("POST", "/api/leave", json.dumps({"tab": tab}), JSON)
            connection.getresponse().read()
        if number % 50 == 49:
            reached.append(round(memory(process), 1))
    return {"tabs": LEFT, "before_mb": round(before, 1), "every_50_mb": reached, "refused_until_later": refused}


def connections(port: int) -> dict[str, Any]:
    """Many connections at once: those that were refused in time, and whether the server answers afterwards."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(CONNECTIONS)]
    time.sleep(2)
    refused = 0
    for one in held:
        one.setblocking(False)
        try:
            refused += one.recv(100).startswith(b"HTTP/1.1 429")
        except (BlockingIOError, ConnectionResetError):
            continue
    for one in held:
        one.close()
    time.sleep(1)
    answered = Client(port).ask("score", text="the")["tokens"]
    return {"connections": CONNECTIONS, "refused_with_429": refused, "answers_afterwards": answered == 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run on text")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    command = [
        sys.executable,
        "-m",
        "elman",
        "serve",
        str(options.run),
        "--port",
        "0",
        "--threads",
        str(options.threads),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
            client = Client(port)
            words = [one["token"] for one in client.ask("next", text="", count=200)["words"]]
            vocabulary = [word for word in words if word.isalpha()]
            for name, found in (
                ("key to heat map", key_to_heat_map(port, vocabulary)),
                ("key to painted heat map", painted(port, vocabulary)),
                ("twenty samples", sampling(port)),
                ("tabs left", tabs_left(port, process.pid, vocabulary)),
                ("connections", connections(port)),
            ):
                print(json.dumps({"name": name, **found}), flush=True)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)


if __name__ == "__main__":
    main()
