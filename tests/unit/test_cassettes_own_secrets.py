"""Secrets that only one team has: in headers, addresses, bodies and streams; found by the scan; looked up replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.redaction import redacted
from statek_sim.cassettes.scan import scan
from statek_sim.cassettes.secret_patterns import OwnSecrets
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.errors import BadInput, CassetteMiss
from tests.tables import table_test

OWN = OwnSecrets.of(["X-Acme-Pin", "customer_number"], ["acme-[0-9a-f]{8}", r"session=(?P<secret>\w+)"])
URI = "https://api.test/v1/chat/completions"
JSON_TYPE = (("content-type", "application/json"),)


def exchange(
    *, uri: str = URI, headers: tuple[tuple[str, str], ...] = (), sent: object = None, said: object = None
) -> Exchange:
    return Exchange(
        request=Request(
            method="POST", uri=uri, headers=(*JSON_TYPE, *headers), body=json.dumps(sent or {}).encode()
        ),
        response=Response(status=200, headers=JSON_TYPE, body=json.dumps(said or {}).encode()),
    )


def kept(one: Exchange) -> str:
    """Everything that would be written, after redacting twice, which must not differ from once."""
    clean = redacted(one, OWN)
    assert redacted(clean, OWN) == clean
    return repr(clean)


def test_a_header_of_that_name_is_replaced_and_what_it_held_is_looked_for_elsewhere() -> None:
    text = kept(
        exchange(headers=(("x_acme-PIN", "plum tree orchard"),), said={"echo": "a plum tree orchard"})
    )
    assert "plum" not in text
    assert text.count("REDACTED") == 2


def test_a_parameter_and_a_member_of_that_name_are_replaced_but_no_number() -> None:
    text = kept(
        exchange(
            uri=f"{URI}?customer-number=4711&page=2",
            sent={"customerNumber": "4712", "deep": [{"customer_number": ["4713", None]}]},
            said={"customer_number": 5813},
        )
    )
    assert "471" not in text
    assert "page=2" in text
    assert "5813" in text


def test_a_pattern_is_replaced_wherever_texts_are_and_of_it_only_its_group() -> None:
    text = kept(exchange(sent={"say": "use acme-0123abcd now"}, said={"log": "session=plum; path=/"}))
    assert "acme-0123" not in text
    assert "use REDACTED now" in text
    assert "session=REDACTED; path=/" in text


def test_a_pattern_is_found_in_the_pieces_of_a_stream() -> None:
    pieces = ["my acme-", "01", "23ab", "cd is it"]
    events = [json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    body = "".join(f"data: {event}\n\n" for event in events).encode()
    response = Response(status=200, headers=(("content-type", "text/event-stream"),), body=body)
    clean = redacted(Exchange(request=Request(method="POST", uri=URI), response=response), OWN)
    assert b"acme-" not in clean.response.body
    assert clean.response.body.count(b"REDACTED") == 1
    assert b"cd is it" not in clean.response.body


def test_without_them_nothing_of_that_is_a_secret() -> None:
    one = exchange(sent={"customer_number": 4711, "say": "acme-0123abcd"})
    assert redacted(one) == one


def test_a_request_with_own_secrets_finds_its_recording(tmp_path: Path) -> None:
    path, matching = tmp_path / "one.yaml", Matching.ignoring(own=OWN)
    one = exchange(
        uri=f"{URI}?customer_number=1",
        sent={"customer_number": "4711", "say": "it: acme-0123abcd"},
        said={"ok": 1},
    )
    recording = CassetteSession(path, RecordMode.ONCE, matching)
    recording.record(one.request, one.response)
    recording.close()
    assert "4711" not in path.read_text("utf-8")

    assert CassetteSession(path, RecordMode.NONE, matching).play(one.request) is not None
    # A redacted place matches any value, and nothing else does.
    assert CassetteSession(path, RecordMode.NONE).play(one.request) is not None
    other = exchange(
        uri=f"{URI}?customer_number=1", sent={"customer_number": "4711", "say": "else acme-0123abcd"}
    )
    with pytest.raises(CassetteMiss, match="REDACTED"):
        CassetteSession(path, RecordMode.NONE).play(other.request)


def test_an_escaped_secret_finds_its_recording_too(tmp_path: Path) -> None:
    path, matching = tmp_path / "one.yaml", Matching.ignoring(own=OwnSecrets.of(patterns=["żółw-[0-9]+"]))
    one = exchange(sent={"say": "żółw-12"})
    assert b"\\u017c" in one.request.body
    recording = CassetteSession(path, RecordMode.ONCE, matching)
    recording.record(one.request, one.response)
    recording.close()
    assert CassetteSession(path, RecordMode.NONE, matching).play(one.request) is not None


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("note: acme-0123abcd\n", "a match for your own pattern (acme-[0-9a-f]{8})"),
        ("# acme-0123abcd\nnote: 1\n", "a match for your own pattern (acme-[0-9a-f]{8})"),
        ("headers:\n  x-acme-pin:\n  - plum tree\n", "a value named 'x-acme-pin'"),
        ('body: \'{"customer_number": "4711"}\'\n', "a value named 'customer_number'"),
        ("customer-number: '4711'\n", "a value named 'customer-number'"),
        ("uri: https://api.test/?customer_number=4711\n", "the parameter 'customer_number'"),
    ],
)
def test_the_scan_finds_them_and_says_what_they_are(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "old.yaml"
    path.write_text(content, "utf-8")
    assert [leak.kind for leak in scan(path, OWN).leaks] == [kind]
    assert scan(path).leaks == []


@table_test(
    ("names", "patterns", "message"),
    [
        (["x acme"], [], r"^secret name 'x acme': expected the name of a header"),
        (["-"], [], r"^secret name '-': expected the name"),
        ([], ["acme-("], r"^secret pattern 'acme-\(': not a valid regular expression: missing \)"),
        ([], ["a*"], r"^secret pattern 'a\*': matches the empty string; expected a pattern such as"),
    ],
)
def test_what_names_nothing_or_fits_anything_is_refused(
    names: list[str], patterns: list[str], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        OwnSecrets.of(names, patterns)
