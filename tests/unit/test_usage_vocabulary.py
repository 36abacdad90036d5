"""The vendored vocabularies are tiktoken's, bit for bit, and load without a network."""

from __future__ import annotations

import hashlib
import importlib.util
import socket
from pathlib import Path
from types import ModuleType

import pytest
import tiktoken
import tiktoken.registry

from statek_sim.errors import BadInput
from statek_sim.usage.vocabularies import VOCABULARIES, TokenTable, load_encoding, load_table

ROOT = Path(__file__).resolve().parents[2]

PINNED = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


def tokens_of(name: str) -> list[bytes]:
    """Return the tokens of a vocabulary in rank order."""
    ranks = load_table(name).ranks()
    return sorted(ranks, key=ranks.__getitem__)


def _build_vocab() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_vocab", ROOT / "tools" / "build_vocab.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(PINNED))
def test_the_original_file_rebuilt_from_ours_has_the_digest_that_tiktoken_pins(name: str) -> None:
    assert hashlib.sha256(_build_vocab().tiktoken_file(tokens_of(name))).hexdigest() == PINNED[name]
    assert VOCABULARIES[name].sha256 == PINNED[name]


@pytest.mark.parametrize(("name", "ids"), [("cl100k_base", [15339, 1917]), ("o200k_base", [24912, 2375])])
def test_hello_world_has_the_known_token_ids(name: str, ids: list[int]) -> None:
    assert load_encoding(name).encode_ordinary("hello world") == ids


@pytest.mark.parametrize("name", sorted(PINNED))
def test_an_encoding_decodes_what_it_encoded(name: str) -> None:
    text = "Zażółć gęślą jaźń, 你好, 😀 — def f(x):\n\treturn x * 1234567  # don't\r\n   "
    encoding = load_encoding(name)
    assert encoding.decode(encoding.encode_ordinary(text)) == text


def test_loading_uses_neither_the_network_nor_tiktokens_cache_nor_its_registry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def forbidden(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", forbidden)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    registered = dict(tiktoken.registry.ENCODINGS)
    load_encoding.cache_clear()
    encoding = load_encoding("cl100k_base")
    assert encoding.name == "statek_sim/cl100k_base"
    assert list(tmp_path.iterdir()) == []
    assert registered == tiktoken.registry.ENCODINGS
    assert not [name for name in tiktoken.list_encoding_names() if "statek" in name]


def test_an_encoding_is_built_once() -> None:
    assert load_encoding("o200k_base") is load_encoding("o200k_base")


def test_an_unknown_vocabulary_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(
        BadInput, match=r"^unknown vocabulary 'p50k_base'; expected one of cl100k_base, o200k_base$"
    ):
        load_table("p50k_base")


def test_packing_and_unpacking_keep_tokens_and_their_order() -> None:
    tokens = [b"\x00", b"\n", b"b" * 255, b"a"]
    table = TokenTable(_build_vocab().pack_tokens(tokens))
    assert table.ranks() == {token: rank for rank, token in enumerate(tokens)}
    assert [table.rank(token) for token in tokens] == [0, 1, 2, 3]
    assert [table.rank(missing) for missing in (b"", b"b", b"aa", b"c" * 255)] == [None] * 4


def test_the_build_tool_makes_the_vendored_file_from_the_original() -> None:
    tool = _build_vocab()
    raw = _build_vocab().tiktoken_file(tokens_of("cl100k_base"))
    vendored = (ROOT / "statek_sim" / "usage" / "vocab" / "cl100k_base.tokens").read_bytes()
    assert tool.build(VOCABULARIES["cl100k_base"], raw) == vendored


def test_the_build_tool_refuses_a_file_that_is_not_the_original(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "cl100k_base.tiktoken").write_bytes(b"IQ== 0\n")
    assert _build_vocab().main([str(tmp_path), str(tmp_path)]) == 2
    assert "cl100k_base: SHA-256" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cl100k_base.tiktoken"]


def test_the_build_tool_refuses_ranks_with_a_gap() -> None:
    with pytest.raises(ValueError, match=r"^line 2: rank 2, expected 1$"):
        _build_vocab().parse_tiktoken_file(b"IQ== 0\nIg== 2\n")
