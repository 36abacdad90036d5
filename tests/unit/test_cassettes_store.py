"""Where cassettes are written: links, permissions, folders and names are respected, or told before a request."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

import pytest

from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.session import CassetteSession, RecordMode, aside
from statek_sim.cassettes.store import write
from statek_sim.errors import BadInput
from tests.says import line_with

ONE = Exchange(
    request=Request(method="GET", uri="https://h.test/1"), response=Response(status=200, body=b"a")
)
TWO = Exchange(
    request=Request(method="GET", uri="https://h.test/2"), response=Response(status=200, body=b"b")
)
RECORDING = [mode for mode in RecordMode if mode is not RecordMode.NONE]


def record(path: Path, mode: RecordMode, one: Exchange = TWO) -> None:
    session = CassetteSession(path, mode)
    session.record(one.request, one.response)
    session.close()


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    real, link = tmp_path / "elsewhere" / "real.yaml", tmp_path / "link.yaml"
    write(real, [ONE])
    link.symlink_to(real)
    record(link, RecordMode.NEW_EPISODES)
    assert link.is_symlink()
    assert len(CassetteSession(real, RecordMode.NONE)) == 2


def test_a_link_that_leads_nowhere_yet_makes_the_file_there(tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to("real.yaml")
    record(link, RecordMode.ONCE)
    assert link.is_symlink()
    assert (tmp_path / "real.yaml").is_file()


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    write(path, [ONE])
    path.chmod(0o640)
    record(path, RecordMode.ALL)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("mode", [RecordMode.NEW_EPISODES, RecordMode.ALL, RecordMode.REWRITE])
def test_a_read_only_cassette_is_not_replaced_and_that_is_told_before_anything_is_asked(
    tmp_path: Path, mode: RecordMode
) -> None:
    path = tmp_path / "it.yaml"
    write(path, [ONE])
    path.chmod(0o444)
    with pytest.raises(BadInput, match=line_with("it.yaml: ", "read-only", "chmod u+w")):
        CassetteSession(path, mode)
    assert len(CassetteSession(path, RecordMode.ONCE)) == 1


@pytest.mark.parametrize("mode", RECORDING)
def test_a_file_in_the_place_of_the_folder_is_told_before_anything_is_asked(
    tmp_path: Path, mode: RecordMode
) -> None:
    (tmp_path / "cassettes").write_text("")
    with pytest.raises(BadInput, match=line_with("cassettes: ", "expected a folder", "found a file")):
        CassetteSession(tmp_path / "cassettes" / "test_a" / "it.yaml", mode)


@pytest.mark.parametrize("mode", RECORDING)
def test_names_are_measured_in_bytes(tmp_path: Path, mode: RecordMode) -> None:
    longest = tmp_path / f"{'ż' * 125}.yaml"
    record(longest, mode)
    assert len(CassetteSession(longest, RecordMode.NONE)) == 1
    with pytest.raises(BadInput, match=line_with("name", "255 bytes")):
        CassetteSession(tmp_path / f"{'ż' * 126}.yaml", mode)


def test_what_is_put_aside_has_a_name_that_fits_too(tmp_path: Path) -> None:
    path = tmp_path / f"{'ż' * 125}.yaml"
    assert len(os.fsencode(aside(path).name)) <= 255
    assert aside(tmp_path / "it.yaml") == tmp_path / "it.new.yaml"


def test_of_two_sessions_that_record_the_same_file_at_once_the_second_is_told(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    first, second = (CassetteSession(path, RecordMode.NEW_EPISODES) for _ in range(2))
    first.record(ONE.request, ONE.response)
    first.close()
    second.record(TWO.request, TWO.response)
    with pytest.raises(BadInput, match=line_with("it.yaml: ", "changed", "another process")):
        second.close()
    assert [one.request.uri for one in CassetteSession(path, RecordMode.NONE).recordings()] == [
        "https://h.test/1"
    ]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "image/png"),
        (b"\x00\x01\x02", "application/octet-stream"),
        (b"\x1f\x8b\x08\x00broken", "text/plain"),
    ],
)
def test_what_cannot_be_read_is_not_recorded_unless_its_kind_is_allowed(
    tmp_path: Path, body: bytes, kind: str
) -> None:
    from statek_sim.cassettes.matching import Matching
    from statek_sim.cassettes.secret_patterns import OwnSecrets

    path = tmp_path / "it.yaml"
    answer = Response(status=200, headers=(("content-type", kind),), body=body)
    session = CassetteSession(path, RecordMode.ONCE)
    session.record(ONE.request, ONE.response)
    session.record(TWO.request, answer)
    with pytest.raises(
        BadInput, match=line_with("it.yaml: ", "not recorded", "GET https://h.test/2", f"({kind})")
    ):
        session.close()
    assert len(CassetteSession(path, RecordMode.NONE)) == 1

    allowing = CassetteSession(
        path, RecordMode.REWRITE, Matching.ignoring(own=OwnSecrets.of(undecoded=[kind]))
    )
    allowing.record(TWO.request, answer)
    allowing.close()
    assert CassetteSession(path, RecordMode.NONE).recordings()[0].response.body == body


@pytest.mark.parametrize("encoding", ["zstd", "compress", "gzip"])
def test_a_content_encoding_that_cannot_be_undone_is_not_recorded(tmp_path: Path, encoding: str) -> None:
    session = CassetteSession(tmp_path / "it.yaml", RecordMode.ONCE)
    answer = Response(
        status=200, headers=(("content-encoding", encoding),), body=b"\x1f\x8b\x28\xb5\x2f\xfd\x00"
    )
    session.record(ONE.request, answer)
    with pytest.raises(BadInput, match=rf"not recorded: GET https://h\.test/1: .*{encoding}|ends too early"):
        session.close()


def test_what_killed_writers_left_behind_goes_when_it_is_old_and_nobody_elses_draft_does(
    tmp_path: Path,
) -> None:
    path = tmp_path / "it.yaml"
    write(path, [ONE])
    session = CassetteSession(path, RecordMode.ALL)
    session.record(TWO.request, TWO.response)
    draft = f".{blake2b(b'it.yaml', digest_size=8).hexdigest()}"
    old, new, other = (tmp_path / name for name in (f"{draft}.17.tmp", f"{draft}.18.tmp", ".other.17.tmp"))
    for left in (old, new, other):
        left.write_text("half a cassette")
    for left in (old, other):
        os.utime(left, (0, 0))
    session.close()
    assert [left.exists() for left in (old, new, other)] == [False, True, True]
    assert len(CassetteSession(path, RecordMode.NONE)) == 2
