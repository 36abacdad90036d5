"""Scrubbing: what is found in one place of an exchange is taken out of all of them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from urllib.parse import quote, unquote

import pytest

from statek_sim.cassettes.bodies import Undecodable
from statek_sim.cassettes.exchange import Headers
from statek_sim.cassettes.scrub import scrubbed
from tests.property.planted import exchange


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ((("x-debug", "Bearer Opaque-4f9Qm2Zr8"),), "Opaque-4f9Qm2Zr8"),
        ((("x-note", "password=hunter22x"),), "hunter22x"),
        ((("referer", "https://h.test/?access_token=4f9Qm2Zr8T"),), "4f9Qm2Zr8T"),
        ((("x-from", "https://me:hunter22x@h.test/"),), "hunter22x"),
    ],
)
def test_what_a_header_of_any_name_holds_is_found_again_in_the_bodies(headers: Headers, key: str) -> None:
    sent = scrubbed(exchange(f'{{"note": "it was {key}"}}', f'{{"echo": "{key}"}}', headers=headers))
    came = scrubbed(exchange("{}", f'{{"echo": "{key}"}}', answer=headers))
    assert key not in repr(sent)
    assert key not in repr(came)


@pytest.mark.parametrize("name", ["x-auth", "auth", "x-app-auth"])
def test_a_header_of_a_vague_name_holds_a_secret_if_it_looks_random(name: str) -> None:
    key = "0127dee76fa82ef148e5c3dd50e08b4b"
    clean = scrubbed(exchange("{}", f'{{"echo": "{key}"}}', headers=((name, key),), answer=((name, key),)))
    assert key not in repr(clean)
    assert "token-auth" in repr(scrubbed(exchange("{}", headers=((name, "token-auth"),))))


@pytest.mark.parametrize("password", ["x1b2", "WkNa8R60", "p%40ss4f9Qm2"])
def test_the_login_of_an_address_is_found_in_base64(password: str) -> None:
    sent = encoded(f"me:{unquote(password)}")
    one = exchange("{}", f'{{"echo": "Basic {sent}"}}')
    clean = scrubbed(replace(one, request=replace(one.request, uri=f"https://me:{password}@h.test/")))
    assert sent not in repr(clean)


def test_a_key_that_is_the_name_of_a_login_is_found_again() -> None:
    sent = b64encode(b"rk-hunter22x:").decode()
    one = exchange("{}", '{"echo": "it: rk-hunter22x"}', headers=(("authorization", f"Basic {sent}"),))
    assert "hunter22x" not in repr(scrubbed(one))


def test_a_password_may_be_an_address_and_the_host_stays() -> None:
    one = exchange("{}")
    password = quote("https://h.test/c?sv=1&sig=4f9Qm2Zr8T4f9Qm2Zr8T4f9Qm2Zr8T4f9Qm2Zr8T", safe="")
    uri = f"https://me:{password}@h.test/v1?api_key=4f9Qm2Zr8T"
    clean = scrubbed(replace(one, request=replace(one.request, uri=uri)))
    assert clean.request.uri == "https://me:REDACTED@h.test/v1?api_key=REDACTED"


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "nonsense", "utf-8"])
@pytest.mark.parametrize("mark", [b"", b"\xff\xfe", b"\xfe\xff"])
def test_a_body_in_ascii_is_read_as_that_whatever_it_says_that_it_is(charset: str, mark: bytes) -> None:
    one = exchange("{}", said_kind=f"application/json; charset={charset}")
    for body in (b'{"password": "hunter22secret"}', b'{"password": "hunter22secret" }'):
        clean = scrubbed(replace(one, response=replace(one.response, body=mark + body)))
        assert b"hunter" not in clean.response.body
        assert clean.response.body.startswith(mark)


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("cookie", "sid=h%40unter%2F22", "h@unter/22"),
        ("x-api-key", "h%2540unter22x", "h@unter22x"),
        ("location", "https://me:h%2Funter22@h.test/", "h/unter22"),
    ],
)
def test_a_secret_that_was_percent_encoded_is_found_as_it_is_read(name: str, value: str, plain: str) -> None:
    clean = scrubbed(exchange("{}", f'{{"echo": "{plain}"}}', headers=((name, value),)))
    assert plain not in clean.response.body.decode()


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\xfd "])
def test_a_key_among_bytes_that_could_be_utf_16_is_not_recorded(mark: bytes) -> None:
    key = "secret_OMs6I89qgVdogoxp4fzK2G5CqMfXMmByKzMFkzorjsF"
    one = exchange("{}")
    for tail in (b" \xff", b"  \xff"):
        body = mark + b"\x85 " + key.encode() + tail
        with pytest.raises(
            Undecodable, match=r"reads as utf-16-.., and has a secret in its bytes|is no text"
        ):
            scrubbed(replace(one, response=replace(one.response, body=body)))
        echoed = exchange("{}", headers=(("x-api-key", "hunter22x-hunter"),))
        body = mark + b"\x85 hunter22x-hunter" + tail
        with pytest.raises(Undecodable):
            scrubbed(replace(echoed, response=replace(echoed.response, body=body)))
    kept = mark[:2] + "密码不在这里".encode("utf-16-le" if mark[0] == 255 else "utf-16-be")
    assert scrubbed(replace(one, response=replace(one.response, body=kept))).response.body == kept


def encoded(text: str) -> str:
    """Return a text as Base64."""
    return b64encode(text.encode()).decode()


KEY = "sk-proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
PEMS = "".join(
    f"-----BEGIN {kind}-----\n{kind}4f9Qm2\n-----END {kind}----- x " for kind in ("PRIVATE KEY",) * 3
)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (PEMS.replace("\n", ""), "4f9Qm2"),
        (PEMS.replace("\n", "").replace(" x ", ""), "4f9Qm2"),
        (PEMS, "4f9Qm2"),
        (
            encoded(f"a family: \U0001f469\u200d\U0001f467 {KEY}"),
            encoded(f"a family: \U0001f469\u200d\U0001f467 {KEY}"),
        ),
        (encoded(f"no\u00a0break {KEY} soft\u00adhyphen"), encoded(f"no\u00a0break {KEY} soft\u00adhyphen")),
        (encoded(f"\x1b[32m{KEY}\x1b[0m"), encoded(f"\x1b[32m{KEY}\x1b[0m")),
        (f"\x1b[32m{KEY}\x1b[0m", KEY[8:]),
        (f"\x1b[1;38;5;208m{KEY}", KEY[8:]),
        (f"said \x1b[1m{KEY[:14]}\x1b[31m{KEY[14:]}\x1b[0m", KEY[18:]),
        (
            b64encode(f"it is {KEY}".encode("utf-16-le")).decode(),
            b64encode(f"it is {KEY}".encode("utf-16-le")).decode(),
        ),
        ("https://sk4f9Qm2:@h.test/", "4f9Qm2"),
        ("https://Ab4f9Qm2c@h.test/", "4f9Qm2"),
    ],
)
def test_a_secret_is_seen_however_it_is_set_and_whatever_stands_beside_it(text: str, secret: str) -> None:
    clean = scrubbed(exchange("{}", json.dumps({"text": text})))
    assert secret not in clean.response.body.decode()
    assert secret not in scrubbed(exchange("", text, said_kind="text/plain")).response.body.decode()


@pytest.mark.parametrize(
    "address", ["postgres://postgres:@localhost/db", "ssh://git@h.test/a", "http://me@h.test"]
)
def test_the_name_of_a_login_is_no_secret(address: str) -> None:
    assert address in scrubbed(exchange("", address, said_kind="text/plain")).response.body.decode()


def scores(text: str, size: int) -> list[dict[str, object]]:
    """Return the log probabilities of a text's pieces, as OpenAI has them."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [
        {"token": piece, "bytes": [*piece.encode()], "logprob": -0.1, "top_logprobs": [
            {"token": "other", "bytes": [*b"other"], "logprob": -3.0},
            {"token": piece, "bytes": [*piece.encode()], "logprob": -0.1},
        ]}
        for piece in pieces
    ]  # fmt: skip


