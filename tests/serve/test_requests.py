"""Requests: what is answered, what is refused with a status and one line, and by which headers a page is bound."""

import asyncio
import json

import pytest

pytest.importorskip("starlette", reason="the server needs elman[serve]")
pytest.importorskip("uvicorn", reason="the server needs elman[serve]")

import msgspec
import torch
from starlette.testclient import TestClient

from elman.serve import answers, api
from elman.serve.limits import Limits
from elman.serve.operations import OPERATIONS, openapi
from elman.serve.page_files import page_files
from elman.serve.server import build_app
from elman.serve.services import open_services
from support.served import music_folder, pairs_folder, text_folder, text_recipe

LIMITS = Limits()


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    folders = [
        text_folder(runs / "doc", text_recipe("doc")),
        text_folder(runs / "again" / "doc"),
        music_folder(runs / "tunes"),
        pairs_folder(runs / "pairs"),
    ]
    return open_services(folders, torch.device("cpu"), Limits())


@pytest.fixture
def client(services):
    yield from _client(services)


def _client(services, limits=LIMITS, host="127.0.0.1", token=None, public=""):
    app, api = build_app(services, limits, host, token, public)
    with TestClient(app, base_url=f"http://{host}:8321") as found:
        found.api = api
        yield found
    api.worker.stop()


def refusal(answer, status):
    assert answer.status_code == status, answer.text
    line = answer.json()["error"]
    assert line
    assert "\n" not in line
    return line


def events(answer):
    blocks = [block.split("\n") for block in answer.text.split("\n\n") if block]
    found = [json.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert [name for name, _ in blocks] == [f"event: {one['event']}" for one in found]
    return found


def test_the_runs_and_what_they_answer(client):
    found = client.get("/api/runs").json()
    assert [run["name"] for run in found["runs"]] == ["doc", "doc-2", "tunes", "pairs"]
    first, second, music, pairs = (run["panels"] for run in found["runs"])
    assert {"score", "next", "generate", "components", "states", "compare", "pairs", "adapt"} <= set(first)
    assert "components" not in second
    assert set(music) == {"score", "next", "generate"}
    assert set(pairs) == {"translate", "attention"}


def test_every_operation_answers_what_its_schema_says(client):
    questions = {
        "score": {"text": "to be"},
        "next": {"text": "to be"},
        "generate": {"text": "to be", "drawn": 3},
        "components": {"text": "to be"},
        "states": {"text": "to be"},
        "compare": {"text": "to be", "other": "doc-2"},
        "neighbours": {"word": "king"},
        "pairs": {"pairs": [{"good": "to be", "bad": "be to"}]},
        "adapt": {"tab": "my-tab-is-this", "on": True},
        "translate": {"run": "pairs", "text": "a b"},
        "leave": {"tab": "my-tab-is-this"},
    }
    for one in OPERATIONS:
        answer = client.post(f"/api/{one.name}", json=questions[one.name])
        assert answer.status_code == 200, answer.text
        if one.streams:
            for event in events(answer):
                msgspec.convert(
                    event, answers.Begun | answers.Drawn | answers.DrawnStep | answers.Ended | answers.Broken
                )
        else:
            kinds = one.answers[0] if len(one.answers) == 1 else one.answers[0] | one.answers[1]
            msgspec.json.decode(answer.content, type=kinds)
    music = client.post("/api/generate", json={"run": "tunes", "roll": [[60]], "drawn": 2})
    assert [event["event"] for event in events(music)] == ["begin", "step", "step", "end"]


def test_the_description_is_whole(client):
    described = client.get("/openapi.json").json()
    assert described == json.loads(msgspec.json.encode(openapi()))
    text = json.dumps(described)
    used = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert used <= set(described["components"]["schemas"])
    assert {f"/api/{one.name}" for one in OPERATIONS} < set(described["paths"])
    temperature = described["components"]["schemas"]["Next"]["properties"]["temperature"]
    assert (temperature["minimum"], temperature["maximum"]) == (0, 100)


def test_the_page_is_served_under_a_strict_policy(client):
    files = dict(page_files())
    assert {"index.html", "main.js", "style.css", "panels/next.js"} <= set(files)
    for path, body in files.items():
        answer = client.get(f"/{path}")
        assert answer.content == body
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    assert client.get("/").content == files["index.html"]
    page = files["index.html"].decode()
    assert "style=" not in page
    assert "http:" not in page
    assert "onclick" not in page


def test_health_and_figures(client):
    assert client.get("/health").json() == {"status": "ok", "runs": 4}
    client.post("/api/score", json={"text": "to be", "tab": "my-tab-is-this"})
    client.post("/api/score", json={"text": 7})
    client.post("/api/generate", json={"text": "to be", "drawn": 4})
    figures = client.get("/metrics").text
    for line in (
        'elman_requests_total{operation="score",status="200"} 1',
        'elman_requests_total{operation="score",status="400"} 1',
        "elman_tokens_drawn_total 4",
        "elman_streams_open 0",
        "elman_tabs 1",
    ):
        assert line in figures.splitlines()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"text": "\xff\xfe"}', "utf-8"),
        (b"\xff\xfe{\x00", "malformed"),
        (b'{"text": 7}', r"Expected `str`, got `int` - at `$.text`"),
        (b'{"text": "a", "wrong": 1}', "wrong"),
        (b'{"run": "nothing", "text": "a"}', "there is no run 'nothing' here; there are doc, doc-2, tunes, pairs"),
        (b'{"tab": "short", "text": "a"}', "$.tab"),
        (b'{"text": "a", "position": -1}', "$.position"),
        (b'{"text": "a", "temperature": 1e9}', "$.temperature"),
        (b'{"text": "a", "temperature": NaN}', "malformed"),
        (b"[" * 20_000, ""),
        (b'{"text": "\\ud800"}', ""),
    ],
)
def test_wrong_questions_have_one_line(client, body, said):
    answer = client.post("/api/next", content=body, headers={"content-type": "application/json"})
    assert said in refusal(answer, 400)
    assert client.post("/api/score", json={"text": "to be"}).status_code == 200


