"""The scan reads what the recorder does, within bounds, and takes nothing harmless for a secret."""

from __future__ import annotations

import base64
import gzip
import importlib
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from statek_sim.cassettes import bodies
from statek_sim.cassettes import scan as scanning
from statek_sim.cassettes.document import rendered
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.scan import Scanned, Skipped, files_under, scan
from statek_sim.cassettes.secret_detection import in_body, replaced
from statek_sim.cli import main
from tests.says import line_with, says

OF_GROQ = "gsk_" + "4f9Qm2Zr8TtYw1Lk7Xc3Vb6N" * 2


ZSTD = base64.b64decode(
    "KLUv/SCbJQMABAV7Im5vdGUiOiAidGhlIHdvcmRzIG9mIGEgbG9uZyB0ZXh0LCA6IGdza180ZjlRbTJacjhUdFl3MUxrN1hjM1ZiNk5BYkNk"
    "IGFuZCBtb3IifQYAZZiTO4HLFECzAM4BsOX5BA=="
)
"""A frame with a key that is whole only when it is opened."""
GZIP = gzip.compress(b'{"note": "nothing that is secret, but much of it: nothing that is secret"}', mtime=0)


def written(folder: Path, body: bytes, encoding: str = "") -> Path:
    """Write a cassette with one answer, and return where."""
    path = folder / "it.yaml"
    kept = base64.b64encode(body).decode()
    headers = f"\n      content-encoding: ['{encoding}']" if encoding else " {}"
    path.write_text(
        "interactions:\n- request: {method: GET, uri: 'https://h.test/1', headers: {}, body: null}\n  response:\n"
        f"    headers:{headers}\n    status: {{code: 200, message: OK}}\n"
        f"    body:\n      string: !!binary {kept}\nversion: 1\n"
    )
    return path


@pytest.mark.parametrize(
    ("compress", "encoding"),
    [(zlib.compress, "deflate"), (gzip.compress, "gzip"), (bytes, "")],
)
def test_bodies_that_vcrpy_kept_compressed_are_opened(
    tmp_path: Path, compress: Callable[[bytes], bytes], encoding: str
) -> None:
    body = f'{{"note": "{OF_GROQ}", "n": 1}}'.encode()
    assert [leak.kind for leak in scan(written(tmp_path, compress(body), encoding)).leaks] == [
        "a Groq API key"
    ]


def without(*names: str) -> Callable[[str], object]:
    """Return an import function for which these packages are not installed."""

    def imported(name: str) -> object:
        if name in names:
            raise ImportError(name)
        return importlib.import_module(name)

    return imported


def own_zstd(frame: bytes) -> SimpleNamespace:
    """Return a stand-in with the interface that compression.zstd and backports.zstd share: it opens one frame."""

    class Decompressor:
        eof, unused_data, taken = False, b"", b""

        def decompress(self, more: bytes) -> bytes:
            self.taken += more
            self.eof = self.taken == frame
            return b'{"note": "gsk_' + b"4f9Qm2Zr8TtYw1Lk7Xc3Vb6N" * 2 + b'AbCd"}' if self.eof else b""

    return SimpleNamespace(ZstdDecompressor=Decompressor)


@pytest.mark.parametrize("installed", ["none", "own", "whatever is"])
def test_a_body_in_zstd_is_opened_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str
) -> None:
    packages = ("compression.zstd", "backports.zstd", "zstandard")
    if installed == "own":
        monkeypatch.setattr(bodies, "_package", lambda *_: own_zstd(ZSTD))
    elif installed == "none":
        monkeypatch.setattr(importlib, "import_module", without(*packages))
    found = scan(written(tmp_path, ZSTD, "zstd"))
    there = installed == "own" or (installed != "none" and any(map(is_there, packages)))
    assert [leak.kind for leak in found.leaks] == (["a Groq API key"] if there else [])
    facts = (f"{tmp_path}/it.yaml:2", "skipped", "'zstd'", "package", "not installed")
    assert [says(str(skipped), *facts) for skipped in found.unopened] == ([] if there else [True])


