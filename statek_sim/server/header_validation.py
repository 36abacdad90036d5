"""What the head of a request must say before it is read on: pure functions of a head, in the words of RFC 9112."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

_VERSIONS: Final = ("1.0", "1.1")
_HOST: Final = re.compile(
    r"(?:\[(?:[0-9A-Fa-f:.]+(?:%[\w.~%-]+)?|[vV][0-9A-Fa-f]+\.[\w.~!$&'()*+,;=:-]+)\]"
    r"|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)"
    r"(?::[0-9]*)?",
    re.ASCII,
)
"""`uri-host [":" port]`: an address in brackets, or a name, which may be empty. Two hosts have `, ` between them."""


def head_problem(version: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
    """Return the status and the reason for a head that is not to be read on; None when there is none."""
    if version not in _VERSIONS:
        return 400, f"this is no HTTP/1.1 request: it says version {version}"
    host = headers.get("host")
    if host is None and version != "1.0":
        return 400, "this is no HTTP/1.1 request: it has no Host header"
    if host is not None and not _is_host(host):
        return 400, f"expected one host in the Host header, got {host[:80]!r}"
    encoding = headers.get("transfer-encoding", "chunked")
    if encoding.lower() != "chunked":
        return 501, f"of transfer encodings only chunked is read here, not {encoding[:80]!r}"
    return None


@lru_cache(maxsize=256)
def _is_host(host: str) -> bool:
    return _HOST.fullmatch(host) is not None


def speaks_another(raw: bytes | bytearray, target: bytes) -> bool:
    """Tell whether the request for `target` in `raw` names RTSP or ICE, which llhttp reads as if they were HTTP.

    What a body says about such a line is not meant: JSON has no line break in its strings.
    """
    if b"RTSP/" not in raw and b"ICE/" not in raw:
        return False
    return re.search(b" " + re.escape(target) + rb" (?:RTSP|ICE)/[0-9.]+\r\n", raw) is not None


_CODING: Final = re.compile(rb"\ntransfer-encoding:[ \t]*chunked[ \t]+", re.IGNORECASE)


def with_spaces(before: bytes | bytearray, raw: bytes) -> bytes:
    """Return `raw`, which comes behind `before`, with spaces for the tabs behind a transfer encoding `chunked`.

    Both may stand around a value (RFC 9110, 5.5); llhttp takes the spaces alone. What a body says about such a line is
    not meant here either.
    """
    spaced = _CODING.sub(lambda found: found[0].replace(b"\t", b" "), before + raw)
    return bytes(spaced[len(before) :])


_SIZE: Final = re.compile(rb"(?:^|\r\n)([0-9A-Fa-f]+)[ \t]*(?:;[^\r\n]*)?\r\n\Z")


def chunk_size(raw: bytes) -> int:
    """Return the bytes that a chunk has whose size is the last line of `raw`; 0 when that line is no size."""
    found = _SIZE.search(raw)
    return int(found[1], 16) if found else 0