STRANGE = [
    "\0",
    "a\0b",
    "<eos> <unk> <0xFF>",
    "\u2028\u2029\x85 x",
    "😀\u0301\u0301",
    "\ufeffto be",
    " ",
    "",
    "▁▁ a",
    "\n" * 40,
]


@pytest.mark.parametrize("run", ["doc", "tunes", "pairs"])
def test_strange_texts_have_an_answer_or_a_line(client, run):
    for text in STRANGE:
        for name in ("score", "next", "generate", "states", "translate", "neighbours", "pairs"):
            question = {"text": text, "drawn": 2} if name == "generate" else {"text": text}
            if name == "neighbours":
                question = {"word": text or "a"}
            if name == "pairs":
                question = {"pairs": [{"good": text, "bad": "to be"}]}
            answer = client.post(f"/api/{name}", json={"run": run, **question})
            assert answer.status_code in (200, 400), (name, text, answer.text)
            if answer.status_code == 400:
                refusal(answer, 400)
            assert '"event":"error"' not in answer.text


def test_questions_of_the_model_that_cannot_be_answered(client):
    for name, question, said in (
        ("components", {"run": "doc-2"}, "doc-2 is a run on text that does not answer components"),
        ("compare", {"other": "tunes"}, "tunes is a run on music; two runs on text can be compared"),
        ("adapt", {"on": True}, "adapt needs a tab"),
        ("next", {"text": "to", "temperature": 1e-9}, "--temperature"),
    ):
        assert said in refusal(client.post(f"/api/{name}", json=question), 400)


def test_a_fault_is_a_line_and_the_server_lives(client, monkeypatch, capsys):
    def broken(*_):
        raise ZeroDivisionError("within")

    service = client.api.services["doc"]
    monkeypatch.setitem(service.answers, "score", broken)
    line = refusal(client.post("/api/score", json={"text": "a"}), 500)
    assert line == "score failed (ZeroDivisionError); the server has written why"
    assert "ZeroDivisionError: within" in capsys.readouterr().err
    assert client.post("/api/next", json={"text": "to"}).status_code == 200


def test_a_body_may_be_as_large_as_it_is_said(services):
    question = b'{"text": "to be"}'
    how = {"content": question, "headers": {"content-type": "application/json"}}
    for limited in _client(services, Limits(body=len(question))):
        assert limited.post("/api/score", **how).status_code == 200
    for limited in _client(services, Limits(body=len(question) - 1)):
        refusal(limited.post("/api/score", **how), 413)


def test_large_bodies_are_refused(services):
    for limited in _client(services, Limits(body=2048)):
        for size in (3000, 5 * 2**20):
            answer = limited.post("/api/score", json={"text": "a" * size})
            assert "at most 2,048 bytes" in refusal(answer, 413)
            assert answer.headers["connection"] == "close"
        parts = (b'{"text": "' if not n else b"a" * 1000 for n in range(50))
        chunked = limited.post("/api/score", content=parts, headers={"content-type": "application/json"})
        refusal(chunked, 413)


def test_only_json_is_read(client):
    assert "Content-Type" in refusal(client.post("/api/score", content=b'{"text":"a"}'), 415)
    form = client.post("/api/score", data={"text": "a"})
    refusal(form, 415)


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/panels/../../api.py", "//etc/passwd", "/panels",
     "/main.js%00", "/api/score/", "/style.css/"],
)  # fmt: skip
def test_no_other_file_can_be_asked_for(client, path):
    answer = client.get(path, follow_redirects=False)
    assert answer.status_code in (404, 307, 405)
    assert b"import" not in answer.content