def is_there(name: str) -> bool:
    with suppress(ImportError):
        importlib.import_module(name)
        return True
    return False


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"\x00\x01\x02" * 9, "sdch", "unknown content encoding 'sdch'"),
        (
            b"\x00\x01\x02" * 9,
            "gzip",
            "the header specifies content encoding 'gzip', but the body is invalid: ",
        ),
        (
            GZIP[:-12],
            "gzip",
            "the header specifies content encoding 'gzip', but the body is invalid: the data is truncated",
        ),
        (
            GZIP + GZIP,
            "gzip",
            "the header specifies content encoding 'gzip', but the body is invalid: unexpected data after the end",
        ),
        (
            zlib.compress(GZIP)[:-9],
            "gzip, deflate",
            "the header specifies content encoding 'deflate', but the body is invalid: ",
        ),
        (gzip.compress(b"\x00\x01\x02" * 9, mtime=0), "zz, gzip", "unknown content encoding 'zz'"),
        (
            gzip.compress(b"a" * 20_000, mtime=0),
            "gzip",
            "the header specifies content encoding 'gzip', but the body is invalid: the decoded body is larger than",
        ),
        (GZIP, "", "the body is not UTF-8 text"),
    ],
    ids=lambda part: part[:2].hex() if isinstance(part, bytes) else None,
)
def test_a_body_that_cannot_be_opened_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, encoding: str, reason: str
) -> None:
    monkeypatch.setattr(bodies, "LARGEST", 10_000)
    (skipped,) = scan(written(tmp_path, body, encoding)).unopened
    assert str(skipped).startswith(f"{tmp_path}/it.yaml:2: skipped: {reason}")


@pytest.mark.parametrize("encoding", ["", "gzip", "identity", "br", "sdch"])
def test_a_body_that_its_client_has_opened_is_read_whatever_its_header_says(
    tmp_path: Path, encoding: str
) -> None:
    found = scan(written(tmp_path, b'{"note": "nothing"}', encoding))
    assert (found.leaks, found.unopened) == ([], [])


def test_a_file_that_is_no_text_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, body in (("a.json.gz", GZIP), ("b.txt", "the key".encode("utf-16"))):
        (tmp_path / name).write_bytes(body)
        with pytest.raises(SystemExit) as ended:
            main(["cassette", "scan", str(tmp_path / name)])
        assert ended.value.code == 1
        assert capsys.readouterr().err.startswith(f"{tmp_path / name}:1: skipped: not UTF-8 text\n")


def test_pipes_and_devices_are_skipped_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "it.yaml").write_text("a: 1\n")
    with pytest.raises(SystemExit) as ended:
        main(["cassette", "scan", str(tmp_path)])
    assert ended.value.code == 0
    loop, pipe, total = capsys.readouterr().err.split("\n")[:3]
    assert says(loop, f"{tmp_path}/loop.yaml: ", "skipped", "symbolic link", "itself")
    assert says(pipe, f"{tmp_path}/pipe.yaml: ", "skipped: a pipe")
    assert says(total, "1 file", "0 credentials")
    assert files_under([tmp_path])[0] == [tmp_path / "it.yaml"]


def test_a_pipe_or_device_that_is_named_itself_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a pipe"), (Path("/dev/null"), "a device")):
        with pytest.raises(SystemExit) as ended:
            main(["cassette", "scan", str(path)])
        assert ended.value.code == 2
        assert says(capsys.readouterr().err, f"{path}: ", "file or folder", f"found {kind}")


