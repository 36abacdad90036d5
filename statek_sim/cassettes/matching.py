"""Compares requests by method, URL and canonical JSON body, leaving out ignored parts.

Unlike in vcrpy, the body is compared by default, so that a changed prompt does not get the old answer. Headers are
never compared, because they contain keys, versions and ids that do not affect the answer. `REDACTED` in a recording
matches any value; as part of a string, it matches one word without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from statek_sim.cassettes.bodies import NotJson, canonical, parsed
from statek_sim.cassettes.exchange import Request, header
from statek_sim.cassettes.redaction import comparable
from statek_sim.cassettes.secret_detection import PLACEHOLDER
from statek_sim.cassettes.secret_patterns import NO_OWN, OwnSecrets, is_secret_member, is_secret_parameter
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.values import JSON

PARTS: Final = ("body", "host", "path", "port", "query", "scheme")
"""Parts that can be ignored as a whole, besides paths in a JSON body (`body.…`) and parameters (`query.…`)."""

ANY: Final = "*"
_STEPS: Final = re.compile(r"(?:\.[^.\[\]]+|\[(?:\d+|\*)\])+")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]")
_BOUNDARY: Final = re.compile(r'boundary="?([^";,]+)', re.IGNORECASE)
_ONE_WORD: Final = r"[^\s&\"'<>]*"
_PORTS: Final = {"http": 80, "https": 443}

Address = tuple[tuple[str, JSON], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The compared parts of a request: the method, the URL's parts keyed by name, and the body as JSON or text."""

    method: str
    address: Address
    body: JSON
    is_json: bool

    def fits(self, request: Compared) -> bool:
        """Return whether a request equals this recorded request, where `REDACTED` matches any value."""
        names = [name for name, _ in self.address]
        if (self.method, self.is_json, names) != (
            request.method,
            request.is_json,
            [name for name, _ in request.address],
        ):
            return False
        parts = zip(self.address, request.address, strict=True)
        try:
            return all(_fits_part(name, old, new) for (name, old), (_, new) in parts) and _fits(
                self.body, request.body
            )
        except RecursionError:
            return False


@dataclass(frozen=True, slots=True)
class Matching:
    """The parts of a request that are not compared; created by `ignoring`, which checks the names.

    `own` holds the user's names and patterns of secrets, which are redacted in a request before the comparison.
    """

    ignored: tuple[str, ...] = ()
    _parts: frozenset[str] = frozenset()
    _places: tuple[tuple[str, ...], ...] = ()
    own: OwnSecrets = NO_OWN

    @classmethod
    def ignoring(cls, names: Iterable[str] = (), *, own: OwnSecrets = NO_OWN) -> Self:
        """Return a comparison that ignores these parts, such as `port`, `query.trace` or `body.messages[*].id`.

        `*` matches any key or index. Raises `BadInput` for an invalid name.
        """
        ignored = tuple(sorted(set(names)))
        for name in ignored:
            _check(name)
        return cls(
            ignored,
            frozenset(name for name in ignored if not _is_place(name)),
            tuple(_steps(name.removeprefix("body")) for name in ignored if _is_place(name)),
            own,
        )

    def fingerprint(self, request: Request) -> str:
        """Return a digest of 32 hexadecimal digits that is the same for equal requests."""
        seen = self.compared(request)
        text = canonical([seen.method, [list(part) for part in seen.address], seen.is_json, seen.body])
        return blake2b(text.encode("ascii"), digest_size=16).hexdigest()

    def compared(self, request: Request) -> Compared:
        """Return the compared parts of a request, with secrets redacted as in recordings."""
        clean = comparable(request, self.own)
        body, is_json = self._body(clean)
        return Compared(clean.method.upper(), self._address(clean.uri), body, is_json)

    def _address(self, uri: str) -> Address:
        parts = address_of(uri)
        if not self._parts:
            return parts
        return tuple(
            (name, value)
            for name, value in parts
            if name.partition(".")[0] not in self._parts and name not in self._parts
        )

    def _body(self, request: Request) -> tuple[JSON, bool]:
        if "body" in self._parts:
            return None, True
        try:
            value = parsed(request.body)
        except NotJson:
            return _plain_text(request), False
        return _without(value, self._places), True


