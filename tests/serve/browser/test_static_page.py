"""The figures of the page without a server, computed in a real browser: they are elman's."""

import math

import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
pytest.importorskip("onnxscript", reason="ONNX needs elman[onnx]")
pytest.importorskip("playwright", reason="the browser is driven by playwright: elman[browser]")

import elman
from elman.export.onnx import OnnxGraph
from elman.export.step import Step
from elman.serve import questions, static
from elman.serve.limits import Limits
from elman.serve.tabs import Tabs
from support.browser import CHROMIUM, hosted, launched, opened, wait
from support.served import WORDS, answer, music_folder, pairs_folder, service, text_folder, text_recipe

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; name one with ELMAN_CHROMIUM"),
    pytest.mark.skipif(
        not static.cached().is_file(),
        reason="onnxruntime-web is not in elman's cache; elman export --to web fetches it",
    ),
]
TEXT = " ".join(WORDS[place % 7] for place in range(3, 803, 8))
"""A hundred words."""

ROLL = [[60, 64, 67], [60], [], [62, 65], [62], [21, 108]]


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return {
        "doc": text_folder(runs / "doc", text_recipe("doc")),
        "other": text_folder(runs / "other", text_recipe(cell="gru")),
        "tunes": music_folder(runs / "tunes", "nade"),
        "pairs": pairs_folder(runs / "pairs"),
    }


def asking(page):
    """A function that asks the page's own backend."""
    page.evaluate("import('./local.js').then(async (m) => { window.it = new m.Local(); await window.it.open(); })")
    return lambda operation, **question: page.evaluate(
        "([operation, question]) => window.it.ask(operation, question)", [operation, question]
    )


def right(folder, operation, question):
    return answer(service(folder).ask(operation, question, Tabs(Limits()).use(None)))


def test_with_weights_in_float32_every_figure_is_that_of_the_server(browser, folders, tmp_path):
    static.export_web([elman.load(one) for one in folders.values()], tmp_path / "page", int8=False, say=lambda _: None)
    with hosted(tmp_path / "page") as port:
        for page in opened(browser, port):
            ask = asking(page)
            bits = [one["bits"] for one in ask("score", run="doc", text=TEXT)["marks"]]
            expected = right(folders["doc"], "score", questions.Score(text=TEXT)).marks
            assert len(bits) == 100
            np.testing.assert_allclose(bits, [one.bits for one in expected], atol=1e-4 / math.log(2))
            same_views(ask, folders["doc"])
            same_music(ask, folders["tunes"])
            same_targets(ask, folders["pairs"])
            compared = ask("compare", run="doc", other="other", text="to be not")
            for name, side in (("doc", "first"), ("other", "second")):
                found = right(folders[name], "score", questions.Score(text="to be not"))
                assert compared[side] == pytest.approx(found.bits, abs=1e-3)
                assert [one[side] for one in compared["words"]] == pytest.approx(
                    [one.bits for one in found.marks], abs=1e-3
                )


def same_views(ask, folder):
    text = "to be, or not"
    mixed, expected = (
        ask("components", run="doc", text=text),
        right(folder, "components", questions.Components(text=text)),
    )
    assert [one["name"] for one in mixed["components"]] == [one.name for one in expected.components]
    assert [one["weight"] for one in mixed["components"]] == pytest.approx(
        [one.weight for one in expected.components], abs=1e-4
    )
    walk, path = (
        ask("states", run="doc", text=text, layer=1),
        right(folder, "states", questions.States(text=text, layer=1)),
    )
    np.testing.assert_allclose(walk["points"], path.points, atol=1e-3)
    assert walk["radii"] == pytest.approx(path.radii)
    near, words = (
        ask("neighbours", run="doc", word="King"),
        right(folder, "neighbours", questions.Neighbours(word="King")),
    )
    assert [one["word"] for one in near["neighbours"]][:3] == [one.word for one in words.neighbours][:3]
    assert [one["cosine"] for one in near["neighbours"]] == pytest.approx(
        [one.cosine for one in words.neighbours], abs=0.02
    )
    pair = {"good": "the king", "bad": "king the"}
    judged = ask("pairs", run="doc", pairs=[pair])["pairs"][0]
    (best,) = right(folder, "pairs", questions.Pairs(pairs=[questions.Sentences(**pair)])).pairs
    assert [judged["good"], judged["bad"]] == pytest.approx([best.good, best.bad], abs=1e-3)