@pytest.mark.parametrize("text", [f"it is {KEY}, so", "the password: hunter22x and more"])
@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_secret_in_a_reply_is_not_in_its_log_probabilities(text: str, size: int, is_stream: bool) -> None:
    entries = scores(text, size)
    parts = [[entry] for entry in entries] if is_stream else [entries]
    bodies = [json.dumps({"choices": [{"logprobs": {"content": part}, "delta": {}}]}) for part in parts]
    said = "".join(f"data: {body}\n\n" for body in bodies) if is_stream else bodies[0]
    clean = scrubbed(exchange("{}", said, said_kind="text/event-stream" if is_stream else "application/json"))
    kept = [
        json.loads(line.removeprefix("data: ")) for line in clean.response.body.decode().splitlines() if line
    ]
    rows = [row for body in kept for row in body["choices"][0]["logprobs"]["content"]]
    for row in (rows, [row["top_logprobs"][1] for row in rows]):
        for seen in (
            "".join(each["token"] for each in row),
            bytes(n for each in row for n in each["bytes"]).decode(),
        ):
            assert KEY[10:20] not in seen
            assert "hunter" not in seen
    assert [len(row["bytes"]) for row in rows] == [len(str(entry["token"])) for entry in entries]


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("size", [1, 5, 16])
def test_a_secret_is_not_in_the_log_probabilities_of_completions(tokens: bool, size: int) -> None:
    text = f"it is {KEY}"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    said: dict[str, object] = {"top_logprobs": [{piece: -0.1, f"{piece}?": -3.0} for piece in pieces]}
    if tokens:
        said |= {"tokens": pieces, "token_logprobs": [-0.1] * len(pieces)}
    clean = scrubbed(exchange("{}", json.dumps({"choices": [{"text": text, "logprobs": said}]})))
    kept = json.loads(clean.response.body)["choices"][0]["logprobs"]
    for row in (kept.get("tokens", ()), ["".join(each) for each in kept["top_logprobs"]]):
        assert KEY[10:20] not in "".join(row).replace("?", "")


@pytest.mark.parametrize(
    "text", ['{"password": "hunter"}', '{"access_token": "c2503cd1-f8e4-5be2"}', 'pwd="EVXWM2"']
)
def test_events_of_one_character_each_may_hold_a_document(text: str) -> None:
    said = "".join(f"data: {letter}\n\n" for letter in text)
    clean = scrubbed(exchange("{}", said, said_kind="text/event-stream")).response.body.decode()
    kept = "".join(line.removeprefix("data: ") for line in clean.splitlines() if line)
    assert text.rpartition('"')[0].rpartition('"')[2] not in kept
    assert "REDACTED" in kept


@pytest.mark.parametrize("city", ["Oslo", "\U0001f600"])
def test_a_stream_that_is_a_member_of_a_document_is_put_together(city: str) -> None:
    text = json.dumps({"city": city, "password": "hunter22secret"}, ensure_ascii=False)
    events = [json.dumps({"choices": [{"delta": {"content": letter}}]}) for letter in text]
    for said in ("".join(f"data: {event}\n\n" for event in events), "\n".join(events)):
        clean = scrubbed(exchange(json.dumps({"x": said}))).request.body.decode()
        pieces = re.findall(r'content\\": \\"(.*?)\\"\}', clean)
        assert "hunter" not in "".join(pieces)
        assert "REDACTED" in "".join(pieces)
