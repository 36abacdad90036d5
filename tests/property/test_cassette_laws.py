"""Laws of cassettes: what is written comes back, what is secret does not, what is equal matches."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from vcr.serialize import deserialize
from vcr.serializers import yamlserializer

from statek_sim.cassettes.bodies import (
    Style,
    body_layout,
    canonical,
    laid_out,
    original,
    parsed,
    style_of,
    written,
)
from statek_sim.cassettes.document import parse, rendered
from statek_sim.cassettes.exchange import Chunk, Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.recording_lookup import Recordings
from statek_sim.cassettes.redaction import redacted
from statek_sim.cassettes.secret_detection import PLACEHOLDER
from statek_sim.values import JSON

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES: st.SearchStrategy[JSON] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TOKENS = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
HEADERS = st.lists(st.tuples(TOKENS, st.text("abc 123,;=/", max_size=20)), max_size=4).map(
    lambda pairs: tuple((f"x-{name}", value) for name, value in sorted(dict(pairs).items()))
)
BODIES = (
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.tuples(VALUES, st.sampled_from(Style)).map(lambda pair: encoded(*pair))
    | st.lists(
        st.sampled_from(["data: {}", "", " ", "x ", "\t", "\r", "event: a", "\u2028", "\x85", "…"])
    ).flatmap(lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines).encode()))
)


def encoded(value: JSON, style: Style) -> bytes:
    return written(value, style).encode("utf-8", "surrogatepass")


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    response = Response(
        status=draw(st.integers(100, 599)),
        reason=draw(st.sampled_from(["OK", "", "Not Found"])),
        headers=draw(HEADERS),
        body=draw(BODIES),
        chunks=tuple(
            Chunk(round(at, 3), size)
            for at, size in draw(st.lists(st.tuples(st.floats(0, 9), st.integers(1, 99)), max_size=3))
        ),
    )
    path = draw(TOKENS)
    request = Request(method="POST", uri=f"https://api.test/{path}", headers=draw(HEADERS), body=draw(BODIES))
    return Exchange(request=request, response=response)


FORM = Exchange(
    request=Request(method="POST", uri="https://api.test/upload", body=b"--x\r\n\r\none\r\n--x--\r\n"),
    response=Response(status=200, body=b"data: {}\r\n\r\n"),
)


@given(st.lists(exchanges(), max_size=3))
@example([FORM])
def test_what_is_written_is_read_again(recorded: list[Exchange]) -> None:
    read = parse(rendered(recorded).encode(), Path("it.yaml"))
    matching = Matching()
    assert [one.response for one in read] == [one.response for one in recorded]
    assert [one.request.headers for one in read] == [one.request.headers for one in recorded]
    assert [matching.fingerprint(one.request) for one in read] == [
        matching.fingerprint(one.request) for one in recorded
    ]


@given(st.lists(exchanges(), max_size=3))
def test_writing_what_was_read_changes_nothing(recorded: list[Exchange]) -> None:
    text = rendered(recorded)
    assert rendered(parse(text.encode(), Path("it.yaml"))) == text


@given(st.lists(exchanges(), max_size=3))
def test_vcrpy_reads_what_is_written(recorded: list[Exchange]) -> None:
    requests, responses = deserialize(rendered(recorded), yamlserializer)
    assert [request.uri for request in requests] == [one.request.uri for one in recorded]
    for response, one in zip(responses, recorded, strict=True):
        string = response["body"]["string"]
        text, remarks = body_layout(one.response.body)
        assert string == (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        assert original(text, remarks) == one.response.body


@given(st.lists(exchanges(), max_size=3))
def test_any_reader_of_yaml_sees_the_same_as_ours(recorded: list[Exchange]) -> None:
    text = rendered(recorded)
    plain = yaml.safe_load(text)
    assert [entry["request"]["uri"] for entry in plain["interactions"]] == [
        one.request.uri for one in recorded
    ]
    lines = text.split("\n")
    for one in parse(text.encode(), Path("it.yaml")):
        assert lines[one.line - 1].startswith("- request:")


@given(VALUES)
def test_the_canonical_text_is_the_same_for_every_order_of_keys_and_every_style(value: JSON) -> None:
    text = canonical(value)
    assert canonical(parsed(text)) == text
    assert canonical(reordered(value)) == text
    assert {canonical(parsed(written(value, style))) for style in Style} == {text}
    assert canonical(parsed(laid_out(value))) == text


def reordered(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(VALUES, st.sampled_from(Style))
def test_the_style_of_a_text_gives_it_back(value: JSON, style: Style) -> None:
    text = written(value, style)
    found = style_of(text)
    assert found is not None
    assert written(parsed(text), found) == text


LETTERS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=40, max_size=48)
KEYS = st.one_of(
    LETTERS.map(lambda tail: f"sk-proj-7{tail}"),
    LETTERS.map(lambda tail: f"sk-ant-api03-{tail}-_AA"),
    LETTERS.map(lambda tail: f"AIza{tail[:35]}"),
    LETTERS.map(lambda tail: f"gsk_{tail}"),
    LETTERS.map(lambda tail: f"ghp_{tail[:36]}"),
    LETTERS.map(lambda tail: f"hf_{tail[:34]}"),
    LETTERS.map(lambda tail: f"xoxb-{tail}"),
    LETTERS.map(lambda tail: f"eyJ{tail[:20]}.eyJ{tail[:30]}.{tail}"),
)
WORDS = st.text("abc {}\"'\\:,\n", max_size=20)


def told(exchange: Exchange) -> str:
    """Return all that a file would hold of an exchange, and the texts that its stream adds up to."""
    joined = "".join(
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in exchange.response.body.decode().split("\n")
        if line.startswith("data: {")
    )
    return rendered([exchange]) + joined


@given(KEYS, WORDS, WORDS)
def test_a_key_is_in_no_place_of_a_request_or_reply(key: str, before: str, after: str) -> None:
    text = f"{before} {key} {after}"
    body = json.dumps({"messages": [{"content": text, "arguments": json.dumps({"note": text})}]}).encode()
    clean = redacted(
        Exchange(
            request=Request(
                method="POST", uri=f"https://h.test/p?model=a&x={key}", headers=(("x-note", key),), body=body
            ),
            response=Response(status=200, headers=(("location", f"https://h.test/?q={key}"),), body=body),
        )
    )
    assert key not in rendered([clean])
    assert redacted(clean) == clean


@given(KEYS, WORDS, st.data())
def test_a_key_that_a_stream_sends_in_pieces_is_gone(key: str, before: str, data: st.DataObject) -> None:
    text = f"{before} {key} and more"
    pieces, rest = [], text
    while rest:
        size = data.draw(st.integers(1, 9))
        pieces.append(rest[:size])
        rest = rest[size:]
    events = [json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    response = Response(
        status=200,
        headers=(("content-type", "text/event-stream"),),
        body=body,
        chunks=tuple(Chunk(0.1 * n, len(f"data: {event}\n\n")) for n, event in enumerate(events)),
    )
    clean = redacted(Exchange(request=Request(method="POST", uri="https://h.test/p"), response=response))
    assert key not in told(clean)
    assert PLACEHOLDER in told(clean)
    assert "and more" in told(clean)
    assert clean.response.chunks == ()
    assert redacted(clean) == clean


@given(st.text("abcdefghij0123456789", min_size=12, max_size=30), WORDS)
def test_the_key_a_request_was_sent_with_is_nowhere_whatever_it_looks_like(key: str, words: str) -> None:
    body = json.dumps({"content": f"{words} {key}!", key: 1}).encode()
    clean = redacted(
        Exchange(
            request=Request(
                method="POST",
                uri=f"https://h.test/{key}/p",
                headers=(("Authorization", f"Bearer {key}"),),
                body=body,
            ),
            response=Response(status=401, body=body),
        )
    )
    assert key not in rendered([clean])


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_identical_requests_play_in_recorded_order(names: list[str]) -> None:
    made = [
        Exchange(
            request=Request(method="GET", uri=f"https://h.test/{name}"), response=Response(status=200 + n)
        )
        for n, name in enumerate(names)
    ]
    recordings = Recordings(made, Matching())
    for exchange in made:
        assert recordings.play(recordings.lane_of(exchange.request)) is not None
    assert not recordings.unplayed()
    again = Recordings(made, Matching())
    for lane in set(again.fingerprints):
        statuses = [one.response.status for one in iter(lambda lane=lane: again.play(lane), None)]  # type: ignore[misc]
        assert statuses == sorted(statuses)
        assert len(statuses) == again.fingerprints.count(lane)
