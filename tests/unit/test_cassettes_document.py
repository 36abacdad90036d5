"""Damaged and foreign cassettes are told with path and line."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import yaml

from statek_sim.cassettes.document import parse, read, read_decoded, rendered
from statek_sim.cassettes.exchange import Chunk, Exchange, Request, Response
from statek_sim.errors import BadCassette
from statek_sim.values import JSON
from tests.tables import table_test

PATH = Path("talk.yaml")

WHOLE = """\
interactions:
- request:
    method: POST
    uri: https://api.test/v1/chat/completions
    headers:
      content-type:
      - application/json
    body: |-
      {
        "model": "gpt-4o"
      }
  response:
    status:
      code: 200
      message: OK
    headers:
      content-type:
      - application/json
    body:
      string: |-
        {
          "id": "chatcmpl-1"
        }
    statek:
      json: compact
      chunks: [[0.25, 19]]
version: 1
"""

ONE = Exchange(
    request=Request(
        method="POST",
        uri="https://api.test/v1/chat/completions",
        headers=(("content-type", "application/json"),),
        body=b'{"model":"gpt-4o"}',
    ),
    response=Response(
        status=200,
        reason="OK",
        headers=(("content-type", "application/json"),),
        body=b'{"id":"chatcmpl-1"}',
        chunks=(Chunk(0.25, 19),),
    ),
)


def test_a_cassette_is_laid_out_for_people() -> None:
    assert rendered([ONE]) == WHOLE


def test_the_same_bytes_come_back() -> None:
    (exchange,) = parse(WHOLE.encode(), PATH)
    assert exchange.response == ONE.response
    assert exchange.line == 2


def test_a_cassette_of_vcrpy_is_read() -> None:
    source = """\
interactions:
- request:
    body: !!binary |
      /wD/
    headers: &h
      Accept: ['*/*']
    method: GET
    uri: http://api.test/
  response:
    body: {string: !!python/unicode 'hello'}
    headers: *h
    status: {code: 204, message: null}
