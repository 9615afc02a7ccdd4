"""The page in a real browser, of a server and without one: every panel is driven, and the console stays silent."""

import pytest

from support.browser import CHROMIUM, hosted, launched, opened, wait
from support.served import music_folder, pairs_folder, serving, subword_folder, text_folder, text_recipe

pytest.importorskip("starlette", reason="the server needs elman[serve]")
pytest.importorskip("uvicorn", reason="the server needs elman[serve]")
pytest.importorskip("playwright", reason="the browser is driven by playwright: elman[browser]")

import elman
from elman.serve import static

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; name one with ELMAN_CHROMIUM"),
]
TEXT = "To be, or not to be? The king"
LETTERS = list("tobernhkigafqus ,.!?猫である")


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    pytest.importorskip("sentencepiece", reason="subwords need elman[subwords]")
    runs = tmp_path_factory.mktemp("runs")
    return [
        text_folder(runs / "doc", text_recipe("doc")),
        text_folder(runs / "letters", text_recipe(tokenisation="characters"), LETTERS),
        music_folder(runs / "tunes", "nade"),
        pairs_folder(runs / "pairs"),
        subword_folder(
            runs / "pieces", text_recipe(tokenisation="subwords", subwords={"size": 600, "coverage": 0.999})
        ),
    ]


@pytest.fixture(scope="module", params=["server", "static"])
def host(request, folders, tmp_path_factory):
    """Of the page, its kind and its port."""
    if request.param == "server":
        with serving(*folders, drawn=100_000) as (port, _):
            yield request.param, port
        return
    pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
    pytest.importorskip("onnxscript", reason="ONNX needs elman[onnx]")
    if not static.cached().is_file():
        pytest.skip("onnxruntime-web is not in elman's cache; elman export --to web fetches it")
    folder = tmp_path_factory.mktemp("static") / "page"
    static.export_web([elman.load(one) for one in folders], folder, say=lambda _: None)
    with hosted(folder) as port:
        yield request.param, port


@pytest.fixture
def port(host):
    return host[1]


@pytest.fixture
def page(browser, port):
    yield from opened(browser, port)


def choose(page, run):
    page.get_by_label("Run", exact=True).select_option(run)


def type_text(page, text):
    area = page.get_by_label("Text", exact=True)
    area.click()
    area.press_sequentially(text)
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length >= 1")
    return area


def panel(page, name):
    found = page.locator(f"#{name}")
    found.scroll_into_view_if_needed()
    return found


def test_typing_shows_words_by_surprisal_and_what_may_follow(page):
    type_text(page, TEXT)
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 10")
    words = page.locator("#heat-map [role=option]")
    assert words.all_inner_texts() == ["To", "be", ",", "or", "not", "to", "be", "?", "The", "king"]
    assert page.locator("#heat-map").inner_text().startswith("To be, or not")
    assert "bits, 1 in" in words.nth(0).get_attribute("aria-label")
    assert words.nth(0).evaluate("one => getComputedStyle(one).backgroundColor") != "rgba(0, 0, 0, 0)"
    facts = page.locator("#write .figures").inner_text()
    assert "10 tokens" in facts
    assert "perplexity" in facts
    bars = panel(page, "next").locator(".bars li")
    wait(page, "document.querySelectorAll('#next .bars li').length >= 10")
    first = bars.nth(0).locator(".token").inner_text()
    bars.nth(0).locator("button").click()
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 11")
    assert page.get_by_label("Text", exact=True).input_value() in (f"{TEXT} {first}", f"{TEXT}\n")


def test_settings_of_draws_change_the_bars(page):
    type_text(page, "to be")
    panel(page, "next")
    wait(page, "document.querySelectorAll('#next .bars li').length >= 10")
    buttons = "[...document.querySelectorAll('#next .bars button')]"
    widths = f"{buttons}.filter(one => one.style.getPropertyValue('--drawn') > 0).length"
    assert page.evaluate(widths) > 3
    page.get_by_label("top k").fill("2")
    wait(page, f"{widths} === 2")
    page.get_by_label("top k").fill("0")
    page.get_by_label("temperature").fill("0")
    wait(page, f"{widths} === 1")
    page.get_by_label("temperature").fill("1")
    wait(page, f"{widths} > 3")
    page.get_by_label("top p").fill("0.05")
    wait(page, f"{widths} === 1")
    output = page.locator("#next output").all_text_contents()
    assert output == ["1.00", "all", "0.05"]


def test_a_word_of_the_text_is_chosen_with_the_keys(page):
    type_text(page, TEXT)
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 10")
    row = page.get_by_role("listbox", name="Words of the text by surprisal")
    row.focus()
    row.press("ArrowRight")
    row.press("ArrowRight")
    assert row.evaluate("one => document.getElementById(one.getAttribute('aria-activedescendant')).textContent") == "be"
    wait(page, "document.querySelector('#next .actual .token')?.textContent === 'be'")
    assert "Before “be”" in panel(page, "next").inner_text()
    row.press("End")
    wait(page, "!document.querySelector('#next .actual')")


