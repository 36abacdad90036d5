"""The server on its socket: HTTP as it should be, as it should not be, limits, resets, and a clean end."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, Iterator

import pytest

from statek_sim.errors import BadInput, BadRequest
from statek_sim.providers.script import text, timeout
from statek_sim.providers.wire import gemini
from statek_sim.server import http_connection
from statek_sim.server.exchange import Answer, Frame, Incoming, Live, Streamed
from statek_sim.server.fault import Fault, FaultRule, NoAnswerAtAll, Reset, SlowFirstByte, SlowTokens
from statek_sim.server.llm_server import LLMServer, RunningServer, listen
from statek_sim.values import JSON
from tests.server.asking import ANTHROPIC, GEMINI, OPENAI, openai
from tests.tables import table_test

BODY = json.dumps(openai()).encode()
REQUEST = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (OPENAI.encode(), len(BODY), BODY)


@pytest.fixture(scope="module")
def server() -> Iterator[LLMServer]:
    with pytest.MonkeyPatch.context() as patch, LLMServer() as running:
        patch.setattr(http_connection, "LARGEST_BODY", 1_000_000)
        running.llm.play([text("Hello there, friend").forever()])
        yield running


def exchange(server: LLMServer, sent: bytes, *, finish: bool = False) -> bytes:
    """Send bytes and return what comes back until the server closes, or 5 seconds pass."""
    with socket.create_connection(server_address(server), timeout=60) as connection:
        connection.sendall(sent)
        if finish:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def last_of(answers: bytes) -> bytes:
    return answers[[found.start() for found in re.finditer(rb"HTTP/1\.1 \d", answers)][-1] :]


def server_address(server: LLMServer) -> tuple[str, int]:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    return host, int(port)


def client(server: LLMServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(*server_address(server), timeout=60)


def left(connection: socket.socket) -> bool:
    """Tell whether the server closed or reset a connection, and close it here too."""
    with connection:
        try:
            return connection.recv(10) == b""
        except ConnectionResetError:
            return True


def closing(request: bytes) -> bytes:
    return request.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n")


def test_one_connection_serves_many_requests(server: LLMServer) -> None:
    connection = client(server)
    for _ in range(3):
        connection.request("POST", OPENAI, BODY)
        response = connection.getresponse()
        assert response.status == 200
        assert json.load(response)["choices"][0]["message"]["content"] == "Hello there, friend"
    connection.close()


def test_pipelined_requests_are_answered_in_order_also_behind_a_stream(server: LLMServer) -> None:
    stream = json.dumps(openai(stream=True)).encode()
    streaming = REQUEST.replace(b"Content-Length: %d" % len(BODY), b"Content-Length: %d" % len(stream))
    received = exchange(server, REQUEST + streaming.replace(BODY, stream) + closing(REQUEST))
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.index(b"content-length") < received.index(b"[DONE]") < received.rindex(b"content-length")


def large(request: bytes) -> bytes:
    said = json.dumps(openai("word " * 60_000)).encode()
    return request.replace(b": %d" % len(BODY), b": %d" % len(said)).replace(BODY, said)


def streaming() -> bytes:
    said = json.dumps(openai(stream=True)).encode()
    return REQUEST.replace(b": %d" % len(BODY), b": %d" % len(said)).replace(BODY, said)


def embedding() -> bytes:
    said = json.dumps({"model": "text-embedding-3-small", "input": ["word " * 30_000] * 3}).encode()
    return b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)


@table_test(
    ("sent", "answers"),
    [
        (REQUEST, 1),
        (large(REQUEST), 1),
        (embedding(), 1),
        (streaming(), 1),
        (large(REQUEST) + REQUEST + streaming() + embedding() + REQUEST, 5),
        (large(REQUEST) + streaming() * 100, 101),
        (large(REQUEST) + REQUEST[:-1], 1),
        (large(REQUEST) + REQUEST.partition(b"\r\n")[0], 1),
    ],
)
def test_a_client_that_says_no_more_and_reads_gets_all_that_it_asked_for(sent: bytes, answers: int) -> None:
    with LLMServer() as server:
        server.llm.play([text("Hello there, friend").forever()])
        received = exchange(server, sent, finish=True)
    assert received.count(b"HTTP/1.1 200 OK") == answers
    assert received.endswith((b"}", b"data: [DONE]\n\n\r\n0\r\n\r\n"))


@pytest.mark.parametrize("fault", [SlowFirstByte(0.2), SlowTokens(0.02)])
def test_a_client_that_says_no_more_waits_for_what_takes_its_time(fault: Fault) -> None:
    with LLMServer() as server:
        server.llm.play(
            [text("Hello there, friend").forever()], faults=[FaultRule(fault=fault, positions=(1, 2))]
        )
        received = exchange(server, streaming() * 2 + REQUEST, finish=True)
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b"data: [DONE]") == 2


def test_silence_ends_when_the_client_says_no_more() -> None:
    with LLMServer() as server:
        server.llm.play([text("Hello.").forever()], faults=[FaultRule(fault=NoAnswerAtAll(), positions=(2,))])
        assert exchange(server, REQUEST * 3, finish=True).count(b"HTTP/1.1 200 OK") == 1
        # Here the silence is begun after the client's last word.
        assert exchange(server, large(REQUEST) + REQUEST, finish=True).count(b"HTTP/1.1 200 OK") == 2
        server.llm.play([text("Hello.").forever()], faults=[FaultRule(fault=NoAnswerAtAll(), positions=(2,))])
        assert exchange(server, large(REQUEST) + REQUEST * 2, finish=True).count(b"HTTP/1.1 200 OK") == 1


def test_what_is_given_to_a_client_that_left_is_let_go_of_long_before_its_end() -> None:
    let_go = threading.Event()

    class Noticed(bytes):
        def __del__(self) -> None:
            let_go.set()

    async def live() -> AsyncGenerator[bytes, None]:
        last = Noticed(b"data: 2\n\n")
        yield b"data: 1\n\n"
        await asyncio.sleep(600)
        yield last

    def frames() -> Iterator[Frame]:
        yield Frame(0, b"data: 1\n\n")
        yield from (Frame(0.05, b"data: 2\n\n") for _ in range(12_000))
        yield Frame(0, Noticed(b"data: 3\n\n"))

    def handler(request: Incoming) -> Streamed | Live:
        return Live(frames=live()) if request.target == "/live" else Streamed(frames=tuple(frames()))

    with RunningServer(handler) as server:
        for target in ("/live", "/frames"):
            with socket.create_connection((server.host, server.port), timeout=60) as connection:
                connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert connection.recv(16) == b"HTTP/1.1 200 OK\r"
                assert not let_go.is_set()
            assert let_go.wait(60)
            let_go.clear()


def test_a_body_may_come_in_chunks_and_in_single_bytes(server: LLMServer) -> None:
    head = (
        b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        % OPENAI.encode()
    )
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"
    assert exchange(server, head + chunks).startswith(b"HTTP/1.1 200 OK")


def test_a_body_keeps_its_tabs_and_what_is_no_coding_stays_refused(server: LLMServer) -> None:
    with LLMServer() as other:
        other.llm.play([text("Hello.")])
        body = BODY.replace(b"{", b"{\t\n\t") + b"\t\n"
        exchange(
            other, closing(REQUEST).replace(b": %d" % len(BODY), b": %d" % len(body)).replace(BODY, body)
        )
        assert other.requests[0].body == body
    for line in (
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding: chunked\tx",
        "Transfer-Encoding: x\tchunked",
    ):
        received = exchange(server, f"POST / HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n0\r\n\r\n".encode())
        assert received.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))


def test_a_client_that_waits_to_be_told_to_go_on_is_told(server: LLMServer) -> None:
    head = REQUEST.partition(b"\r\n\r\n")[0] + b"\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection(server_address(server), timeout=60) as connection:
        connection.sendall(head)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_http_1_0_gets_no_chunks(server: LLMServer) -> None:
    stream = json.dumps(openai(stream=True)).encode()
    head = b"POST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (OPENAI.encode(), len(stream))
    received = exchange(server, head + stream)
    assert b"transfer-encoding" not in received
    assert received.endswith(b"data: [DONE]\n\n")


def test_head_asks_for_no_body(server: LLMServer) -> None:
    connection = client(server)
    connection.request("HEAD", "/v1/models")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    connection.close()


@table_test(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /v1/models HTTP/9.9\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        (b"GET /v1/models HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\nBad\x00Header: x\r\n\r\n", 400),
        (b"GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 501),
        (b"POST / HTTP/2.0\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"POST / HTTP/0.9\r\nHost: x\r\n\r\n", 400),
        (b"GET /v1/models\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000001\r\nExpect: 100-continue\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", (400, 413)),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1000\r\n%s\r\n" % (b"a" * 4096) * 300,
            413,
        ),
    ],
)
def test_what_is_no_request_is_refused_and_closed(
    server: LLMServer, sent: bytes, status: int | tuple[int, ...]
) -> None:
    received = exchange(server, sent)
    head, _, body = last_of(received).partition(b"\r\n\r\n")
    code = int(head.split()[1])
    assert code in (status if isinstance(status, tuple) else (status,)), head
    assert b"connection: close" in head
    assert json.loads(body)["error"]["message"]


@table_test("filling", [b" ", b"\r\n\r\n"])
@table_test("chunked", [False, True])
def test_large_bodies_in_a_row_are_not_taken_for_heads(
    server: LLMServer, filling: bytes, chunked: bool
) -> None:
    body = filling * (9000 // len(filling)) + BODY
    framed = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    if chunked:
        framed = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    request = b"POST %s HTTP/1.1\r\nHost: x\r\n%s" % (OPENAI.encode(), framed)
    assert exchange(server, request * 20 + closing(REQUEST)).count(b"HTTP/1.1 200 OK") == 21


def test_a_body_may_speak_of_other_protocols_and_have_sizes_in_it(server: LLMServer) -> None:
    said = json.dumps(openai(f"POST {OPENAI} RTSP/1.0\r\n7FFFFFFFFFFFFFFF")).encode()
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % OPENAI.encode()
    chunk = b"%x\r\n%s\r\n0\r\nFFFFFF: 1\r\n\r\n" % (len(said), said)
    assert exchange(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk).startswith(b"HTTP/1.1 200")


@table_test(
    ("target", "members"),
    [
        (OPENAI, {"message", "type", "param", "code"}),
        ("/v1/responses", {"message", "type", "param", "code"}),
        ("/v1/embeddings", {"message", "type", "param", "code"}),
        (ANTHROPIC, {"message", "type"}),
        (GEMINI, {"code", "message", "status"}),
    ],
)
@table_test(
    ("rest", "status"),
    [
        ("Content-Length: 1000001\r\n\r\n", 413),
        ("Transfer-Encoding: gzip\r\n\r\n", 400),
        ("Content-Length: 2\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n{}", 415),
    ],
)
def test_a_refusal_has_the_shape_of_the_provider_of_its_path(
    server: LLMServer, target: str, members: set[str], rest: str, status: int
) -> None:
    received = exchange(server, f"POST {target} HTTP/1.1\r\nHost: x\r\n{rest}".encode())
    assert received.startswith(b"HTTP/1.1 %d " % status)
    body = json.loads(received.partition(b"\r\n\r\n")[2])
    assert set(body["error"]) == members
    assert body.get("type") == ("error" if target == ANTHROPIC else None)


@table_test(
    ("method", "target", "allowed"),
    [
        ("GET", OPENAI, "POST"),
        ("PUT", ANTHROPIC, "POST"),
        ("DELETE", GEMINI, "POST"),
        ("GET", "/v1/embeddings", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("POST", "/statek/journal", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    server: LLMServer, method: str, target: str, allowed: str
) -> None:
    connection = client(server)
    connection.request(method, target)
    response = connection.getresponse()
    assert (response.status, response.getheader("allow")) == (405, allowed)
    connection.close()


def test_nothing_is_written_to_a_client_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    with LLMServer() as server:
        server.llm.play([text("Hello there, friend " * 200).forever()])
        said = json.dumps(openai(stream=True)).encode()
        stream = REQUEST.replace(b": %d" % len(BODY), b": %d" % len(said)).replace(BODY, said)
        for _ in range(5):
            with socket.create_connection(server_address(server), timeout=60) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(stream * 50)
        assert exchange(server, closing(REQUEST)).startswith(b"HTTP/1.1 200 OK")
    assert "socket.send() raised exception" not in caplog.text


def test_a_refused_client_can_read_why_while_it_still_sends(server: LLMServer) -> None:
    with socket.create_connection(server_address(server), timeout=60) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000001\r\n\r\n")
        for _ in range(50):
            connection.sendall(b"a" * 1000)
        assert connection.recv(100).startswith(b"HTTP/1.1 413 Request Entity Too Large")


@pytest.mark.parametrize("start", [b"POST / HTTP/1.1\r\nX: ", b"POST /", b"POST / HTTP/1.1\r\n"])
def test_an_endless_head_is_refused(server: LLMServer, start: bytes) -> None:
    with socket.create_connection(server_address(server), timeout=60) as connection:
        connection.sendall(start)
        for _ in range(25):
            connection.sendall(b"A: b\r\n" * 10_000 if start.endswith(b"\n") else b"a" * 60_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 431 Request Header Fields Too Large")


def test_the_server_outlives_whatever_comes(server: LLMServer) -> None:
    chance = random.Random(20)
    for _ in range(150):
        noise = bytearray(REQUEST)
        for _ in range(chance.randint(1, 12)):
            at = chance.randrange(len(noise))
            match chance.randrange(3):
                case 0:
                    noise[at] = chance.randrange(256)
                case 1:
                    del noise[at : at + chance.randint(1, 20)]
                case _:
                    noise[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 40)))
        with socket.create_connection(server_address(server), timeout=60) as connection:
            connection.sendall(noise[: chance.randint(1, len(noise) + 1)])
    assert exchange(server, closing(REQUEST)).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_leaves_in_the_middle_of_a_stream_leaves_nothing_behind() -> None:
    with LLMServer() as server:
        server.llm.play(
            [text("Hello there, friend").forever()], faults=[FaultRule(fault=SlowTokens(0.05), rate=1)]
        )
        stream = json.dumps(openai(stream=True)).encode()
        for _ in range(10):
            with socket.create_connection(server_address(server), timeout=60) as connection:
                connection.sendall(
                    REQUEST.replace(b": %d" % len(BODY), b": %d" % len(stream)).replace(BODY, stream)
                )
                assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
        assert exchange(server, closing(REQUEST)).startswith(b"HTTP/1.1 200 OK")


def test_a_slow_stream_arrives_piece_by_piece() -> None:
    with LLMServer() as server:
        server.llm.play([text("Hello there, friend")], faults=[FaultRule(fault=SlowTokens(0.03), rate=1)])
        connection = client(server)
        connection.request("POST", OPENAI, json.dumps(openai(stream=True)))
        response = connection.getresponse()
        started, pieces = time.monotonic(), 0
        while response.read1(65536):
            pieces += 1
        assert time.monotonic() - started >= 0.03 * 6
        assert pieces >= 4
        connection.close()


def test_a_reset_on_command_is_a_reset_after_the_events_before_it() -> None:
    with LLMServer() as server:
        server.llm.play(
            [text("Hello there, friend").forever()], faults=[FaultRule(fault=Reset(after=2), rate=1)]
        )
        connection = client(server)
        connection.request("POST", OPENAI, json.dumps(openai(stream=True)))
        response = connection.getresponse()
        received: list[bytes] = []
        with pytest.raises(ConnectionResetError):
            received.extend(iter(lambda: response.read1(65536), b""))
        assert b"".join(received).count(b"data: ") == 2
        connection.close()


def test_an_answer_in_one_piece_is_reset_before_its_first_byte() -> None:
    with LLMServer() as server:
        server.llm.play([text("Hello.")], faults=[FaultRule(fault=Reset(), positions=(1,))])
        connection = client(server)
        connection.request("POST", OPENAI, BODY)
        with pytest.raises(ConnectionResetError):
            connection.getresponse()
        connection.close()


def test_silence_lasts_until_the_client_gives_up() -> None:
    with LLMServer() as server:
        server.script([timeout()])
        connection = http.client.HTTPConnection(*server_address(server), timeout=0.2)
        connection.request("POST", OPENAI, BODY)
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        server.check_finished()


def test_stopping_frees_the_port_and_the_thread_also_while_a_client_waits() -> None:
    server = LLMServer()
    server.start()
    server.script([timeout()])
    address = server_address(server)
    waiting = socket.create_connection(address, timeout=60)
    waiting.sendall(REQUEST)
    deadline = time.monotonic() + 60
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.01)
    server.stop()
    server.stop()
    assert left(waiting)
    assert f"statek-llm-server-{address[1]}" not in [thread.name for thread in threading.enumerate()]
    with LLMServer(port=address[1]) as again:
        assert server_address(again) == address


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    server = LLMServer()
    address = server_address(server)
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=60)


def test_two_servers_have_ports_and_scripts_of_their_own() -> None:
    with LLMServer() as one, LLMServer() as other:
        one.llm.play([text("one")])
        other.llm.play([text("other")])
        assert one.url != other.url
        assert b'"content":"other"' in exchange(other, closing(REQUEST))
        assert b'"content":"one"' in exchange(one, closing(REQUEST))


@table_test("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", ""])
def test_only_the_loopback_is_listened_on_unless_told_otherwise(host: str) -> None:
    with pytest.raises(BadInput, match=rf"^'{host}' is not a loopback address; .*$"):
        listen(host)


def test_other_machines_may_come_in_when_that_is_said() -> None:
    listening = listen("0.0.0.0", anywhere=True)
    assert listening.getsockname()[0] == "0.0.0.0"
    listening.close()


def test_a_port_that_is_taken_is_bad_input() -> None:
    with LLMServer() as server:
        host, port = server_address(server)
        with pytest.raises(BadInput, match=rf"^cannot listen on {host}:{port}: Address already in use$"):
            LLMServer(port=port)


def test_a_handler_that_breaks_is_the_servers_fault_and_not_the_requests() -> None:
    def broken(request: Incoming) -> Answer:
        raise KeyError(request.target)

    with RunningServer(broken) as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        connection.request("GET", "/v1/models")
        response = connection.getresponse()
        message = "the server failed: KeyError: '/v1/models'"
        said = {"message": message, "type": "server_error", "param": None, "code": None}
        assert (response.status, json.load(response)["error"]) == (500, said)
        connection.request("POST", ANTHROPIC)
        response = connection.getresponse()
        message = f"the server failed: KeyError: '{ANTHROPIC}'"
        assert json.load(response)["error"] == {"type": "api_error", "message": message}
        connection.close()


def test_an_answer_that_breaks_while_it_is_made_keeps_no_client_waiting() -> None:
    async def frames() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n"
        raise KeyError("frame")

    def broken(request: Incoming) -> Live:
        return Live(frames=frames())

    with RunningServer(broken) as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        connection.request("GET", "/live")
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            connection.getresponse().read()
        connection.close()


def test_the_role_of_what_tools_answered_has_two_names_at_gemini() -> None:
    def messages(role: str) -> object:
        part: JSON = {"functionResponse": {"name": "look", "response": {"content": "seen"}}}
        body: JSON = {"contents": [{"parts": [{"text": "x"}]}, {"role": role, "parts": [part]}]}
        return gemini.read_request(body, "/v1beta/models/g:generateContent").messages

    assert messages("tool") == messages("function") == messages("user")
    with pytest.raises(
        BadRequest, match=r"role: expected 'user', 'model', 'function' or 'tool', got 'system'$"
    ):
        messages("system")
