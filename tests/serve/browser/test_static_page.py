"""The page without a server in a real browser, offline: its text is read as elman reads it, its figures are elman's."""

import functools
import http.server
import threading

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
pytest.importorskip("onnxscript", reason="ONNX needs elman[onnx]")
pytest.importorskip("playwright", reason="the browser is driven by playwright: elman[browser]")

import elman
from elman.data.text.cache import cache_folder
from elman.serve import questions, static
from elman.serve.limits import Limits
from elman.serve.tabs import Tabs
from support.browser import CHROMIUM, launched, wait
from support.served import answer, service, text_folder, text_recipe

PACKAGE = cache_folder() / "npm" / f"{static.PACKAGE}-{static.VERSION}.tgz"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; name one with ELMAN_CHROMIUM"),
    pytest.mark.skipif(
        not PACKAGE.is_file(), reason="onnxruntime-web is not in elman's cache; elman export --to web fetches it"
    ),
]

TEXTS = [
    "To be, or not to be? The king",
    "'Tis o'er th' king's well-beloved -- 3.14, 1,000 ... \"not\"\n\n\nof a question!\n",
    "Straße ÉTÉ İstanbul e\u0301te\u0301 ￼\u3000king\u00a0to 12:30 a_b",
    "\n\n to be\r\nor not \n",
    "吾輩は猫である。 名前は\nまだ無い",
]
RUNS = {
    "raw": text_recipe("doc"),
    "words": text_recipe(tokenisation="words", lowercase=False),
    "characters": text_recipe(tokenisation="characters"),
    "exact": text_recipe(tokenisation="characters", eos="exact", normalisation="NFKC"),
    "paragraphs": text_recipe(tokenisation="raw", eos="paragraph", lowercase=False),
    "none": text_recipe(tokenisation="characters", eos="none"),
}
LETTERS = list("tobernhkigafqus ,.!?猫である。'-\r")


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize("name", RUNS)
def test_the_page_reads_and_scores_as_elman_does(browser, tmp_path, name):
    words = {} if RUNS[name].data.options.tokenisation != "characters" else {"words": LETTERS}
    folder = text_folder(tmp_path / name, RUNS[name], **words)
    made = static.export_web(elman.load(folder), tmp_path / "page", package=PACKAGE, say=lambda _: None)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path / "page"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        wait(page, "document.body.dataset.ready === 'yes'")
        assert_same(page, service(folder), made, name)
        drive(page)
        assert said == []
    finally:
        page.close()
        server.shutdown()
        server.server_close()


def assert_same(page, served, made, name):
    page.evaluate("import('./local.js').then(async (m) => { window.it = new m.Local(); await window.it.open(); })")
    for text in TEXTS:
        if name == "words":
            text = " ".join(text.replace(",", " ,").split(" "))
        found = page.evaluate("(text) => window.it.score({ text })", text)
        expected = answer(served.ask("score", questions.Score(text=text), Tabs(Limits()).use(None)))
        if name == "words":  # the page splits at white space, as --as-is does
            continue
        shown = [(one["text"], one["at"], one["begins"], one["unknown"], one["ends"]) for one in found["marks"]]
        assert shown == [(one.text, one.at, one.begins, one.unknown, one.ends) for one in expected.marks], text
        bits = [one["bits"] for one in found["marks"] if one["bits"] is not None]
        np.testing.assert_allclose(
            bits, [one.bits for one in expected.marks if one.bits is not None], atol=4 * made.difference_int8 + 0.02
        )


def drive(page):
    area = page.get_by_label("Text", exact=True)
    area.click()
    area.press_sequentially("to be or")
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length >= 3")
    wait(page, "document.querySelectorAll('#next .bars li').length > 5")
    page.get_by_label("tokens", exact=True).fill("6")
    page.get_by_role("button", name="Draw a sample").click()
    wait(page, "document.querySelector('#samples .sample')?.dataset.state === 'done'")
    page.locator("#samples .sample .word").nth(1).click()
    wait(page, "document.querySelector('#samples .branch')?.dataset.state === 'done'")
    page.locator("#states").scroll_into_view_if_needed()
    wait(page, "document.querySelectorAll('#states circle').length >= 3")
    form = page.locator("#pairs")
    form.get_by_label("grammatical", exact=True).fill("to be or")
    form.get_by_label("ungrammatical", exact=True).fill("or to be be")
    form.get_by_role("button", name="Judge").click()
    wait(page, "document.querySelectorAll('#pairs .judged li').length === 1")
