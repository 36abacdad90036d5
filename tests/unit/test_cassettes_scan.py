"""The scan reads what the recorder does, within bounds, and takes nothing harmless for a secret."""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import SupportsIndex

import pytest

from statek_sim.cassettes import bodies, secrets, view
from statek_sim.cassettes import scan as scanning
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.members import leaves
from statek_sim.cassettes.names import looks_random
from statek_sim.cassettes.own_secrets import OwnSecrets
from statek_sim.cassettes.reading import Tangled, Work, read, read_whole, replaced
from statek_sim.cassettes.scan import Scanned, Skipped, files_under, scan, scanned
from statek_sim.cli import main
from tests.property.planted import ANYWHERE, NAMED, odd, shaped

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("place", [*ANYWHERE, *NAMED])
def test_the_scan_finds_what_the_recorder_would_have_replaced(tmp_path: Path, place: str) -> None:
    path = tmp_path / "it.yaml"
    for number in range(6):
        random = Random(f"{place} {number}")
        one = (
            ANYWHERE[place](random, shaped(random))
            if place in ANYWHERE
            else NAMED[place](random, odd(random))
        )
        text = rendered([one])
        if (
            one.request.body
            or one.response.body
            or place not in ("a header", "a folded header", "the reason")
        ):
            path.write_text(text, "utf-8", newline="")
            assert scan(path), text


@pytest.mark.parametrize(
    "compress",
    [
        zlib.compress,
        partial(zlib.compress, level=1),
        gzip.compress,
        lambda body: gzip.compress(gzip.compress(body)),
    ],
)
def test_compressed_bodies_that_other_tools_kept_are_opened(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "it.yaml"
    for number in range(20):
        body = f'{{"note": "{shaped(Random(f"compressed {number}"))}"}}'.encode()
        kept = base64.b64encode(compress(body)).decode()
        path.write_text(
            f"interactions:\n- response:\n    body:\n      string: !!binary {kept}\nversion: 1\n", "utf-8"
        )
        assert scan(path), body


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
    headers = f"\n      content-encoding: [{encoding}]" if encoding else " {}"
    path.write_text(
        f"interactions:\n- response:\n    headers:{headers}\n    body:\n      string: !!binary {kept}\nversion: 1\n"
    )
    return path


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
    found = scanned(written(tmp_path, ZSTD, "zstd"))
    there = installed == "own" or (installed != "none" and any(map(is_there, packages)))
    assert [leak.kind for leak in found.leaks] == (["a Groq API key"] if there else [])
    assert [str(skipped).removeprefix(f"{tmp_path}/it.yaml") for skipped in found.unopened] == (
        [] if there else [":6: skipped: content encoding 'zstd' needs a package that is not installed"]
    )


def is_there(name: str) -> bool:
    with suppress(ImportError):
        importlib.import_module(name)
        return True
    return False


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"\x00\x01\x02" * 9, "sdch", "content encoding 'sdch' is not known here"),
        (b"\x00\x01\x02" * 9, "gzip", "the body is not the 'gzip' that its header says: "),
        (GZIP[:-12], "gzip", "the body is not the 'gzip' that its header says: it ends too early"),
        (GZIP[:-12], "", "the body is not the 'gzip' that its header says: it ends too early"),
        (GZIP[:30] + b"\xff\xff" + GZIP[32:], "", "the body is not the 'gzip' that its header says: "),
        (zlib.compress(GZIP)[:-9], "gzip, deflate", "the body is not the 'deflate' that its header says: "),
        (gzip.compress(b"\x00\x01\x02" * 9, mtime=0), "zz, gzip", "content encoding 'zz' is not known here"),
        (gzip.compress(b"a" * 20_000, mtime=0), "gzip", "a compressed body has more than 10000 bytes in it"),
        (gzip.compress(b"a" * 20_000, mtime=0), "", "a compressed body has more than 10000 bytes in it"),
        (zlib.compress(b"a" * 20_000), "", "a compressed body has more than 10000 bytes in it"),
    ],
    ids=lambda part: part[:2].hex() if isinstance(part, bytes) else None,
)
def test_a_body_that_cannot_be_opened_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, encoding: str, reason: str
) -> None:
    monkeypatch.setattr(scanning, "MOST_CHARACTERS", 10_000)
    (skipped,) = scanned(written(tmp_path, body, encoding)).unopened
    assert skipped.line == (6 if encoding else 5)
    assert str(skipped).startswith(f"{tmp_path}/it.yaml:{skipped.line}: skipped: {reason}")


