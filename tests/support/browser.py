"""A Chromium that playwright drives."""

import contextlib
import functools
import http.server
import os
import shutil
import time

from support.server import running

CHROMIUM = os.environ.get("ELMAN_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
"""There is no network: a page can only be had from this machine."""


@contextlib.contextmanager
def launched():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


def wait(page, condition):
    """Until a condition holds; `wait_for_function` would need code from strings, which the page forbids."""
    end = time.monotonic() + 30
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"{condition}: {page.locator('#status').inner_text()}"
        page.wait_for_timeout(30)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def hosted(folder):
    """The port of a plain static host of a folder."""
    return running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))))


def opened(browser, port, **settings):
    """A page whose console must stay silent, and that asks no other host."""
    found = browser.new_page(**settings)
    said, asked = [], []
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.on("request", lambda request: asked.append(request.url))
    found.set_default_timeout(15_000)
    found.goto(f"http://127.0.0.1:{port}/")
    found.wait_for_selector("body[data-ready]")
    yield found
    assert said == []
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in asked)
    found.close()