def test_methods(client):
    refusal(client.get("/api/score"), 405)
    refusal(client.post("/main.js", json={}), 405)
    refusal(client.request("OPTIONS", "/api/score"), 405)


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost", "LOCALHOST:1", "[::1]:8321"])
def test_own_names(client, host):
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[", "localhost.evil"])
def test_other_names_are_refused(client, host):
    """A page whose name was made to lead to this machine (DNS rebinding) has another name than this machine."""
    refusal(client.get("/api/runs", headers={"host": host}), 403)


def test_requests_of_other_sites_are_refused(client):
    question = {"text": "to be"}
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
    ):
        refusal(client.post("/api/score", json=question, headers=headers), 403)
    own = {"origin": "http://127.0.0.1:8321", "sec-fetch-site": "same-origin"}
    assert client.post("/api/score", json=question, headers=own).status_code == 200
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=followed).status_code == 200, "a link of another site"


def test_a_token_opens_the_server(services):
    for bare in _client(services, host="10.1.2.3", token="the-token"):
        assert bare.get("/health").status_code == 200
        for wrong in (
            bare.get("/"),
            bare.get("/?token=the-toke"),
            bare.get("/?token="),
            bare.get("/metrics", headers={"authorization": "Bearer ünknown".encode()}),
            bare.post("/api/score", json={"text": "a"}, headers={"cookie": "elman-token=wrong"}),
            bare.post("/api/score", json={"text": "a"}, headers={"cookie": 'elman-token="\x01'}),
        ):
            assert "token" in refusal(wrong, 401)
        for scheme, status in (("Bearer", 200), ("bearer", 200), ("Basic", 401)):
            given = {"authorization": f"{scheme} the-token"}
            assert bare.post("/api/score", json={"text": "to"}, headers=given).status_code == status
        opened = bare.get("/?token=the-token", follow_redirects=False)
        assert (opened.status_code, opened.headers["location"]) == (303, "./")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert bare.get("/").status_code == 200, "the browser keeps the cookie"
        refusal(bare.get("/", headers={"host": "evil.example"}), 403)


@pytest.mark.parametrize("public", ["https://lab.example.org/elman/", "http://lab.example.org:8080/"])
def test_a_proxy_passes_requests_on(services, public):
    origin, path = public.rstrip("/").removesuffix("/elman"), "/elman/" if "elman" in public else "/"
    bearer, question = {"authorization": "Bearer the-token"}, {"text": "to be"}
    for client in _client(services, token="the-token", public=public):
        for host in ("lab.example.org", "lab.example.org:8080", "127.0.0.1:8321"):
            own = {"host": host, "origin": origin, "sec-fetch-site": "same-origin"}
            assert client.post("/api/score", json=question, headers=own | bearer).status_code == 200, host
            refusal(client.post("/api/score", json=question, headers=own), 401)
            for other in (
                "http://lab.example.org:3000",
                "https://evil.example",
                "https://lab.example.org.evil",
                "null",
            ):
                refused = client.post("/api/score", json=question, headers=own | bearer | {"origin": other})
                assert "other sites" in refusal(refused, 403)
        refusal(client.get("/", headers=bearer | {"host": "evil.example"}), 403)
        opened = client.get("/?token=the-token", follow_redirects=False)
        assert opened.headers["location"] == "./", "relative to the path of the proxy"
        cookie = opened.headers["set-cookie"].lower().split("; ")
        assert f"path={path}" in cookie
        assert ("secure" in cookie) == public.startswith("https")
        drawn = client.post("/api/generate", json={"text": "to", "drawn": 2}, headers=bearer)
        assert drawn.headers["x-accel-buffering"] == "no"


def test_a_full_queue_and_full_tabs_shed_load(services):
    for limited in _client(services, Limits(tabs=1)):
        assert limited.post("/api/score", json={"text": "a", "tab": "tab-number-1"}).status_code == 200
        answer = limited.post("/api/score", json={"text": "a", "tab": "tab-number-2"})
        assert "try again" in refusal(answer, 429)
        assert answer.headers["retry-after"] == "5"
        assert limited.post("/api/score", json={"text": "a"}).status_code == 200, "without a tab"
        limited.post("/api/leave", json={"tab": "tab-number-1"})
        assert limited.post("/api/score", json={"text": "a", "tab": "tab-number-2"}).status_code == 200


def test_a_client_has_left_where_it_is_disconnected_and_not_before():
    messages = iter(["http.request", "http.request", "http.disconnect", "http.request"])

    async def receive():
        return {"type": next(messages)}

    asyncio.run(api._left(receive))
    assert list(messages) == ["http.request"]