@lru_cache(maxsize=4096)
def address_of(uri: str) -> Address:
    """Return an absolute URL's parts, keyed by name; parameters are named `query.NAME` and sorted by name.

    The user name and fragment are omitted. Raises `ValueError` for a URL without a host or with an invalid port.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme.lower()
    if not parts.hostname:
        raise ValueError(f"expected an absolute URL such as https://host/path, got {uri!r}")
    # Servers ignore the order of different names.
    query = sorted(parse_qsl(parts.query, keep_blank_values=True), key=lambda pair: pair[0])
    return (
        ("scheme", scheme),
        ("host", parts.hostname),
        ("port", parts.port or _PORTS.get(scheme, 0)),
        ("path", parts.path or "/"),
        *((f"query.{name}", value) for name, value in query),
    )


def has_redacted_place(request: Request) -> bool:
    """Return whether a recorded request contains `REDACTED`, which matches any value, in its URL or body."""
    return PLACEHOLDER in request.uri or PLACEHOLDER.encode("ascii") in request.body


def _fits_part(name: str, recorded: JSON, now: JSON) -> bool:
    if name == "path" and isinstance(recorded, str) and isinstance(now, str):
        return _fits([*recorded.split("/")], [*now.split("/")])
    return _fits(recorded, now, is_secret=is_secret_parameter(name.removeprefix("query.")))


def _fits(recorded: JSON, now: JSON, *, is_secret: bool = False) -> bool:
    if isinstance(recorded, dict) and isinstance(now, dict):
        return recorded.keys() == now.keys() and all(
            _fits(value, now[name], is_secret=is_secret_member(name)) for name, value in recorded.items()
        )
    if isinstance(recorded, list) and isinstance(now, list):
        return len(recorded) == len(now) and all(
            _fits(old, new, is_secret=is_secret) for old, new in zip(recorded, now, strict=True)
        )
    if isinstance(recorded, str) and PLACEHOLDER in recorded:
        whole = is_secret and recorded == PLACEHOLDER and not isinstance(now, dict | list)
        return whole or (isinstance(now, str) and _fits_text(recorded, now))
    return recorded == now and type(recorded) is type(now)


def _fits_text(recorded: str, now: str) -> bool:
    """Return whether a string equals the recorded text, in which each `REDACTED` matches one word or nothing."""
    parts = map(re.escape, recorded.split(PLACEHOLDER))
    return re.fullmatch(_ONE_WORD.join(parts), now) is not None


def _check(name: str) -> None:
    if name in PARTS or (_is_place(name) and _STEPS.fullmatch(name.removeprefix("body"))):
        return
    if name.startswith("query.") and len(name) > len("query."):
        return
    expected = f"{', '.join(PARTS)}, query.NAME or a path in the body such as body.metadata.run"
    raise BadInput(f"cannot ignore {name!r}; expected {expected}.{suggestion(name, PARTS)}")


def _is_place(name: str) -> bool:
    return name.startswith(("body.", "body["))


def _steps(path: str) -> tuple[str, ...]:
    """Return the keys and indexes in a body path, such as `.messages[*].id`."""
    return tuple(key or position for key, position in _STEP.findall(path))


def _without(value: JSON, places: Sequence[tuple[str, ...]]) -> JSON:
    """Return `value` without the values at `places`; in a list, None replaces a value."""
    if not places:
        return value
    if isinstance(value, dict):
        below = {key: _below(key, places) for key in value}
        return {key: _without(item, below[key]) for key, item in value.items() if () not in below[key]}
    if isinstance(value, list):
        inner = [_below(str(number), places) for number in range(len(value))]
        while inner and () in inner[-1]:
            inner.pop()
        return [
            None if () in rest else _without(item, rest) for item, rest in zip(value, inner, strict=False)
        ]
    return value


def _below(step: str, places: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [place[1:] for place in places if place and place[0] in (ANY, step)]


def _plain_text(request: Request) -> str:
    """Return a non-JSON body as text, with a fixed word in place of a multipart form's random boundary."""
    text = request.body.decode("utf-8", "surrogateescape")
    found = _BOUNDARY.search(header(request.headers, "content-type") or "")
    return text.replace(found.group(1), "boundary") if found else text