def test_samples_stream_stop_continue_and_branch(page):
    type_text(page, "to be")
    samples = panel(page, "samples")
    samples.get_by_label("tokens").fill("100000")
    samples.get_by_role("button", name="Draw a sample").click()
    wait(page, "document.querySelectorAll('#samples .sample .word').length > 3")
    samples.get_by_role("button", name="Stop", exact=True).press("Enter")  # it moves while the sample grows
    wait(page, "document.querySelector('#samples .sample').dataset.state === 'stopped'")
    count = "document.querySelectorAll('#samples .sample')[0].querySelectorAll('.word').length"
    before = page.evaluate(count)
    assert before < 100_000
    samples.get_by_label("tokens").fill("5")
    samples.get_by_role("button", name="Continue").click()
    wait(page, f"{count} === {before} + 5")
    samples.locator(".sample .word").nth(2).click()
    wait(page, "document.querySelector('#samples .branch')?.dataset.state === 'done'")
    assert samples.locator(".branch .word").count() == 8
    assert samples.locator(".branch .held").count() == 3
    first = [samples.locator(".sample").nth(number).locator(".word").all_inner_texts()[:3] for number in (0, 1)]
    assert first[0] == first[1]
    samples.locator(".branch").get_by_role("button", name="Write it").click()
    wait(page, "document.querySelector('#write textarea').value.length > 10")
    page.keyboard.press("Control+Enter")
    wait(page, "document.querySelectorAll('#samples .sample').length === 3")
    page.keyboard.press("Escape")


def test_components_states_and_pairs(page):
    type_text(page, TEXT)
    panel(page, "components")
    wait(page, "document.querySelectorAll('#components .stack i').length === 3")
    assert page.locator("#components .layer").count() == 2
    assert page.locator("#components .chips li").count() == 12
    page.locator("#components summary").click()
    assert page.locator("#components tbody tr").count() == 2
    panel(page, "states")
    wait(page, "document.querySelectorAll('#states circle').length === 11")
    page.get_by_label("states of").select_option("0")
    wait(page, "document.querySelector('#states .note').textContent.includes('variance')")
    assert page.locator("#states .radii li").count() == 2
    form = panel(page, "pairs")
    form.get_by_label("grammatical", exact=True).fill("the king")
    form.get_by_label("ungrammatical", exact=True).fill("king the king")
    form.get_by_role("button", name="Judge").click()
    wait(page, "document.querySelectorAll('#pairs .judged li').length === 1")
    assert "more probable, by" in form.inner_text()
    near = panel(page, "neighbours")
    near.get_by_label("word", exact=True).fill("king")
    wait(page, "document.querySelectorAll('#neighbours .bars li').length === 12")
    near.get_by_label("word", exact=True).fill("wombat")
    wait(page, "document.querySelector('#neighbours .note[role=status]').textContent.includes('not in the vocabulary')")


def test_two_models_side_by_side(page):
    type_text(page, "to be not")
    panel(page, "compare")
    wait(page, "document.querySelectorAll('#compare .differences .word').length === 3")
    assert page.locator("#compare .sides ol").count() == 2
    assert "bits fewer" in page.locator("#compare").inner_text()


def test_adaptation_is_switched_on_and_off(page, host):
    type_text(page, TEXT)
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 10")
    if host[0] == "static":
        assert page.get_by_role("switch").count() == 0, "weights do not change in a page without a server"
        return
    page.get_by_role("switch").check()
    wait(page, "document.querySelector('#write .figures').textContent.includes('adapting')")
    page.get_by_role("switch").uncheck()
    wait(page, "!document.querySelector('#write .figures').textContent.includes('adapting')")


def test_letters_of_a_japanese_text(page):
    choose(page, "letters")
    type_text(page, "猫である to be")
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 10")
    assert page.locator("#heat-map").inner_text().startswith("猫である to be")
    panel(page, "letters")
    wait(page, "document.querySelectorAll('#letters circle').length === 10")
    assert page.locator("#letters .ring").count() == 3
    assert page.locator("#components").count() == 0, "no mixture, no panel"