def same_music(ask, folder):
    found, expected = ask("score", run="tunes", roll=ROLL), right(folder, "score", questions.Score(roll=ROLL))
    assert [one["notes"] for one in found["steps"]] == ROLL
    assert [one["bits"] for one in found["steps"]] == pytest.approx([one.bits for one in expected.steps], abs=1e-3)
    shares = np.zeros((2, 128))
    likely = ask("next", run="tunes", roll=ROLL)
    shares[0, likely["pitches"]] = likely["shares"]
    sounding = right(folder, "next", questions.Next(roll=ROLL))
    shares[1, sounding.pitches] = sounding.shares
    assert np.abs(shares[0] - shares[1]).max() < 0.2, "two times 200 draws"


def same_targets(ask, folder):
    for text in ("a b d", "c", "b x a"):
        found = ask("translate", run="pairs", text=text, beam=4, targets=3)
        expected = right(folder, "translate", questions.Translate(text=text, beam=4, targets=3))
        assert found["source"] == expected.source
        assert [one["words"] for one in found["targets"]] == [one.words for one in expected.targets]
        assert [one["text"] for one in found["targets"]] == [one.text for one in expected.targets]
        assert [one["bits"] for one in found["targets"]] == pytest.approx(
            [one.bits for one in expected.targets], abs=1e-3
        )
        for one, other in zip(found["targets"], expected.targets, strict=True):
            np.testing.assert_allclose(one["attention"], other.attention, atol=1e-3)
    assert "none of the 2 symbols" in ask("translate", run="pairs", text="x y")["note"]


def test_in_eight_bits_the_page_differs_from_elman_as_the_graph_itself_does(browser, folders, tmp_path):
    run = elman.load(folders["doc"])
    made = static.export_web([run], tmp_path / "page", say=lambda _: None)
    with hosted(tmp_path / "page") as port:
        for page in opened(browser, port):
            bits = [one["bits"] for one in asking(page)("score", text=TEXT)["marks"]]
    found = -np.array(bits) * math.log(2)
    ids = [run.vocabulary.ids[word] for word in TEXT.split()]
    graph, step = OnnxGraph(tmp_path / "page" / "model-1" / "model.onnx"), Step(run.model)
    state, model_state, rounded, exact = [one.numpy() for one in step.beginning], run.model.begin(1), [], []
    for symbol, word in zip([run.first, *ids], ids, strict=False):
        log_probs, _, _, _, *state = graph(np.array([symbol]), *state)
        rounded.append(log_probs[0, word])
        with torch.inference_mode():
            right_ones, model_state = run.model.step(torch.tensor([symbol]), model_state)
        exact.append(float(right_ones[0, word]))
    assert len(found) == 100
    np.testing.assert_allclose(found, rounded, atol=5e-3)
    error = np.abs(np.array(rounded) - exact).max()
    assert 1e-4 < error < 2 * made.models[0].difference_written
    assert np.abs(found - exact).max() < 1.2 * error + 1e-3


def test_a_damaged_page_shows_one_line_that_names_the_file(browser, folders, tmp_path):
    page = tmp_path / "page"
    static.export_web([elman.load(folders["doc"])], page, say=lambda _: None)
    scripts = ("opened.js", "sampling.js", "panels/write.js", "main.js", "begin.js", "files.js", "backend.js")
    facts, runtime = ("runs.json", "files.json"), ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
    with hosted(page) as port:
        for name in (*scripts, *facts, *runtime, "model-1/model.json", "model-1/model.onnx"):
            whole = (page / name).read_bytes()
            for damaged in (b"(" + whole[1:], whole[: len(whole) // 2], b"5", None):
                (page / name).unlink() if damaged is None else (page / name).write_bytes(damaged)
                line = shown(browser, port)
                assert line.startswith((name, name.rpartition("/")[2])), (name, line)
                assert "\n" not in line
                assert "export it again" in line
            (page / name).write_bytes(whole)
        assert shown(browser, port) == ""

    for name in (None, *scripts[1:], "files.json"):
        if name:
            (page / name).unlink()
        assert title_of(browser, page / "index.html") == ("This page needs a server", "")
    (page / "opened.js").unlink()
    assert title_of(browser, page / "index.html") == ("Opening the model …", "")


def title_of(browser, path):
    page = browser.new_context().new_page()
    page.goto(path.as_uri())
    page.locator("#facts").get_by_text("python -m http.server").wait_for()  # visible
    found = page.locator("#title").inner_text(), page.locator("#status").inner_text()
    page.context.close()
    return found


def shown(browser, port):
    """The line that a page shows when it is opened and a text is written."""
    page = browser.new_context().new_page()
    page.goto(f"http://127.0.0.1:{port}/")
    wait(page, "document.body.dataset.ready || document.getElementById('status').textContent")
    if page.evaluate("document.body.dataset.ready"):
        page.get_by_label("Text", exact=True).fill("to be")
        heat = "document.querySelectorAll('#heat-map [role=option]').length"
        wait(page, f"{heat} >= 2 || document.getElementById('status').textContent")
    found = page.locator("#status").inner_text()
    page.context.close()
    return found
