"""Scrubbing: what is found in one place of an exchange is taken out of all of them."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

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