def test_what_only_looks_odd_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(
        "note: 'the password: 4f9Qm2Zr8TtYw1Lk7Xc3'\n"
        "code: print(f'token={token!r}')\n"
        "name: token-bucket-rate-limiter-1.2.3\n"
        "sha: 9f86d081884c7d659a2feaa0c55ad015\n"
        "set: 'SECRET=b64/4f9Qm2Zr8TtYw1Lk7Xc3+='\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["cassette", "scan", str(path)])
    assert ended.value.code == 0
    told = capsys.readouterr()
    first, second = told.out.splitlines()
    assert says(first, f"{path}:1", "warning", "secret", "4f9Q…")
    assert says(second, f"{path}:5", "warning", "secret", "b64/…")
    assert says(told.err, "1 file", "0 credentials", "2 warnings")


@pytest.mark.parametrize(
    "unit", ["Authorization: Basic ", "password: 4f9Qm2Zr8TtYw1Lk7Xc3 ", f"{OF_GROQ}\n", "a='"]
)
@pytest.mark.parametrize("name", ["it.log", "it.env", "it.yaml"])
def test_scanning_is_linear_in_what_is_scanned(tmp_path: Path, unit: str, name: str) -> None:
    """Ten times the text takes hours where a rule is not linear."""
    path = tmp_path / name
    path.write_text(unit * (400_000 // len(unit)))
    assert isinstance(scan(path), Scanned)


def test_settings_count_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1\nexport DB_PASSWORD='plum tree'\nMAX_TOKENS=5\nAPI_KEY=<key>\n")
    assert [(leak.line, leak.kind) for leak in scan(path).leaks] == [(2, "a value named 'DB_PASSWORD'")]


def test_a_value_that_another_hides_is_read(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text("a:\n  password: 1x9Qw\n  password: null\n")
    assert [leak.line for leak in scan(path).leaks] == [2]


def test_a_file_that_is_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "LARGEST", 10)
    path = tmp_path / "it.yaml"
    path.write_text("a: 12345678901\n")
    with pytest.raises(Skipped, match=line_with("15 bytes", "limit of 10")):
        scan(path)


@pytest.mark.parametrize("name", [".env", ".env.local", ".ENV", "it.YAML", "it.Json", "it.LOG"])
def test_a_folder_s_file_is_scanned_whatever_the_case_of_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_text("API_KEY=sk-proj-4f9Qm2Zr8TtYw1Lk7Xc3Vb6N\n")
    (tmp_path / "deep" / "it.envelope").write_text("none\n")
    assert files_under([tmp_path]) == ([tmp_path / "deep" / name], [])
    assert [leak.line for leak in scan(tmp_path / "deep" / name).leaks] == [1]


def test_a_part_of_a_form_behind_one_without_a_name_is_read() -> None:
    unnamed = "Content-Disposition: form-data; x\n"
    text = f'{unnamed}--B\r\nContent-Disposition: form-data; name="password"\r\n\r\ns1gBa8lP\r\n--B--\r\n'
    assert "s1gBa8lP" not in replaced(text, in_body(text, media_type="multipart/form-data"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a: 1\n{OF_GROQ}: yes\n", 2),
        (f"a:\n  b:\n    {OF_GROQ}: [1]\n", 3),
        (f"a: 1\nb: 2  # {OF_GROQ}\n", 2),
        (f'a: "x # y"  # it is {OF_GROQ}\n', 1),
        ("a: 1\npassword: plum\n", 2),
        ("a: 1\npasswords: [plum]\n", 2),
        ("headers:\n  x-api-key:\n  - plum\n", 3),
    ],
)
def test_the_scan_reads_keys_comments_and_values_by_name(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(text, "utf-8")
    assert [leak.line for leak in scan(path).leaks] == [line]


def test_the_scan_takes_numbers_for_no_secrets_and_tells_a_value_with_a_hash_once(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(f"max_tokens: 4096\ntoken: 50\npassword: 71828182\nnote: 'see # {OF_GROQ}'\n", "utf-8")
    assert [leak.line for leak in scan(path).leaks] == [4]


def test_encoded_values_that_cannot_be_read_are_told_and_the_rest_is_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    key = "sk-proj-" + "A1b2C3d4E5f6G7h8" * 3
    body = base64.b64encode(key.encode()).decode()
    path.write_text(
        f"interactions:\n- response: {{body: !!binary {body}}}\n- response: {{body: !!binary abc}}\nnote: {key}\n"
    )
    found = scan(path)
    assert says(str(found.unopened[0]), f"{path}:3", "skipped", "encoded values", "YAML")
    assert [leak.line for leak in found.leaks] == [4]


def test_a_file_that_is_no_yaml_and_has_nothing_encoded_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text("a: b: c\n")
    assert scan(path) == Scanned([], [])


@pytest.mark.parametrize(
    ("authorization", "is_found"),
    [
        ("Bearer test_openai_api_key", False),
        ("Bearer my-fake-key", False),
        ("Bearer ['scrubbed']", False),
        ("%5B%27scrubbed%27%5D", False),
        ("Bearer test_8f31c0d2", True),
        ("Bearer contest_key", True),
        ("Bearer attest-a-b-c-d-e-f", True),
    ],
)
def test_a_made_up_key_in_words_is_a_placeholder(
    tmp_path: Path, authorization: str, *, is_found: bool
) -> None:
    path = tmp_path / "it.yaml"
    request = Request(
        method="GET", uri="https://api.test/v1/models", headers=(("authorization", authorization),)
    )
    path.write_text(rendered([Exchange(request=request, response=Response(status=200))]), "utf-8")
    assert [leak.kind for leak in scan(path).leaks] == ["a value named 'authorization'"] * is_found


def test_versions_of_packages_are_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_text('{"info": {"tiktoken": "0.7.0", "PyJWT": "2.9.0", "my_token": "0.7.0"}}', "utf-8")
    assert [leak.kind for leak in scan(path).leaks] == ["a value named 'my_token'"]


def test_the_text_in_a_bedrock_stream_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    frame = b'\x00\x00\x00\xc1\xff{"text": "use gsk_' + b"4f9Qm2Zr8TtYw1Lk7Xc3Vb6N" * 2 + b'AbCd"}\xfe\x00'
    response = Response(
        status=200, headers=(("Content-Type", "application/vnd.amazon.eventstream"),), body=frame
    )
    request = Request(method="POST", uri="https://api.test/model/it/converse-stream")
    path.write_text(rendered([Exchange(request=request, response=response)]), "utf-8")
    found = scan(path)
    assert ([leak.kind for leak in found.leaks], found.unopened) == (["a Groq API key"], [])
