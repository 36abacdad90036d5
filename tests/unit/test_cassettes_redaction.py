"""The rule of redaction: known values, names and published shapes are replaced; look-alikes are not touched."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_uppercase, digits, hexdigits
from typing import Final
from urllib.parse import quote

import pytest

from statek_sim.cassettes.exchange import Exchange, Headers, Request, Response
from statek_sim.cassettes.redaction import redacted
from statek_sim.cassettes.secret_detection import Sought, in_body, known_in, replaced
from statek_sim.cassettes.secret_patterns import shapes
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.errors import CassetteMiss
from statek_sim.values import JSON
from tests.tables import table_test

JSON_TYPE: Final = "application/json"
STREAM: Final = "text/event-stream"
FORM: Final = "application/x-www-form-urlencoded"
URI: Final = "https://api.test/v1/chat/completions"


def exchange(
    sent: str = "", said: str = "", *, kind: str = JSON_TYPE, uri: str = URI, headers: Headers = ()
) -> Exchange:
    """Return a request and an answer with these bodies, both of the same media type."""
    typed = ("content-type", kind)
    return Exchange(
        request=Request(method="POST", uri=uri, headers=(typed, *headers), body=sent.encode()),
        response=Response(status=200, headers=(typed,), body=said.encode()),
    )


def drawn(random: Random, letters: str, size: int) -> str:
    return "".join(random.choices(letters, k=size))


def text_of(one: Exchange) -> str:
    """Return all that would be written of an exchange."""
    request, response = one.request, one.response
    headers = "\n".join(f"{name}: {value}" for name, value in (*request.headers, *response.headers))
    return "\n".join((request.uri, headers, request.body.decode(), response.reason, response.body.decode()))


# -- (a) known values ----------------------------------------------------------------------------------------------

ENCODINGS: Final[dict[str, Callable[[str], str]]] = {
    "plain": lambda secret: f"it is {secret}, yes",
    "in a string of JSON": lambda secret: json.dumps({"say": f"it is {secret}!"}),
    "in a string of JSON, not in ASCII": lambda secret: json.dumps({"ż": secret}, ensure_ascii=False),
    "in JSON in a string": lambda secret: json.dumps({"arguments": json.dumps({"note": secret})}),
    "in an address": lambda secret: json.dumps({"next": f"https://h.test/?q={quote(secret, safe='')}"}),
    "in Base64": lambda secret: json.dumps({"header": f"Basic {b64encode(secret.encode()).decode()}"}),
    "a name": lambda secret: json.dumps({secret: 1}),
}


@table_test("place", ENCODINGS)
@table_test("source", ["environment", "authorization", "api key", "parameter", "login", "cookie"])
def test_a_known_value_is_in_no_encoding_that_occurs(place: str, source: str) -> None:
    for number in range(20):
        random = Random(f"{place} {source} {number}")
        # What a cookie or a parameter cannot hold is in a variable only.
        signs = ascii_letters + digits + ('/+"\\ żñ' if source == "environment" else "")
        secret = f"a{drawn(random, signs, random.randrange(8, 40))}1"
        body = ENCODINGS[place](secret)
        headers: dict[str, Headers] = {
            "authorization": (("Authorization", f"Bearer {secret}"),),
            "api key": (("x-api-key", secret),),
            "cookie": (("cookie", f"theme=x; session={secret}"),),
        }
        uri = {"parameter": f"{URI}?key={secret}", "login": f"https://me:{secret}@api.test/"}.get(source, URI)
        kind = "text/plain" if place == "plain" else JSON_TYPE
        known = known_in({"MY_SERVICE_TOKEN": secret, "HOME": "/root"}) if source == "environment" else ()
        clean = redacted(
            exchange(body, body, kind=kind, uri=uri, headers=headers.get(source, ())), known=known
        )
        text = text_of(clean)
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
        assert quote(secret, safe="") not in text
        assert b64encode(secret.encode()).decode().rstrip("=") not in text
        assert redacted(clean, known=known) == clean


def test_the_password_of_a_basic_login_is_known() -> None:
    login = b64encode(b"me:hunter22x").decode()
    one = exchange("{}", '{"echo": "hunter22x"}', headers=(("Authorization", f"Basic {login}"),))
    assert "hunter22x" not in text_of(redacted(one))


@table_test("value", ["openai", "not-needed", "12345", "true", "assistant", "none", "<key>"])
def test_an_ordinary_word_as_a_key_is_looked_for_nowhere(value: str) -> None:
    body = json.dumps({"role": value})
    assert redacted(exchange(body, body), known=known_in({"OPENAI_API_KEY": value})) == exchange(body, body)


def test_the_working_directory_is_no_secret() -> None:
    assert known_in({"PWD": "/work/project", "OLDPWD": "/work/other", "DB_PASS": "plumtree9"}) == (
        "plumtree9",
    )


# -- (b) names -----------------------------------------------------------------------------------------------------

NAMES: Final = (
    "password", "api_key", "apiKey", "API-KEY", "db_password", "openaiApiKey", "client_secret", "access_token",
    "refreshToken", "token", "authorization", "private_key", "passphrase", "jwt", "user[password]", "auth.token",
    "aws_secret_access_key", "password2", "signing_key", "subscription-key", "pwd", "secret", "SMTP_PASS",
)  # fmt: skip


@table_test("name", NAMES)
def test_what_has_the_name_of_a_secret_is_replaced_whatever_it_looks_like(name: str) -> None:
    secret = "plum tree"
    bodies = [
        (json.dumps({"a": [{name: secret, "b": 1.5}]}), JSON_TYPE),
        (json.dumps({name: [secret, secret]}, indent=1), JSON_TYPE),
        (f"a=1&{quote(name)}={quote(secret)}&b=2", FORM),
        (
            f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{secret}\r\n--B\r\n'
            'Content-Disposition: form-data; name="city"\r\n\r\nOslo\r\n--B--\r\n',
            "multipart/form-data; boundary=B",
        ),
    ]
    for body, kind in bodies:
        clean = redacted(exchange(body, kind=kind))
        assert b"plum" not in clean.request.body
        assert redacted(clean) == clean
    uri = redacted(exchange(uri=f"{URI}?page=2&{quote(name)}=plum")).request.uri
    assert uri == f"{URI}?page=2&{quote(name)}=REDACTED"


@table_test(
    ("name", "value", "plain"),
    [
        ("Authorization", "Bearer x", "REDACTED"),
        ("x-goog-api-key", "plum", "REDACTED"),
        ("X-Vault-Token", "plum", "REDACTED"),
        ("Proxy-Authorization", "Basic eDp5", "REDACTED"),
        ("x-auth", "plum", "REDACTED"),
        ("x-functions-key", "plum", "REDACTED"),
        ("sec-websocket-key", "plum", "plum"),
        ("Cookie", "a=1; sid=x=y", "a=REDACTED; sid=REDACTED"),
        ("Set-Cookie", "sid=x; Domain=api.test; Path=/; HttpOnly", "sid=REDACTED; Domain=api.test; Path=/; HttpOnly"),
        ("x-ratelimit-limit-tokens", "150000", "150000"),
        ("anthropic-version", "2023-06-01", "2023-06-01"),
        ("location", "https://h.test/?api_key=plum&a=1", "https://h.test/?api_key=REDACTED&a=1"),
    ],
)  # fmt: skip
def test_headers_are_replaced_by_their_names(name: str, value: str, plain: str) -> None:
    assert redacted(exchange(headers=((name, value),))).request.headers[1] == (name, plain)


@table_test(
    ("uri", "plain"),
    [
        ("https://me:plum@h.test/a?b=1", "https://me:REDACTED@h.test/a?b=1"),
        ("https://KEY99999:@h.test/", "https://REDACTED:@h.test/"),
        ("https://h.test/?key=plum&alt=sse", "https://h.test/?key=REDACTED&alt=sse"),
        ("https://h.test/#access_token=plum", "https://h.test/#access_token=REDACTED"),
        ("https://h.test/?X-Amz-Signature=plum", "https://h.test/?X-Amz-Signature=REDACTED"),
        (
            "https://git@h.test/?max_tokens=5&pageToken=plum",
            "https://git@h.test/?max_tokens=5&pageToken=plum",
        ),
    ],
)
def test_addresses_lose_their_secrets_only(uri: str, plain: str) -> None:
    assert redacted(exchange(uri=uri)).request.uri == plain


def test_the_names_and_domains_of_a_set_cookie_are_not_learned() -> None:
    one = exchange("{}", '{"see": "https://api.test/"}')
    response = Response(
        status=200, headers=(("set-cookie", "sid=x1y2z3x1; Domain=api.test"),), body=one.response.body
    )
    assert redacted(Exchange(request=one.request, response=response)).response.body == one.response.body


# -- (c) shapes ----------------------------------------------------------------------------------------------------

KEYS: Final[dict[str, Callable[[Random], str]]] = {
    "openai": lambda random: f"sk-proj-{drawn(random, ascii_letters + digits, 60)}",
    "anthropic": lambda random: f"sk-ant-api03-{drawn(random, ascii_letters + digits + '-_', 92)}A",
    "google": lambda random: f"AIza{drawn(random, ascii_letters + digits, 35)}",
    "aws": lambda random: f"AKIA{drawn(random, ascii_uppercase + digits, 16)}",
    "github": lambda random: f"ghp_{drawn(random, ascii_letters + digits, 36)}",
    "github, fine": lambda random: f"github_pat_{drawn(random, ascii_letters + digits, 82)}",
    "hugging face": lambda random: f"hf_{drawn(random, ascii_letters, 34)}",
    "groq": lambda random: f"gsk_{drawn(random, ascii_letters + digits, 52)}",
    "slack": lambda random: f"xoxb-{drawn(random, digits, 12)}-{drawn(random, ascii_letters, 24)}",
    "stripe": lambda random: f"sk_live_{drawn(random, ascii_letters + digits, 24)}",
    "gitlab": lambda random: f"glpat-{drawn(random, ascii_letters + digits, 20)}",
    "npm": lambda random: f"npm_{drawn(random, ascii_letters + digits, 36)}",
    "databricks": lambda random: f"dapi{drawn(random, hexdigits.lower(), 32)}",
    "web token": lambda random: ".".join(
        ("eyJhbGciOiJIUzI1NiJ9", f"eyJ{drawn(random, ascii_letters, 40)}", drawn(random, ascii_letters, 43))
    ),
}

SURROUNDINGS: Final[dict[str, Callable[[str], tuple[str, str]]]] = {
    "a text": lambda key: (f"use {key}.", "text/plain"),
    "lines": lambda key: (json.dumps({"out": f"one\n{key}\ntwo"}), JSON_TYPE),
    "a value": lambda key: (json.dumps({"note": key}), JSON_TYPE),
    "arguments": lambda key: (json.dumps({"arguments": json.dumps({"x": f"\t{key}"})}), JSON_TYPE),
    "code": lambda key: (json.dumps({"code": f"client = Client('{key}')"}), JSON_TYPE),
    "a setting": lambda key: (f"OPENAI_API_KEY={key}\n", "text/plain"),
    "percent signs": lambda key: (f"a=%22{key}%22", FORM),
    "a path": lambda key: (json.dumps({"url": f"https://h.test/v1/{key}/send"}), JSON_TYPE),
}


@table_test("key", KEYS)
@table_test("place", SURROUNDINGS)
def test_a_published_shape_is_found_wherever_it_stands(key: str, place: str) -> None:
    for number in range(20):
        secret = KEYS[key](Random(f"{key} {place} {number}"))
        body, kind = SURROUNDINGS[place](secret)
        clean = redacted(exchange(body, body, kind=kind))
        assert secret not in text_of(clean)
        assert text_of(clean).count("REDACTED") == 2
        assert redacted(clean) == clean


PEM: Final = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA" + "a1B2" * 12 + "\n-----END RSA PRIVATE KEY-----"
)


@table_test("text", [PEM, PEM.replace("\n", "\\n"), PEM.replace("\n", "\r\n"), PEM[:90]])
def test_a_private_key_is_replaced_with_all_its_lines(text: str) -> None:
    for body in (json.dumps({"note": f"it is {text} "}), f"it is {text} "):
        clean = replaced(body, in_body(body))
        assert "MIIE" not in clean
        assert "it is REDACTED" in clean


def test_every_shape_begins_with_a_fixed_prefix() -> None:
    starts = [start for shape in shapes() for start in shape.starts]
    assert [start for start in starts if len(start) < 2 or not start.lstrip("-")[0].isalnum()] == []


# -- streams -------------------------------------------------------------------------------------------------------

STREAMS: Final[dict[str, Callable[[str], JSON]]] = {
    "chat": lambda piece: {"choices": [{"index": 0, "delta": {"content": piece}}]},
    "a tool's arguments": lambda piece: {
        "choices": [{"delta": {"tool_calls": [{"index": 1, "function": {"arguments": piece}}]}}]
    },
    "messages": lambda piece: {
        "type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece},
    },
    "responses": lambda piece: {"type": "response.output_text.delta", "item_id": "a", "delta": piece},
    "gemini": lambda piece: {"candidates": [{"content": {"parts": [{"text": piece}]}, "index": 0}]},
}  # fmt: skip
WRITTEN: Final[dict[str, Callable[[list[str]], str]]] = {
    "events": lambda events: "".join(f"event: x\r\ndata: {event}\r\n\r\n" for event in events),
    "lines": "\n".join,
    "a list": lambda events: f"[{', '.join(events)}]",
}


@table_test("how", STREAMS)
@table_test("written", WRITTEN)
@table_test("size", [1, 3, 17])
def test_the_pieces_of_a_stream_are_put_together_first(how: str, written: str, size: int) -> None:
    for secret in (KEYS["openai"](Random(size)), "known-4f9Qm2Zr8T"):
        text = f"it is {secret}, and more"
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        body = WRITTEN[written]([json.dumps(STREAMS[how](piece)) for piece in pieces])
        clean = replaced(body, in_body(body, Sought(("known-4f9Qm2Zr8T",)), STREAM))
        left = WRITTEN[written]([json.dumps(STREAMS[how]("~"))]).strip("[]")
        between = left[left.index("~") + 1 : left.index("~") + 2]
        assert between == '"'
        joined = "".join(_pieces(clean, how))
        assert joined == "it is REDACTED, and more"


def _pieces(body: str, how: str) -> list[str]:
    """Return the texts of a stream's events, in order."""
    key = {"chat": "content", "a tool's arguments": "arguments", "responses": "delta"}.get(how, "text")
    marker = f'"{key}": "'
    return [json.loads(f'"{part.partition(chr(34))[0]}"') for part in body.split(marker)[1:]]