version: 1
"""
    (exchange,) = parse(source.encode(), PATH)
    assert exchange.request.body == b"\xff\x00\xff"
    assert exchange.response == Response(status=204, headers=(("Accept", "*/*"),), body=b"hello")


@table_test("size", [len(WHOLE) - 3, len(WHOLE) - 12, 300, 120, 60, 15])
def test_a_cassette_that_is_cut_off_is_told_wherever_it_is_cut(size: int) -> None:
    with pytest.raises(BadCassette, match=r"^talk\.yaml:\d+: "):
        parse(WHOLE[:size].encode(), PATH)


CASES = [
    ("", "1: the cassette is empty; delete the file and record it again"),
    ("\n\n", "1: the cassette is empty; delete the file and record it again"),
    (
        "interactions: []\n",
        "2: the file is truncated: expected `version: 1` at the end; delete the file and record it again",
    ),
    (
        WHOLE.removesuffix("version: 1\n"),
        "27: the file is truncated: expected `version: 1` at the end; delete the file and record it again",
    ),
    (WHOLE.replace("version: 1", "version: 2"), "27: version 2; only vcrpy's version 1 is supported"),
    ("- request: {}\n  response: {}\n", "1: written by vcrpy before 1.0, in an unsupported format"),
    ("just a text\n", "1: the cassette: expected a mapping, got 'just a text'"),
    ("interactions: 7\nversion: 1\n", "1: `interactions`: expected a list, got 7"),
    ("interactions:\n- 7\nversion: 1\n", "2: `0`: expected a mapping, got 7"),
    (WHOLE.replace("    method: POST\n", ""), "3: `request` has no `method`"),
    (WHOLE.replace("code: 200", "code: fine"), "14: `code`: expected a whole number, got 'fine'"),
    (WHOLE.replace("message: OK", "message: [OK]"), "15: `message`: expected a string, got ['OK']"),
    (
        WHOLE.replace("      - application/json\n    body: |-", "        deep: 1\n    body: |-"),
        "7: header 'content-type': expected a string or a list of strings, got {'deep': 1}",
    ),
    (
        WHOLE.replace("chunks: [[0.25, 19]]", "chunks: [[0.25]]"),
        "26: expected [seconds, bytes], got [0.25]",
    ),
    (
        WHOLE.replace('"id": "chatcmpl-1"', '"id": oops'),
        "20: expected JSON because `json` is 'compact': Expecting value: line 2 column 9 (char 10)",
    ),
    (WHOLE.replace("json: compact", "json: wide"), "20: 'wide' is not a valid Style"),
    (
        WHOLE.replace("    uri: https", "    uri: !!python/object:os.system https"),
        "4: not valid YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'",
    ),
    (
        "interactions:\n- request:\n    method: GET\n    uri: http://a.test\n    headers: {}\n"
        "    body: {type: json, content: {}}\n  response: {}\nversion: 1\n",
        "6: `body`: expected a string, got {'content': {}, 'type': 'json'}: vcrpy did not write this file",
    ),
    (
        "interactions:\n- request:\n    body: !!binary abc\nversion: 1\n",
        "3: not valid YAML: failed to decode base64 data: Incorrect padding",
    ),
    ("interactions: *nothing\nversion: 1\n", "1: not valid YAML: found undefined alias"),
    ("interactions: &a [*a]\nversion: 1\n", "1: not valid YAML: found unconstructable recursive node"),
    ("a: 1\n--- b\n", "2: a second YAML document; expected only one"),
    (
        WHOLE.replace("version: 1", "interactions: []\nversion: 1"),
        "27: not valid YAML: duplicate key",
    ),
    (
        WHOLE.replace("    method: POST\n", "    method: POST\n    method: GET\n"),
        "4: not valid YAML: duplicate key",
    ),
]


@table_test("depth", [130, 100_000])
def test_nesting_that_is_too_deep_is_no_cassette(depth: int) -> None:
    with pytest.raises(BadCassette, match=r"^talk\.yaml:1: "):
        parse(f"interactions: {'[' * depth}{']' * depth}\nversion: 1\n".encode(), PATH)


@table_test(("source", "message"), CASES)
def test_what_is_wrong_is_told_with_its_line(source: str, message: str) -> None:
    with pytest.raises(BadCassette) as caught:
        parse(source.encode(), PATH)
    assert str(caught.value) == f"talk.yaml:{message}"


def test_an_alias_is_read_as_what_it_stands_for() -> None:
    text = WHOLE.replace("interactions:\n", "other: &them\n").replace(
        "version: 1", "interactions: *them\nversion: 1"
    )
    whole, by_alias = parse(WHOLE.encode(), PATH), parse(text.encode(), PATH)
    assert (
        [(one.request, one.response) for one in by_alias]
        == [(one.request, one.response) for one in whole]
        != []
    )


def test_yaml_that_is_none_is_told_with_its_line() -> None:
    with pytest.raises(BadCassette, match=r"^talk\.yaml:2: not valid YAML: .*mapping values are not allowed"):
        parse(b"interactions:\n- a: b: c\n  d: 1\nversion: 1\n", PATH)


def test_bytes_that_are_no_text_are_told_with_their_line() -> None:
    with pytest.raises(BadCassette, match=r"^talk\.yaml:2: not UTF-8 text: byte 0xff$"):
        parse(b"interactions:\n\xff", PATH)


def test_a_control_character_is_told_with_its_line() -> None:
    with pytest.raises(BadCassette, match=r"^talk\.yaml:2: not valid YAML: "):
        parse(b"interactions:\n- \x00\n", PATH)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadCassette, match=r"no\.yaml: no such file or folder$"):
        read(tmp_path / "no.yaml")


@pytest.mark.parametrize("uri", ["/v1/chat/completions", "chat", "https:///path", "https://host:port/path"])
def test_an_address_without_a_host_is_told_with_its_line(tmp_path: Path, uri: str) -> None:
    path = tmp_path / "relative.yaml"
    path.write_text(
        f"version: 1\ninteractions:\n- request: {{method: POST, uri: '{uri}', body: '', headers: {{}}}}\n"
        "  response: {status: {code: 200, message: OK}, headers: {}, body: {string: ''}}\n",
        encoding="utf-8",
    )
    with pytest.raises(BadCassette, match=r"relative\.yaml:3: "):
        read(path)


OF_PYDANTIC_AI = """\
interactions:
- request:
    headers:
      content-type:
      - application/json
    method: POST
    parsed_body:
      messages:
      - content: hello
        role: user
      model: gpt-4o
      temperature: 0.5
      tools:
      - function: {a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: {n: {o: deep}}}}}}}}}}}}}}}
    uri: https://api.test/v1/chat/completions
  response:
    headers:
      content-type:
      - application/json
    parsed_body:
      choices:
      - finish_reason: stop
        message: {content: null, done: true}
    status:
      code: 200
      message: OK