@pytest.mark.parametrize("encoding", ["", "gzip", "identity", "br", "sdch"])
def test_a_body_that_its_client_has_opened_is_read_whatever_its_header_says(
    tmp_path: Path, encoding: str
) -> None:
    found = scanned(written(tmp_path, b'{"note": "nothing"}', encoding))
    assert (found.leaks, found.unopened) == ([], [])


def test_a_file_that_is_compressed_is_opened_or_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, cut = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    good.write_bytes(gzip.compress(b'{"password": "1x9Qw"}'))
    cut.write_bytes(GZIP[:-12])
    with pytest.raises(SystemExit) as ended:
        main(["cassette", "scan", str(good), str(cut)])
    assert ended.value.code == 1
    told = capsys.readouterr()
    assert told.out == f"{good}:1: a value named 'password': 1x9Q…\n"
    assert told.err.split("\n")[0] == (
        f"{cut}:1: skipped: the body is not the 'gzip' that its header says: it ends too early"
    )


@pytest.mark.parametrize("before", ["", ".", "a.b.", "=1.", "see. ", ".eyJ", "x.eyJ0."])
def test_a_web_token_is_found_behind_any_full_stop(before: str) -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.b1n9qPz3m7yC2w8Lr5Tk"
    assert replaced(f"{before}{token}, yes", read(f"{before}{token}, yes")).endswith("REDACTED, yes")


def test_pipes_and_devices_are_skipped_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "it.yaml").write_text("a: 1\n")
    with pytest.raises(SystemExit) as ended:
        main(["cassette", "scan", str(tmp_path), "/dev/null"])
    assert ended.value.code == 0
    assert capsys.readouterr().err.split("\n")[:4] == [
        f"{tmp_path}/loop.yaml: skipped: a symbolic link that leads to itself",
        f"{tmp_path}/pipe.yaml: skipped: a pipe",
        "/dev/null: skipped: a device",
        "1 file scanned, 0 credentials found",
    ]
    assert files_under([tmp_path])[0] == [tmp_path / "it.yaml"]


def test_aliases_that_multiply_are_not_followed_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MOST_VALUES", 20_000)
    path = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    path.write_text("\n".join(lines) + "\n")
    assert path.stat().st_size < 1024
    with pytest.raises(SystemExit) as ended:
        main(["cassette", "scan", str(path)])
    assert ended.value.code == 1
    assert (
        "bomb.yaml: not scanned: its values, with aliases, are more than are looked into"
        in capsys.readouterr().err
    )


def test_a_value_that_another_hides_is_read(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text("a:\n  password: 1x9Qw\n  password: null\n")
    assert [leak.line for leak in scan(path)] == [2]


def test_a_file_that_is_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "LARGEST", 10)
    path = tmp_path / "it.yaml"
    path.write_text("a: 12345678901\n")
    with pytest.raises(Skipped, match=r"^15 bytes are more than the 10 that are looked into$"):
        scan(path)


@pytest.mark.parametrize("name", [".env", ".env.local", ".ENV", "it.YAML", "it.Json", "it.LOG"])
def test_a_folder_s_file_is_scanned_whatever_the_case_of_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_text("API_KEY=sk-proj-4f9Qm2Zr8TtYw1Lk7Xc3Vb6N\n")
    (tmp_path / "deep" / "it.envelope").write_text("none\n")
    assert files_under([tmp_path]) == ([tmp_path / "deep" / name], [])
    assert [leak.line for leak in scan(tmp_path / "deep" / name)] == [1]


class Copied(str):
    """A text that counts the characters of its slices."""

    copied = 0

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        found = super().__getitem__(place)
        self.copied += len(found)
        return found