def test_events_that_are_no_json_are_put_together() -> None:
    body = "".join(f"data: {letter}\n\n" for letter in f"x {KEYS['github'](Random(1))} y")
    clean = replaced(body, in_body(body, media_type=STREAM))
    assert "".join(line[6:] for line in clean.split("\n")) == "x REDACTED y"


# -- look-alikes ---------------------------------------------------------------------------------------------------

IMAGE: Final = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4" * 4
KEY: Final = KEYS["google"](Random(7))
BLOB: Final = f"{IMAGE}/{KEY}/{IMAGE}"
LINE: Final = f"{'iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4' * 2}"[:75] + "/"
LOOK_ALIKE: Final = f"EAAA{'4f9Qm2Zr8TtYw1Lk7Xc3' * 4}"[:76]
"""A line of Base64 as MIME has it, that has the shape of a token of Square's."""

TEXTS: Final = (
    "print(f'token={token!r}')",
    "let token=await getToken()",
    "this.password=e.password",
    '"X-Api-Key: $(cat f)"',
    "print({api_key[:4]})",
    "token-bucket-rate-limiter-1.2.3.tgz",
    "curl -u me:hunter2 -H 'X-Api-Key: plum' https://h.test",
    "mysql -ppw -u root",
    "export API_KEY=plum",
    "password: hunter2",
    "The secret: there is none. Press any key to go on. The password is wrong.",
    "def login(password: str, token: Token | None = None) -> bool: ...",
    "client = OpenAI(api_key=os.environ['OPENAI_API_KEY'])",
    'client = OpenAI(api_key="YOUR_KEY_HERE")',
    "| user | password |\n|---|---|\n| me | plum99 |",
    "name,password\nme,plum99",
    'variable "db_password" {\n  default = "plum99"\n}',
    "<password>plum</password>",
    "postgres://me:plum99@h.test/db is the form of an address",
    "Authorization: Bearer <token>",
    "'Authorization: Basic ' is what the header begins with",
    "sk-learn-feature-selection-2024-01-15-release",
    "sk-estimator-id-12 and sk-toggleable__label-arrow",
    "risk-based-task-1-of-the-disk",
    "task-0123456789abcdefghijk",
    "pip install hf_transfer==0.1.9",
    "git checkout release/ghp_migration",
    "AKIA is how such ids begin",
    "eyJ is how Base64 of an object begins",
    "-----BEGIN PRIVATE KEY----- is the first line of one",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "9f86d081884c7d659a2feaa0c55ad015",
    "123e4567-e89b-12d3-a456-426614174000",
    "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12",
    "toolu_01A09q90qw90lq917835lq9",
    "https://h.test/a?page=2#token-types",
    "secret_santa_2024_gift_exchange_rules",
    "key-value-store-benchmark-2024",
    "xoxo-hugs-and-kisses",
    BLOB,
    f"data:image/png;base64,{BLOB}",
    f"{KEY}{IMAGE}",
    *(f"{LINE}{end}{LOOK_ALIKE}{end}{LINE}{end}iVBORw0=" for end in ("\n", "\r\n")),
    f"{LOOK_ALIKE}\n{LINE}",
    f"{LINE}\nAb+1/{LOOK_ALIKE[:-5]}",
)
VALUES: Final[tuple[JSON, ...]] = (
    {"input_cost_per_audio_token": 1.25e-07, "token": 50, "password": 71828182, "total_tokens": 5},
    {
        "max_tokens": 100,
        "stop_token": "<|end|>",
        "eos_token": "</s>",
        "pad_token": "[PAD]",
        "tokens": ["a", "b"],
    },
    {"next_page_token": "CAUQAA1b2c3d4e5f6g7h", "continuationToken": "x1y2z3x1y2z3x1y2z3"},
    {"properties": {"api_key": {"type": "string", "enum": ["primary", "secondary"], "default": "primary"}}},
    {"required": ["password", "api_key"], "name": "api_key", "in": "header"},
    {"properties": {"password": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Password"}}},
    {"type": "thinking", "signature": f"EqQBCgIYAhIk/{KEY}/QxMjM0NTY3ODkw", "password": None},
    {"thoughtSignature": KEY, "thought_signature": [KEY]},
    {"encrypted_content": KEY, "summary": []},
    {"type": "image", "source": {"media_type": "image/png", "data": BLOB}},
    {"inlineData": {"mimeType": "image/jpeg", "data": BLOB}},
    {"b64_json": KEY},
    {
        "logprobs": {
            "content": [{"token": " P", "logprob": -1, "top_logprobs": [{"token": "L", "logprob": -2}]}]
        }
    },
    {"logprobsResult": {"chosenCandidates": [{"token": "sk", "tokenId": 5, "logProbability": -0.1}]}},
    {"candidates": [{"token": "The", "tokenId": 5, "logProbability": -0.1}], "avgLogprobs": -0.5},
    {"tokens": [{"token": "Hello", "bytes": [72]}], "token_type": "bearer", "tokenizer": "cl100k_base"},
    {
        "idempotency_key": "stainless-python-retry-0b5c",
        "prompt_cache_key": "user-1234567890abcdef",
        "key": "a",
    },
    {"arguments": json.dumps({"query": "how do I reset my password?", "token": "plum"})},
    {"secret": True, "password": "", "api_key": None, "cookies": {}},
    {"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "keys": ["a", "b"], "foreign_key": "user_id"},
)


@table_test("text", TEXTS)
def test_a_text_that_only_looks_like_a_secret_stays(text: str) -> None:
    for body, kind in (
        (text, "text/plain"),
        (json.dumps({"content": text}), JSON_TYPE),
        (f'data: "{text}"', STREAM),
    ):
        one = exchange(body, body, kind=kind)
        assert redacted(one) == one


def test_tokens_on_lines_of_the_same_length_are_no_base64() -> None:
    tokens = f"{LOOK_ALIKE}\n{LOOK_ALIKE[:-1]}z\n{'9f86d081884c7d659a2f' * 4}"[:230]
    one = exchange(tokens, tokens, kind="text/plain")
    assert redacted(one).response.body.count(b"REDACTED") == 2


@table_test("value", VALUES)
def test_a_document_that_only_looks_like_it_holds_secrets_stays(value: JSON) -> None:
    line = json.dumps(value)
    for body in (line, json.dumps(value, indent=2), f"data: {line}\n\ndata: {line}\n\n"):
        one = exchange(body, body, kind=JSON_TYPE if body[0] == "{" else STREAM)
        assert redacted(one) == one


def test_there_are_sixty_look_alikes() -> None:
    assert len(TEXTS) + len(VALUES) >= 60


# -- a redacted place matches any value, and only there ------------------------------------------------------------


def recorded(folder: Path, one: Exchange, environment: dict[str, str] | None = None) -> Path:
    """Record an exchange, with these environment variables."""
    path = folder / "it.yaml"
    session = CassetteSession(path, RecordMode.ONCE, environment=environment or {})
    session.record(one.request, one.response)
    session.close()
    return path


def test_a_redacted_place_matches_any_value(tmp_path: Path) -> None:
    body = json.dumps({"prompt": "use plumtree99 now", "n": 1})
    path = recorded(tmp_path, exchange(body, "{}"), {"MY_TOKEN": "plumtree99"})
    assert "plumtree" not in path.read_text("utf-8")
    asked = exchange(body.replace("plumtree99", "another-key-1234")).request
    session = CassetteSession(path, RecordMode.NONE)
    assert session.can_play(asked)
    assert session.play(asked) is not None
    assert session.unplayed() == []


@pytest.mark.parametrize(
    "prompt",
    [
        "use plumtree99 later",
        "use no key at all now",
        "now use plumtree99",
        "use plumtree99 now!",
        "plumtree99",
    ],
)
def test_what_is_around_a_redacted_place_has_to_be_equal(tmp_path: Path, prompt: str) -> None:
    body = json.dumps({"prompt": "use plumtree99 now"})
    path = recorded(tmp_path, exchange(body, "{}"), {"MY_TOKEN": "plumtree99"})
    with pytest.raises(CassetteMiss):
        CassetteSession(path, RecordMode.NONE).play(exchange(json.dumps({"prompt": prompt})).request)


def test_a_body_in_base64_with_a_look_alike_is_nobody_elses(tmp_path: Path) -> None:
    path = recorded(tmp_path, exchange(json.dumps({"image": BLOB}), "{}"))
    assert BLOB in path.read_text("utf-8")
    with pytest.raises(CassetteMiss):
        CassetteSession(path, RecordMode.NONE).play(exchange(json.dumps({"image": f"{BLOB}x"})).request)


@pytest.mark.parametrize("secret", ["other", "", None, 5, "with blanks in it"])
def test_a_value_with_the_name_of_a_secret_matches_whatever_it_is(tmp_path: Path, secret: JSON) -> None:
    path = recorded(tmp_path, exchange(json.dumps({"api_key": "plum", "q": "a"}), "{}"))
    session = CassetteSession(path, RecordMode.NONE)
    with pytest.raises(CassetteMiss):
        session.play(exchange(json.dumps({"api_key": secret, "q": "b"})).request)
    assert session.play(exchange(json.dumps({"api_key": secret, "q": "a"})).request) is not None


def test_a_redacted_part_of_a_path_is_no_other_path(tmp_path: Path) -> None:
    secret = KEYS["github"](Random(1))
    path = recorded(tmp_path, exchange("{}", "{}", uri=f"https://h.test/bot/{secret}/send"))
    session = CassetteSession(path, RecordMode.NONE)
    with pytest.raises(CassetteMiss):
        session.play(exchange("{}", uri="https://h.test/bot/a/b/send").request)
    assert session.play(exchange("{}", uri="https://h.test/bot/none/send").request) is not None


# -- time ----------------------------------------------------------------------------------------------------------

UNITS: Final = (
    "Authorization: Basic ", "sk-", "\\", "eyJ-", ".eyJaaaaaaaaaaaa", "://a:b", "password=", '{"a":[', '"token":',
    "-----BEGIN PRIVATE KEY-----", 'data: {"a":"b"}\n\n', "basic ", "key-", "[", '\\\\"', "a=", "a=b&", '"', '{"', "x",
    'Content-Disposition: form-data; name="a"\r\n\r\n', "content-disposition: a;", "eyJaaaaaaaaaa.", "glpat-a.",
    "Aa1/", '"password":"a",', "data: a\n",
)  # fmt: skip


@pytest.mark.parametrize("size", [100_000, pytest.param(500_000, marks=pytest.mark.slow)])
@table_test("unit", UNITS)
@table_test("kind", [JSON_TYPE, FORM, "multipart/form-data; boundary=B"])
def test_reading_is_linear_in_what_is_read(unit: str, kind: str, size: int) -> None:
    """Ten times the text takes hours where a rule is not linear."""
    text = unit * (size // len(unit))
    assert isinstance(in_body(text, Sought(("known-4f9Qm2Zr8T",)), kind.partition(";")[0]), list)