version: 1
"""


def test_bodies_that_are_kept_as_values_are_read() -> None:
    (one,) = parse(OF_PYDANTIC_AI.encode(), PATH)
    sent = json.loads(one.request.body)
    assert (sent["model"], sent["temperature"]) == ("gpt-4o", 0.5)
    assert json.loads(one.response.body) == {
        "choices": [{"finish_reason": "stop", "message": {"content": None, "done": True}}]
    }


FROM_HTTPX_OF_VCRPY_5 = """\
interactions:
- request:
    body: ''
    headers: {}
    method: GET
    uri: https://api.test/v1/models
  response:
    content: '{"data": "gr\u00fcn"}'
    headers:
      Content-Encoding:
      - gzip
      Content-Length:
      - '7'
    http_version: HTTP/1.1
    status_code: 404
version: 1
"""


def test_a_response_that_vcrpy_5_recorded_from_httpx_is_read() -> None:
    (one,) = parse(FROM_HTTPX_OF_VCRPY_5.encode(), PATH)
    body = '{"data": "gr\u00fcn"}'.encode()
    assert (one.response.status, one.response.body) == (404, body)
    assert one.response.headers == (("Content-Length", str(len(body))),)


OF_VALUES: Final[JSON] = {
    "embedding": [-0.010592308081686498, -1.2345678901234568e-05, 1.25e-07, 1e22, 0.5, -3, 0],
    "ids": [18446744073709551615, "18446744073709551615"],
    "texts": [
        "1e5",
        "1.5e5",
        "089",
        "007",
        "0",
        "1.5",
        ".5",
        "+48123",
        "yes",
        "null",
        "~",
        "",
        "0x1f",
        "12:30:00",
    ],
}


def test_values_keep_their_kinds_and_are_compressed_no_more() -> None:
    kept = {"headers": {"content-encoding": ["gzip"], "content-length": ["5"]}, "parsed_body": OF_VALUES}
    interaction = {
        "request": {"method": "POST", "uri": "https://api.test/v1/embeddings", **kept},
        "response": {"status": {"code": 200, "message": "OK"}, **kept},
    }
    (one,) = parse(yaml.dump({"interactions": [interaction], "version": 1}).encode(), PATH)
    assert json.loads(one.request.body) == json.loads(one.response.body) == OF_VALUES
    assert one.response.headers == (("content-length", str(len(one.response.body))),)
    assert "content-encoding" not in dict(one.request.headers)


@table_test("text", ["line \U0001f600\nline two \U0001f469\u200d\U0001f467", "a \ue000 \U0001f600\n\ue001"])
@table_test("ascii_only", [True, False])
def test_an_emoji_does_not_make_one_line_of_a_body(text: str, *, ascii_only: bool) -> None:
    said = json.dumps({"choices": [{"a": text, "b": 1}]}, ensure_ascii=ascii_only).encode()
    events = f"data: {text.partition(chr(10))[0]}\n\ndata: more\n\n".encode()
    made = [
        Exchange(request=replace(ONE.request, body=body), response=Response(status=200, body=body))
        for body in (said, events)
    ]
    written = rendered(made)
    assert "\U0001f600" in written
    assert "\\U000" not in written
    assert written.count("\n") > 40
    again = parse(written.encode(), PATH)
    assert [each.response.body for each in again] == [said, events]
    assert json.loads(again[0].request.body) == json.loads(said)


def test_a_compressed_body_is_replayed_as_it_came_and_read_without_compression(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    headers = (("content-encoding", "gzip"), ("content-type", "application/json"))
    compressed = gzip.compress(b'{"a": 1}')
    path.write_text(
        rendered([replace(ONE, response=Response(status=200, headers=headers, body=compressed))]), "utf-8"
    )
    assert read(path)[0].response.body == compressed
    (plain,) = read_decoded(path)
    assert (plain.response.body, plain.response.headers) == (b'{"a": 1}', headers[1:])


def test_a_request_that_was_compressed_is_read_without_compression(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    sent = replace(
        ONE.request, headers=(("Content-Encoding", "gzip"),), body=gzip.compress(b'{"model": "m"}')
    )
    path.write_text(rendered([replace(ONE, request=sent)]), "utf-8")
    assert "!!binary" in path.read_text("utf-8")
    (plain,) = read_decoded(path)
    assert (plain.request.body, plain.request.headers) == (b'{"model": "m"}', ())