def test_a_text_in_several_encodings_is_read_once_however_they_are_undone() -> None:
    """Percent signs, references and escapes can be undone in any order, and each order comes to the same texts."""
    member = json.dumps({"page": '<a href="/x?a=%20b&amp;c=%2520d&amp;amp;e">"\\u0041"</a>', "next": "/y"})
    text = "\n".join([member] * 300)
    work = Work(len(text))
    assert read_whole(text, work=work) == []
    # Two layers of percent signs, two of references, two of escapes: 27 texts at most, and those of the members.
    assert work.spent < 45 * len(text)


LINK = '<a href="/x?a=%20b&amp;c=%2520d&amp;amp;e">"\\u0041"</a>\n'


def page(size: int, link: str = LINK) -> str:
    """Return a page of about so many characters, with a link at its start and at its end."""
    line = '<p class="x">The quick brown fox (12 of them) jumps; "[1]", 3 and {x: y}</p>\n'
    return link + line * (size // len(line)) + link


def test_a_large_page_is_not_read_again_where_nothing_is_encoded() -> None:
    spent = []
    for size in (400_000, 800_000):
        work = Work(size)
        assert read_whole(page(size), work=work) == []
        spent.append(work.spent)
    # As it stands, its texts in quotes, and some kilobytes around each link, however large the page is.
    assert spent[1] - spent[0] < 1.6 * 400_000
    assert spent[0] < 3 * 400_000


def test_a_page_with_a_secret_is_read_once_however_its_encodings_are_undone() -> None:
    text = LINK * 300
    plain, secret = Work(len(text)), Work(len(text))
    assert read_whole(text, work=plain) == []
    assert read_whole(text + "db_password=1x9Qw", work=secret) != []
    assert secret.spent < 1.1 * plain.spent


@pytest.mark.parametrize("place", [*ANYWHERE, *NAMED])
def test_a_large_body_hides_nothing_that_a_small_one_does_not(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Of a large text only the parts around what is encoded are read without that: the same as of all of it."""
    random = Random(f"large {place}")
    how, drawn = (ANYWHERE[place], shaped) if place in ANYWHERE else (NAMED[place], odd)
    one = how(random, drawn(random))
    body = (one.request.body or one.response.body).decode("utf-8", "replace")
    link = '<a href="/x?a=%20b&amp;c">"\\u0041"</a>\n'
    text = page(random.randrange(4_000, 7_000), link) + body + page(random.randrange(4_000, 7_000), link)
    whole = replaced(text, read_whole(text))
    monkeypatch.setattr(view, "LARGE", 1_000)
    monkeypatch.setattr(view, "AROUND", 1_200)
    assert replaced(text, read_whole(text)) == whole


def test_a_secret_in_several_encodings_is_found_in_each_place_where_it_is() -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 4
    hidden = secret.replace("-", "%2D").replace("a1", "a&#49;")
    pages = [json.dumps({"page": f"a=%20b&amp;c={hidden}", "number": number}) for number in range(5)]
    text = "\n".join(pages)
    assert text.count("a&#49;") == 20
    assert "B2c3D4" not in replaced(text, read(text))


def test_names_in_a_row_are_not_each_judged_by_all_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def counting(value: str) -> bool:
        judged.append(len(value))
        return looks_random(value)

    monkeypatch.setattr(secrets, "looks_random", counting)
    text = "key-" * 5_000
    assert not read(text)
    assert 0 < sum(judged) <= 80 * len(text)


def test_a_long_random_text_beside_a_name_is_replaced_to_its_end() -> None:
    token = "".join(Random(5).choices("abcdefghijABCDEFGHIJ0123456789", k=1_000))
    assert replaced(f"the key is {token}, keep it", read(f"the key is {token}, keep it")) == (
        "the key is REDACTED, keep it"
    )


@pytest.mark.parametrize("word", ["data", "event", "id", "retry"])
def test_words_of_events_in_an_open_frame_do_not_copy_what_is_before_them(word: str) -> None:
    text = Copied("[" + f"{word} 1 " * 500)
    assert len(leaves(text)) == 501
    assert text.copied <= len(text)


def test_an_event_after_a_blank_line_closes_what_is_open() -> None:
    found = leaves('data: {"a": ["b", \n\ndata: {"a": "c"}')
    assert [leaf.label for leaf in found] == [("a", 0), ("a",)]


UNITS = (
    "sk-", "'pwd':'", "\\'pwd\\':\\'", "\\", "eyJ-", ".eyJaaaaaaaaaaaa", "://a:b", "password=", '{"a":[', "%25",
    '"token":', "-----BEGIN PRIVATE KEY-----", 'data: {"a":"b"}\n\n', "basic ", "key ", "&amp;", "\\u0041", "A-Z.",
    "aaaaaaaaaaaaaaaa=", "[", "token='", '\\\\"', 'Content-Disposition: form-data; name="a"\r\n\r\n',
    "key-", 'content-disposition: ; name="', "content-disposition: a;",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_reading_is_linear_in_what_is_read(unit: str) -> None:
    """Ten times the text takes hours where a rule is not linear; what has too many layers is refused."""
    text = unit * (500_000 // len(unit))
    with suppress(Tangled):
        assert isinstance(read(text), list)


HARMLESS: list[object] = [
    {"usage": {"prompt_tokens": 12, "total_tokens": 19, "prompt_tokens_details": {"cached_tokens": 0}}},
    {"max_tokens": 100, "max_completion_tokens": 5, "stop_token": "<|end|>", "eos_token": "</s>", "pad_token": "[PAD]"},
    {"next_page_token": "CAUQAA1b2c3d4e5f6g7h", "continuationToken": "x1y2z3x1y2z3x1y2z3"},
    {"logprobs": {"content": [{"token": " P", "logprob": -1, "top_logprobs": [{"token": " L", "logprob": -2}]}]}},
    {"idempotency_key": "stainless-python-retry-0b5c1f2e-9d3a", "prompt_cache_key": "user-1234567890abcdef"},
    {"id": "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12", "sha": "9f86d081884c7d659a2feaa0c55ad015"},
    {"tools": [{"function": {"parameters": {"type": "object", "required": ["password"], "properties": {
        "password": {"type": "string", "description": "The user's password, 12 letters"},
        "api_key": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Api Key"}}}}}]},
    {"content": "client = OpenAI(api_key=os.environ['OPENAI_API_KEY'])\ntoken = settings.token\npassword = getpass()"},
    {"content": "def login(password: str, token: Token | None = None) -> bool: ...\nkey=lambda pair: pair[0]"},
    {"content": "The secret: there is none. Press any key to go on. Token: a piece of a word. The password is wrong."},
    {"image": "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4" * 40},
    {"key": "123e4567-e89b-12d3-a456-426614174000", "keys": ["a", "b"]},
    {"type": "thinking", "signature": "EqQBCgIYAhIkNDUxMjM0NTY3ODkwYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo="},
    {"password": "REDACTED", "token": "<token>", "secret": "***", "api_key": "${API_KEY}", "pwd": None},
    {"content": "pip install scikit-learn sk-learn risk-based-task-1-of-the-disk task-0123456789abcdefghijk"},
]  # fmt: skip


@pytest.mark.parametrize("value", HARMLESS)
def test_what_is_harmless_stays(value: object) -> None:
    for text in (
        json.dumps(value),
        json.dumps(value, indent=1),
        json.dumps({"arguments": json.dumps(value)}),
    ):
        assert read(text) == []


def test_nothing_in_our_own_documents_and_scenarios_looks_secret_but_examples() -> None:
    found = []
    for path in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("scenarios/**/*.yaml"), ROOT / "README.md"]):
        text = path.read_text("utf-8")
        found += [f"{path.name}: {text[one.ranges[0][0] : one.ranges[0][1]][:12]}" for one in read(text)]
    # A token in a scenario's script, a made-up key in a document's example, the tokens of questions to people.
    assert sorted({name.partition(":")[0] for name in found}) == [
        "blocks.yaml",
        "cassettes.md",
        "checkpoints.yaml",
        "escalation.md",
        "ladder.yaml",
        "people.yaml",
        "resuming.yaml",
    ]


def test_a_request_and_its_response_are_what_they_were_when_there_is_nothing_secret() -> None:
    from statek_sim.cassettes.scrub import scrubbed

    for value in HARMLESS:
        body = json.dumps(value).encode()
        one = Exchange(
            request=Request(method="POST", uri="https://h.test/v1?page=2&q=a%20b", body=body),
            response=Response(status=200, reason="OK", body=body),
        )
        assert scrubbed(one) == one


def test_a_part_of_a_form_behind_one_without_a_name_is_read() -> None:
    unnamed = "Content-Disposition: form-data; x\n"
    text = f'{unnamed}--B\r\nContent-Disposition: form-data; name="password"\r\n\r\ns1gBa8lP\r\n--B--\r\n'
    assert "s1gBa8lP" not in replaced(text, read(text))


OF_GROQ = "gsk_" + "4f9Qm2Zr8TtYw1Lk7Xc3Vb6N" * 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a: 1\n{OF_GROQ}: yes\n", 2),
        (f"a:\n  b:\n    {OF_GROQ}: [1]\n", 3),
        (f"a: 1\nb: 2  # {OF_GROQ}\n", 2),
        (f'a: "x # y"  # it is {OF_GROQ}\n', 1),
        ("a: 1\npassword: 71828182\n", 2),
        ("a: 1\npasswords: [71828182]\n", 2),
        ("- {name: password, value: 71828182}\n", 1),
    ],
)
def test_the_scan_reads_keys_comments_behind_values_and_numbers(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(text, "utf-8")
    assert [leak.line for leak in scan(path)] == [line]


def test_the_scan_takes_counts_for_no_secrets_and_tells_a_value_with_a_hash_once(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(f"max_tokens: 4096\ntoken: 50\npassword: 0\nnote: 'see # {OF_GROQ}'\n", "utf-8")
    assert [leak.line for leak in scan(path)] == [4]


def test_what_a_team_redacts_is_found_in_plain_text_and_in_comments(tmp_path: Path) -> None:
    own = OwnSecrets.of(
        redact=lambda place, text: text.replace("Cleo", "NAME").replace("from\nOslo", "PLACE")
    )
    note, document, lines = tmp_path / "note.txt", tmp_path / "a.yaml", tmp_path / "lines.log"
    note.write_text("Hello,\nthis is Cleo.\n")
    document.write_text("a: 1\nb: 2  # of Cleo\n")
    lines.write_text("she is from\nOslo\n")
    assert [(leak.line, leak.kind) for path in (note, document, lines) for leak in scan(path, own)] == [
        (2, "what statek_cassette_redact replaces"),
        (2, "what statek_cassette_redact replaces"),
        (1, "what statek_cassette_redact replaces"),
    ]


def test_encoded_values_that_cannot_be_read_are_told_and_the_rest_is_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    key = "sk-proj-" + "A1b2C3d4E5f6G7h8" * 3
    body = base64.b64encode(key.encode()).decode()
    path.write_text(
        f"interactions:\n- response: {{body: !!binary {body}}}\n- response: {{body: !!binary abc}}\nnote: {key}\n"
    )
    found = scanned(path)
    assert [str(unread) for unread in found.unopened] == [
        f"{path}:3: skipped: its encoded values cannot be read: !!binary: Incorrect padding"
    ]
    assert [leak.line for leak in found.leaks] == [2, 4]


def test_a_file_that_is_no_yaml_and_has_nothing_encoded_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text("a: b: c\n")
    assert scanned(path) == Scanned([], [])


def test_a_large_file_with_encoded_values_says_that_it_was_read_as_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statek_sim.cassettes.scan.LARGEST_YAML", 20)
    path = tmp_path / "large.yaml"
    path.write_text("body: !!binary aGVsbG8gdGhlcmU=\n")
    (unread,) = scanned(path).unopened
    assert "bytes are more than the 20 whose values are looked at" in str(unread)