def test_a_piece_is_written_continued_and_played(page):
    choose(page, "tunes")
    roll = page.get_by_role("application")
    roll.click(position={"x": 45, "y": 100})
    wait(page, "document.querySelector('canvas').dataset.said.startsWith('1 steps')")
    roll.press("ArrowRight")
    roll.press("ArrowUp")
    roll.press(" ")
    wait(page, "document.querySelector('#music .figures').textContent.startsWith('2 steps')")
    assert "step 2," in page.locator("#music").inner_text()
    page.get_by_label("steps", exact=True).fill("6")
    page.get_by_role("button", name="Continue").click()
    wait(page, "!document.querySelector('#music .figures').textContent.startsWith('2 steps')")
    wait(page, "!document.querySelector('#music .main').disabled")
    page.get_by_role("button", name="Play").click()
    wait(page, "[...document.querySelectorAll('#music button')].some(one => one.textContent === 'Stop playing')")
    page.keyboard.press("Escape")
    wait(page, "![...document.querySelectorAll('#music button')].some(one => one.textContent === 'Stop playing')")
    page.get_by_role("button", name="Clear").click()
    wait(page, "document.querySelector('#music .figures').textContent.startsWith('0 steps')")
    page.get_by_role("button", name="Undo").click()
    wait(page, "!document.querySelector('#music .figures').textContent.startsWith('0 steps')")


def test_attention_of_targets(page):
    choose(page, "pairs")
    page.get_by_role("textbox", name="source").fill("a b d")
    wait(page, "document.querySelectorAll('#translate .targets li').length === 3")
    assert page.locator("#translate svg text[transform]").all_text_contents() == ["a", "b", "d"]
    page.locator("#translate .targets button").nth(1).click()
    assert page.locator("#translate .targets button").nth(1).get_attribute("aria-pressed") == "true"


def test_subwords_of_a_text_in_two_languages(page):
    choose(page, "pieces")
    type_text(page, "王様は猫である")
    wait(page, "document.querySelector('#heat-map').innerText === '王様は猫である'")
    few = page.locator("#heat-map [role=option]").count()
    assert few < 7, "pieces of several letters"
    type_text(page, " the king")
    wait(page, "document.querySelector('#heat-map').innerText.endsWith(' the king')")
    samples = panel(page, "samples")
    samples.get_by_label("tokens").fill("12")
    samples.get_by_role("button", name="Draw a sample").click()
    wait(page, "document.querySelector('#samples .sample')?.dataset.state === 'done'")
    assert "\u2581" not in samples.locator(".run").inner_text()


def test_all_of_it_with_the_keyboard(page):
    """Type, choose a word, write the likeliest next one, draw a sample, branch it, stop: no pointer is used."""
    focused = "(one => one.id || one.getAttribute('aria-label') || one.textContent)(document.activeElement)"

    def tab_to(what):
        for _ in range(60):
            page.keyboard.press("Tab")
            if what in page.evaluate(focused):
                return
        raise AssertionError(f"{what} is not reached: {page.evaluate(focused)}")

    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "To the panels"
    for _ in range(9):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "TEXTAREA":
            break
    page.keyboard.type("to be or")
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 3")
    tab_to("heat-map")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait(page, "document.querySelector('#next .actual .token')?.textContent === 'be'")
    page.keyboard.press("End")
    wait(page, "!document.querySelector('#next .actual') && document.querySelectorAll('#next .bars button').length > 5")
    tab_to("write it")
    page.keyboard.press("Enter")
    wait(page, "document.querySelectorAll('#heat-map [role=option]').length === 4")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.keyboard.press("Control+Enter")
    wait(page, "document.querySelectorAll('#samples .word').length > 3")
    page.keyboard.press("Escape")
    wait(page, "document.querySelector('#samples .sample').dataset.state === 'stopped'")
    tab_to("Words of the sample")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait(page, "document.querySelectorAll('#samples .branch').length === 1")
    page.keyboard.press("Escape")


def test_every_control_has_a_name_and_the_order_is_that_of_the_page(page):
    type_text(page, "to be")
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, select, textarea, section, canvas, [role=listbox]')]
        .filter(one => !one.labels?.length && !one.getAttribute('aria-label') && !one.getAttribute('aria-labelledby')
          && !one.textContent.trim()).map(one => one.outerHTML)"""
    )
    assert nameless == []
    page.locator("body").click(position={"x": 1, "y": 1})
    seen = []
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert page.evaluate(
        "[...document.querySelectorAll('[tabindex]')].every(one => Number(one.getAttribute('tabindex')) <= 0)"
    )
    assert "run" in seen
    assert "heat-map" in seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_without_scrolling_sideways(browser, port, scheme):
    for phone in opened(browser, port, viewport={"width": 360, "height": 740}, color_scheme=scheme):
        type_text(phone, TEXT)
        for run in ("doc", "letters", "tunes", "pairs", "pieces"):
            choose(phone, run)
            phone.wait_for_timeout(300)
            assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), run
        light = phone.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (light == "rgb(251, 250, 247)") == (scheme == "light")


def test_a_server_that_ended_is_said(browser, tmp_path):
    with serving(text_folder(tmp_path / "toy")) as (port, _):
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("body[data-ready]")
        type_text(page, "to")
    page.get_by_label("Text", exact=True).press_sequentially(" be")
    wait(page, "document.getElementById('status').textContent.includes('does not answer')")
    page.close()
