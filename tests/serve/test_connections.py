"""A server on a socket: slow clients, many of them, clients that leave, and Ctrl-C."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("starlette", reason="the server needs elman[serve]")
pytest.importorskip("uvicorn", reason="the server needs elman[serve]")

from elman.serve import server
from support.served import serving, text_folder

JSON = {"content-type": "application/json"}
POST = b"POST /api/%b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return text_folder(tmp_path_factory.mktemp("runs") / "toy")


def request(port, method, path, question=None, seconds=20):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    body = None if question is None else json.dumps(question)
    connection.request(method, path, body, JSON if body else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def is_alive(port):
    return request(port, "POST", "/api/score", {"text": "to be"})[0] == 200


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_heads_and_bodies_that_arrive_too_slowly_end_their_connections(folder):
    with serving(folder, request_seconds=0.6) as (port, _):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        again = socket.create_connection(("127.0.0.1", port))
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        again.settimeout(10)
        assert again.recv(100).startswith(b"HTTP/1.1 200")
        body = socket.create_connection(("127.0.0.1", port))
        body.sendall(POST % (b"score", 90) + b'{"te')
        for letter in b"GET / HTTP/1.1\r\nX-Slow: ":
            for one in (*slow, again):
                try:
                    one.sendall(bytes([letter]))
                except OSError:
                    continue
            time.sleep(0.05)
            if not letter % 8:
                assert is_alive(port)
        body.settimeout(10)
        assert body.recv(4096).startswith(b"HTTP/1.1 408")
        for one in (*silent, *slow, again):
            one.settimeout(10)
            try:
                while one.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            one.close()
        assert is_alive(port)


@pytest.mark.slow
def test_an_answer_may_take_longer_than_a_head(folder):
    with serving(folder, request_seconds=0.2) as (port, _):
        began = time.monotonic()
        status, body = request(port, "POST", "/api/generate", {"text": "to be", "drawn": 1500})
        assert time.monotonic() - began > 0.2, "the sample is too short for this test"
        assert status == 200
        assert b'"reason":"length"' in body


def test_connections_beyond_the_limit_are_refused_and_the_server_lives(folder):
    with serving(folder, connections=50) as (port, _):
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        until(lambda: sum(_is_refused(one) for one in held) >= 150)
        time.sleep(0.3)
        refused = [one for one in held if _is_refused(one)]
        assert len(refused) == 150
        wanted = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1"
        assert all(one.recv(4096).startswith(wanted) for one in refused)
        for one in held:
            one.close()
        until(lambda: _is_up(port))


def test_a_thousand_connections_leave_the_server_alive(folder):
    resource = pytest.importorskip("resource", reason="the limit of open files is that of Unix")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (-1, resource.RLIM_INFINITY) and hard < 3000:
        pytest.skip(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    held = []
    try:
        with serving(folder) as (port, api):
            held = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
            bound = api.limits.connections
            until(lambda: sum(_is_refused(one) for one in held) == 1000 - bound)
            for one in held:
                one.close()
            until(lambda: _is_up(port))
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _is_refused(connection):
    connection.setblocking(False)
    try:
        return connection.recv(4096, socket.MSG_PEEK).startswith(b"HTTP/1.1 429")
    except BlockingIOError:
        return False


def test_answers_do_not_wait_for_the_client_s_acknowledgements(folder):
    """Without TCP_NODELAY the body of an answer waits for the acknowledgement of its head, 40 ms."""
    with serving(folder) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        times = []
        for _ in range(15):
            began = time.perf_counter()
            connection.request("GET", "/api/runs")
            connection.getresponse().read()
            times.append(time.perf_counter() - began)
        assert sorted(times)[3] < 0.03


def _is_up(port):
    try:
        return is_alive(port)
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize(
    "path", ["/../../../../etc/passwd", "/panels/../../api.py", "/%2e%2e/api.py", "/..\\\\api.py", "*"]
)
def test_paths_are_names_and_not_places(folder, path):
    with serving(folder) as (port, _), socket.create_connection(("127.0.0.1", port)) as one:
        one.settimeout(10)
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: one.recv(4096), b""))
        assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), answer
        assert b"root:" not in answer
        assert b"import" not in answer


def test_a_head_that_is_too_long_or_no_http_is_refused(folder):
    with serving(folder) as (port, _):
        for data in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000,
            b"\x16\x03\x01\x02\x00\x01" * 50 + b"\r\n\r\n",
            b"POST /api/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
            b"POST /api/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.settimeout(10)
                one.sendall(data)
                assert one.recv(4096).startswith(b"HTTP/1.1 400")
        assert is_alive(port)


def test_a_client_that_leaves_ends_its_stream(folder):
    with serving(folder) as (port, api):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/api/generate", json.dumps({"text": "to", "drawn": 2000}), JSON)
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.readline() == b"event: begin\n"
        assert api.streams == 1
        answer.close()
        connection.close()
        until(lambda: api.streams == 0)
        until(lambda: not api.worker.queued)
        drawn = api.drawn
        assert drawn < 2000
        time.sleep(0.1)
        assert api.drawn == drawn


def test_a_client_that_reads_nothing_stops_nobody(folder):
    with serving(folder, drawn=100_000, request_seconds=1.0) as (port, api):
        idle = socket.socket()
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect(("127.0.0.1", port))
        question = json.dumps({"text": "to", "drawn": 100_000}).encode()
        idle.sendall(POST % (b"generate", len(question)) + question)
        status, events = request(port, "POST", "/api/generate", {"text": "be", "drawn": 50})
        assert status == 200
        assert events.count(b"event: token") == 50
        idle.close()
        until(lambda: api.streams == 0)


@pytest.mark.slow
def test_ctrl_c_ends_the_server_and_its_streams(folder):
    command = [
        sys.executable,
        "-m",
        "elman",
        "serve",
        str(folder),
        "--port",
        "0",
        "--threads",
        "1",
        "--drawn",
        "100000",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        assert line.startswith("elman: toy at http://127.0.0.1:")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/api/generate", json.dumps({"text": "to", "drawn": 100_000}), JSON)
        answer = connection.getresponse()
        assert answer.readline() == b"event: begin\n"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest = answer.read()
        assert rest.endswith(b'event: end\ndata: {"event":"end","reason":"stopped"}\n\n')
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "elman: ended\n", "")
        assert time.monotonic() - began < 10
    finally:
        process.kill()
        process.communicate()


def test_a_port_in_use_and_runs_that_cannot_be_served_are_one_line(folder, capsys):
    from elman.cli import main

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(folder), "--port", port]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"elman: --host 127.0.0.1 --port {port}: ")
    assert err.count("\n") == 1
    assert main(["serve", str(folder), "--port", "70000"]) == 2
    assert main(["serve", str(folder), "--token", "a b"]) == 2
    assert main(["serve", str(folder / "nothing")]) == 2
    assert main(["serve"]) == 2


def test_a_missing_package_names_the_extra(folder, capsys, monkeypatch):
    from elman.cli import main

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [
        one for one in sys.modules if one.startswith("elman.serve.") and one.endswith(("server", "connections"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["serve", str(folder)]) == 2
    assert "pip install 'elman[serve]'" in capsys.readouterr().err


def test_a_client_that_sends_no_more_takes_its_answer(folder):
    with serving(folder) as (port, _):
        for body in (b"", b'{"text": "to be"}'):
            head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" if not body else POST % (b"score", len(body))
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.sendall(head + body)
                client.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda client=client: client.recv(4096), b""))
            assert answer.startswith(b"HTTP/1.1 200")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(b"GET /hea")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""  # closed, though its head never came


@pytest.mark.parametrize(
    "others",
    [
        *('a="\\777"; ', "a,b=c; ", "{}=[]; ", 'x="; ', "\xff=\xfe; ", ";;=; "),
        *("elman-token=foreign; ", "Expires=1; $Path=/; "),
    ],
)
def test_foreign_cookies_lock_nobody_out(folder, others):
    with serving(folder, token="secret") as (port, _):
        for cookie, status in ((f"{others}elman-token=secret", 200), (others, 401)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/api/runs", headers={"Cookie": cookie.encode("latin-1")})
            assert connection.getresponse().status == status


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, False),
        ({"host": "localhost"}, False),
        ({"host": "0.0.0.0"}, True),
        ({"public": "https://models.example.org/"}, True),
        ({"host": "0.0.0.0", "token": "mine"}, False),
    ],
)
def test_a_token_is_made_where_others_reach_the_server(monkeypatch, given, made):
    def built(services, limits, host, token, public):
        assert token is None or made or token == "mine"
        assert bool(token) is (made or "token" in given)
        raise InterruptedError

    monkeypatch.setattr(server, "build_app", built)
    with pytest.raises(InterruptedError):
        server.serve({}, port=0, **given)
