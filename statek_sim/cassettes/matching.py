"""Which requests count as the same: method, address and canonical JSON body, less what is ignored.

The body counts by default, unlike in vcrpy: a changed prompt must not get the old prompt's answer. Headers never
count: they hold keys, versions and ids that change without changing the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

from statek_sim.cassettes.endpoint import endpoint
from statek_sim.cassettes.exchange import Request, header
from statek_sim.cassettes.jsontext import NotJson, canonical, parsed
from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets
from statek_sim.cassettes.scrub import comparable, plain_uri
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.values import JSON

PARTS: Final = ("body", "host", "path", "port", "query", "scheme")
"""What can be ignored as a whole. `body.…` is a place in a JSON body, `query.…` a parameter."""

ANY: Final = "*"
_STEPS: Final = re.compile(r"(?:\.[^.\[\]]+|\[(?:\d+|\*)\])+")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]")
_BOUNDARY: Final = re.compile(r'boundary="?([^";,]+)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Compared:
    """What of a request is compared. `address` names its parts; a body that is not JSON is its text."""

    method: str
    address: tuple[tuple[str, JSON], ...]
    body: JSON
    is_json: bool


@dataclass(frozen=True, slots=True)
class Matching:
    """What of a request is not compared. Made by `ignoring`, which checks the names.

    `own` are secrets that recordings do not hold, so that they are replaced in a request before it is compared.
    """

    ignored: tuple[str, ...] = ()
    _parts: frozenset[str] = frozenset()
    _places: tuple[tuple[str, ...], ...] = ()
    own: OwnSecrets = NO_OWN

    @classmethod
    def ignoring(cls, names: Iterable[str] = (), *, own: OwnSecrets = NO_OWN) -> Self:
        """Return the rules that leave out what these name: `port`, `query.trace`, `body.messages[*].id`.

        `*` stands for any key or position. `BadInput` for a name that can mean nothing.
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
        """Return 32 hexadecimal digits that are the same for requests that count as the same."""
        return _digest(self.compared(request))

    def fingerprint_as_sent(self, request: Request) -> str:
        """Return the fingerprint that a request has if its body holds no secret; several times quicker.

        Only good for looking up: recordings hold no secrets, so that a request which is like one holds none.
        """
        body, is_json = self._body(request)
        return _digest(
            Compared(request.method.upper(), self._address(plain_uri(request.uri, self.own)), body, is_json)
        )

    def compared(self, request: Request) -> Compared:
        """Return what of a request counts, secrets replaced: a recording holds none."""
        clean = comparable(request, self.own)
        body, is_json = self._body(clean)
        return Compared(clean.method.upper(), self._address(clean.uri), body, is_json)

    def _address(self, uri: str) -> tuple[tuple[str, JSON], ...]:
        parts = endpoint(uri).named()
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
        for place in self._places:
            value = _less(value, place)
        return value, True


def _digest(seen: Compared) -> str:
    text = canonical([seen.method, [list(part) for part in seen.address], seen.is_json, seen.body])
    return blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def _check(name: str) -> None:
    if name in PARTS or (_is_place(name) and _STEPS.fullmatch(name.removeprefix("body"))):
        return
    if name.startswith("query.") and len(name) > len("query."):
        return
    expected = f"{', '.join(PARTS)}, query.NAME or a place in the body such as body.metadata.run"
    raise BadInput(f"cannot ignore {name!r}; expected {expected}.{suggestion(name, PARTS)}")


def _is_place(name: str) -> bool:
    return name.startswith(("body.", "body["))


def _steps(path: str) -> tuple[str, ...]:
    """Return the keys and positions of `.messages[*].id`."""
    return tuple(key or position for key, position in _STEP.findall(path))


def _less(value: JSON, place: tuple[str, ...]) -> JSON:
    """Return `value`, which is changed, without what is at `place`."""
    step, rest = place[0], place[1:]
    if isinstance(value, dict):
        for key in [key for key in value if step in (ANY, key)]:
            if rest:
                value[key] = _less(value[key], rest)
            else:
                del value[key]
    elif isinstance(value, list):
        chosen = [number for number in range(len(value)) if step in (ANY, str(number))]
        if rest:
            for number in chosen:
                value[number] = _less(value[number], rest)
        else:
            return [item for number, item in enumerate(value) if number not in chosen]
    return value


def _plain_text(request: Request) -> str:
    """Return a body that is not JSON as text; the random boundary of a form does not count."""
    text = request.body.decode("utf-8", "surrogateescape")
    found = _BOUNDARY.search(header(request.headers, "content-type") or "")
    return text.replace(found.group(1), "boundary") if found else text
