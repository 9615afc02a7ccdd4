"""A Chromium that playwright drives."""

import contextlib
import os
import shutil
import time

CHROMIUM = os.environ.get("ELMAN_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required",
]


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
