"""Writing, the index, and the commands that look after cassettes."""

from __future__ import annotations

import json
import os
from ast import literal_eval
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from statek_sim.cassettes import store
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cli import main
from statek_sim.errors import BadCassette, BadInput, CassetteMiss
from statek_sim.reporting.cassette_diff import changes, unread
from tests.says import line_with, says
from tests.tables import table_test


def exchange(number: int, answer: str = "fine", **headers: str) -> Exchange:
    request = Request(
        method="POST",
        uri="https://api.test/v1/chat/completions",
        headers=tuple(headers.items()),
        body=b'{"messages":[{"role":"user","content":"question %d"}]}' % number,
    )
    told = {
        "id": f"chatcmpl-{number}",
        "model": "gpt-4o-2024-08-06",
        "choices": [{"message": {"content": answer}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": len(answer)},
    }
    body = json.dumps(told, separators=(",", ":")).encode()
    return Exchange(request=request, response=Response(status=200, reason="OK", body=body))


def run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_a_crash_while_writing_leaves_the_old_cassette(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "talk.yaml"
    store.write(path, [exchange(1)])
    before = path.read_bytes()

    def full_disk(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(BadInput, match=line_with("talk.yaml: ", "write", "No space left on device")):
        store.write(path, [exchange(2)])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_session_that_is_never_closed_leaves_the_old_cassette(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    store.write(path, [exchange(1)])
    before = path.read_bytes()
    session = CassetteSession(path, RecordMode.REWRITE)
    session.record(exchange(2).request, exchange(2).response)
    del session
    assert path.read_bytes() == before


def test_a_damaged_cassette_is_never_overwritten_but_by_rewrite(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    path.write_text("interactions: [")
    for mode in (RecordMode.NONE, RecordMode.ONCE, RecordMode.NEW_EPISODES, RecordMode.ALL):
        with pytest.raises(BadCassette, match=r"talk\.yaml:1: not valid YAML"):
            CassetteSession(path, mode)
    session = CassetteSession(path, RecordMode.REWRITE)
    session.record(exchange(2).request, exchange(2).response)
    session.close()
    assert len(CassetteSession(path, RecordMode.NONE)) == 1


def test_a_request_that_was_recorded_twice_is_missed_the_third_time(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    store.write(path, [exchange(1, "first"), exchange(1, "second")])
    session = CassetteSession(path, RecordMode.NONE)
    answers = [session.play(exchange(1).request) for _ in range(2)]
    assert [b"first" in (answer.body if answer else b"") for answer in answers] == [True, False]
    message = (
        f"{path}: POST https://api.test/v1/chat/completions is recorded 2 times with this body, but was "
        "requested once more.\n"
        "  If the client should repeat the request, record it: with record mode new_episodes or rewrite"
    )
    with pytest.raises(CassetteMiss) as caught:
        session.play(exchange(1).request)
    assert str(caught.value) == message
    assert session.misses == [message]


def test_the_nearest_recording_is_the_one_with_the_fewest_changes(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    store.write(path, [exchange(1), exchange(22), exchange(333)])
    with pytest.raises(CassetteMiss, match=r'recorded: "question 22"\n      now:      "question 23"\n'):
        CassetteSession(path, RecordMode.NONE).play(exchange(23).request)


@table_test("ignored", [(), ("scheme", "host"), ("body.list[1]",), ("body.list[*]", "port")])
def test_a_miss_tells_all_that_must_be_ignored(ignored: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    recorded = Request(method="POST", uri="https://api.test/v1", body=b'{"id": 1, "list": [1, 2, 3, 4]}')
    store.write(path, [replace(exchange(1), request=recorded)])
    now = Request(method="POST", uri="http://127.0.0.1:1/v1", body=b'{"id": 2, "list": [1, 3, 2]}')
    with pytest.raises(
        CassetteMiss, match=line_with("no recording", f"POST {now.uri}", "body", "(1 ")
    ) as caught:
        CassetteSession(path, RecordMode.NONE, Matching.ignoring(ignored)).play(now)
    advice = str(caught.value).rpartition("ignore it: Matching.ignoring(")[2].removesuffix(")")
    assert CassetteSession(path, RecordMode.NONE, Matching.ignoring(literal_eval(advice))).play(now)


def test_a_miss_of_another_address_does_not_blame_the_body(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    store.write(path, [exchange(1)])
    moved = replace(exchange(1).request, uri="https://api.test:444/v1/chat/completions")
    with pytest.raises(CassetteMiss, match=line_with("completions (1 recorded", "1 not played")):
        CassetteSession(path, RecordMode.NONE).play(moved)


def test_a_miss_says_how_to_record_for_the_first_time(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    with pytest.raises(CassetteMiss, match=r"does not exist\.\n  To record it: with record mode once$"):
        CassetteSession(path, RecordMode.NONE).play(exchange(1).request)
    store.write(path, [])
    with pytest.raises(CassetteMiss, match=r"is empty\.\n  To record it: .* new_episodes or rewrite$"):
        CassetteSession(path, RecordMode.ONCE).play(exchange(1).request)


def test_scan_exits_with_one_when_it_finds_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "talk.yaml"
    store.write(path, [exchange(1, authorization="Bearer abcdefghijklmnop"), exchange(2)])
    line = path.read_text().split("\n").index("      authorization:") + 1
    code, out, err = run(["cassette", "scan", str(tmp_path)], capsys)
    assert (code, says(err, "1 file", "1 credential")) == (1, True)
    [leak] = out.splitlines()
    assert any(says(leak, f"{path}:{at}", "'authorization'", "abcd…") for at in (line, line + 1))


def test_scan_is_silent_when_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(tmp_path / "talk.yaml", [exchange(1, authorization="REDACTED", cookie="[FILTERED]")])
    (tmp_path / "picture.png").write_text("sk-ant-api03-0123456789012345678901234567890123")
    assert run(["cassette", "scan", str(tmp_path)], capsys) == (
        0,
        "",
        "1 file scanned, 0 credentials found\n",
    )


@pytest.mark.parametrize(
    ("name", "content", "line", "kind"),
    [
        ("a.json", '{\n "headers": {\n  "X-Api-Key": ["0123456789abcdef"]}}', 3, "a value named 'X-Api-Key'"),
        ("b.yaml", "a: 1\nb: 'ghp_0123456789abcdefghijABCDEFGHIJ012345'\n", 2, "a GitHub token"),
        ("i.yaml", "a: 1\n# AKIAABCDEFGHIJKLMNOP\n", 2, "an AWS access key id"),
        ("c.yaml", "a: [\n\nkey sk-ant-api03-0123456789abcdefghij\n", 3, "an API key (sk-…)"),
        ("d.yaml", "s: |\n  one\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIE\n", 3, "a private key"),
        ("e.yaml", "uri: https://me:secret99@h.test/\n", 1, "a password in a URL"),
        ("f.yaml", "uri: /p?sig=0123456789abcdef&x=1\n", 1, "the parameter 'sig'"),
        ("g.toml", 'x = 1\ntoken = "Bearer 0123456789abcdef0123"\n', 2, "a value named 'token'"),
        ("h.yaml", 's: \'{"api_key": "topsecret"}\'\n', 1, "a value named 'api_key'"),
    ],
)
def test_scan_knows_files_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str, line: int, kind: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    code, out, _ = run(["cassette", "scan", str(path)], capsys)
    assert code == 1
    assert out.startswith(f"{path}:{line}: {kind}: ")


def test_scan_says_when_there_is_nothing_to_scan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["cassette", "scan", str(tmp_path / "no")], capsys)
    assert (code, says(err, f"{tmp_path / 'no'}: ", "file or folder")) == (2, True)


def test_diff_shows_what_the_model_said_differently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    store.write(old, [exchange(1, "Paris"), exchange(2), exchange(3)])
    store.write(new, [exchange(4), exchange(1, "Lyon"), exchange(2)])
    code, out, err = run(["cassette", "diff", str(old), str(new)], capsys)
    assert (code, err) == (1, "")
    third = old.read_text().split("\n").index('            "content": "question 3"') - 8
    first = new.read_text().split("\n").index('            "content": "question 1"') - 8
    assert out == (
        f"- line {third} POST https://api.test/v1/chat/completions 'question 3': only in the old cassette\n"
        "+ line 2 POST https://api.test/v1/chat/completions 'question 4': only in the new cassette\n"
        f"~ line {first} POST https://api.test/v1/chat/completions 'question 1' (old: line 2)\n"
        "    reply\n"
        '      old: "Paris"\n'
        '      new: "Lyon"\n'
        "    usage.completion\n"
        "      old: 5\n"
        "      new: 4\n"
    )


def test_diff_is_silent_when_only_ids_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    store.write(old, [exchange(1)])
    new.write_text(old.read_text().replace("chatcmpl-1", "chatcmpl-77"))
    assert run(["cassette", "diff", str(old), str(new)], capsys) == (0, "", "")


def test_orphans_are_the_cassettes_that_no_test_uses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_geo.py").write_text(
        "import pytest\n\n@pytest.mark.statek_cassette\n@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_capital(n): pass\n\ndef test_other(): pass\n"
    )
    folder = tmp_path / "cassettes" / "test_geo"
    for name in ("test_capital[1]", "test_capital[2]", "test_capital[3]", "test_other"):
        store.write(folder / f"{name}.yaml", [exchange(1)])
    monkeypatch.chdir(tmp_path)
    code, out, err = run(["cassette", "orphans"], capsys)
    assert (code, says(err, "4 cassettes", "2 not used")) == (1, True)
    assert out == "cassettes/test_geo/test_capital[3].yaml\ncassettes/test_geo/test_other.yaml\n"


def test_orphans_tells_when_pytest_cannot_collect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_geo.py").write_text("import nothing_of_this_name\n")
    store.write(tmp_path / "cassettes" / "test_geo" / "test_a.yaml", [exchange(1)])
    monkeypatch.chdir(tmp_path)
    code, _, err = run(["cassette", "orphans"], capsys)
    assert code == 2
    assert err.startswith("pytest could not collect the tests:\n")
    assert "nothing_of_this_name" in err


ADDRESSES = (
    "https://api.openai.com/v1/chat/completions",
    "https://api.openai.com/v1/responses",
    "https://api.anthropic.com/v1/messages",
    "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
)
BODIES = (
    json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
    json.dumps({"type": "message", "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 1}}),
    json.dumps({"candidates": [{"content": {"parts": [{"text": "hi"}]}}]}),
    json.dumps({"output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]}),
    '{"choices": [{"mess',
    '{"error": {"message": "x"}}',
    "<html></html>",
    "",
    "null",
    "[]",
    'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n',
    'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: {"cho',
)  # fmt: skip


@table_test("media", ["application/json", "text/event-stream"])
@table_test("uri", ADDRESSES)
def test_diff_tells_any_two_bodies_apart_whatever_provider_they_are_of(uri: str, media: str) -> None:
    def answered(body: str) -> Exchange:
        response = Response(status=200, headers=(("content-type", media),), body=body.encode())
        return Exchange(request=Request(method="POST", uri=uri, body=b"{}"), response=response, line=1)

    for old, new in permutations(BODIES, 2):
        one, other = answered(old), answered(new)
        # Only a stream that was cut off after its last word says what the whole one says.
        alike = {old, new} == set(BODIES[-2:]) and not unread([one, other])
        assert alike or changes([one], [other], Matching()), (old, new)


def test_diff_says_which_body_is_no_answer_of_its_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fine = exchange(0)
    foreign = Exchange(request=fine.request, response=Response(status=200, body=BODIES[2].encode()))
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    store.write(old, [foreign])
    store.write(new, [foreign])
    code, out, err = run(["cassette", "diff", str(old), str(new)], capsys)
    assert (code, out) == (0, "")
    assert [line.partition(": ")[0] for line in err.splitlines()] == [str(old), str(new)]
    assert err.count("response is not in this URL's format; compared as JSON or text") == 2
    store.write(new, [fine])
    code, out, err = run(["cassette", "diff", str(old), str(new)], capsys)
    assert code == 1
    assert "    reply\n" in out
    assert err.count("\n") == 1
