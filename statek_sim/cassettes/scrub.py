"""Take secrets out of exchanges before they are written, and out of requests before they are compared.

What is replaced: headers, parameters, fields and members that are called like a credential; whatever looks like a
known kind of key, anywhere; the secrets that the request itself was sent with, wherever they come again; and what a
team calls its own secrets. Scrubbing twice changes nothing.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeVar

from statek_sim.cassettes.bodies import Undecodable, as_text, is_allowed, opened
from statek_sim.cassettes.exchange import (
    Chunk,
    Exchange,
    Headers,
    Request,
    Response,
    header,
    media_type,
    without,
)
from statek_sim.cassettes.names import WHOLE_WORDS, bare, holds_secret, is_placeholder, is_worth_learning
from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets
from statek_sim.cassettes.reading import (
    Found,
    Tangled,
    plain_of_percent,
    read,
    read_address,
    read_header,
    replaced,
)
from statek_sim.cassettes.redaction import redacted, redacted_body
from statek_sim.cassettes.secrets import NOTHING_ELSE, Sought
from statek_sim.cassettes.view import base64_text

_FORM: Final = "application/x-www-form-urlencoded"
_ENCODING: Final = "content-encoding"
_WIDE: Final = ("utf-16", "utf-32")
"""Character sets in which any bytes are some text, mostly a senseless one."""
_Message = TypeVar("_Message", Request, Response)
MOST_LEARNED: Final = 200
"""Secrets of one request that are looked for elsewhere."""
MOST_READINGS: Final = 4
"""So often a body is read again in which something was replaced."""


def scrubbed(exchange: Exchange, own: OwnSecrets = NO_OWN) -> Exchange:
    """Return the exchange without secrets; `Undecodable` for a body of which nobody can say what is in it."""
    sent, received = _opened(exchange.request), _opened(exchange.response)
    for message, what in ((sent, "request"), (received, "response")):
        _check(message, what, own)
    request, keys = _request(sent, own)
    return replace(exchange, request=request, response=_response(received, Sought(keys, own)))


def comparable(request: Request, own: OwnSecrets = NO_OWN) -> Request:
    """Return a request without secrets for comparing: what `scrubbed` makes of it."""
    try:
        return _request(_opened(request), own)[0]
    except Undecodable:
        # Nothing like it was recorded.
        return request


def plain_uri(uri: str, own: OwnSecrets = NO_OWN) -> str:
    """Return an address without secrets, of a request whose keys are not known."""
    return _uri(uri, Sought(own=own))


def _check(message: Request | Response, what: str, own: OwnSecrets) -> None:
    """Let a body pass that is a text, or of a kind that is allowed; `Undecodable` for any other."""
    body, headers = message.body, message.headers
    if body and as_text(body, headers).binary and not is_allowed(body, headers, own.undecoded):
        kind = media_type(headers) or "no content type"
        raise Undecodable(f"the {what}'s body ({kind}) is no text, so that secrets in it would not be seen")


def _opened(message: _Message) -> _Message:
    """Return a message with its body as it was before it was compressed."""
    encoding = header(message.headers, _ENCODING)
    if not encoding or not message.body:
        return message
    headers = without(message.headers, [_ENCODING])
    return replace(message, body=opened(message.body, encoding), headers=headers)


def _request(request: Request, own: OwnSecrets) -> tuple[Request, tuple[str, ...]]:
    """Return a request without secrets, and the secrets that it was sent with."""
    sought = Sought(own=own)
    keys = learned(
        (
            *_sent_with(request.headers, sought),
            *(finding.learned for finding in _address_found(request.uri, sought)),
            *_logins(request.uri),
            *(finding.learned for finding in _body_found(request.body, request.headers, sought)),
        )
    )
    known = Sought(keys, own)
    body = _body(request.body, request.headers, known)
    clean = replace(
        request, uri=_uri(request.uri, known), headers=_headers(request.headers, known), body=body
    )
    return clean, keys


def _response(response: Response, known: Sought) -> Response:
    secrets = learned(
        (
            *_sent_with(response.headers, known),
            *(finding.learned for finding in _body_found(response.body, response.headers, known)),
        )
    )
    known = Sought(learned((*known.keys, *secrets)), known.own)
    body = _body(response.body, response.headers, known)
    chunks = response.chunks if body == response.body else tuple(_resized(response, body))
    return replace(
        response,
        reason=redacted("reason", replaced(response.reason, read(response.reason, known)), known.own),
        headers=_headers(response.headers, known),
        body=body,
        chunks=chunks,
    )


def _sent_with(headers: Headers, known: Sought) -> Iterator[str]:
    """Yield what headers of a telling name hold, and the credentials that are found in any other."""
    for name, value in headers:
        if not holds_secret(name, value, known.own):
            yield from (finding.learned for finding in read_header(name, value, known))
        elif not is_placeholder(value):
            yield from keys_in_header(name, value)


def keys_in_header(name: str, value: str) -> Iterator[str]:
    """Yield what a header holds: a key, the password of a login, the values of cookies."""
    key = bare(value)
    yield key
    if "cookie" in name.lower():
        yield value.partition("=")[2].strip()
        yield from (pair.partition("=")[2].strip() for pair in value.split(";") if "=" in pair)
    login = base64_text(key) if value.lower().startswith("basic ") else ""
    if ":" in login:
        yield login
        user, _, password = login.partition(":")
        # Some send a key as the name of who they are.
        yield password or user


def _logins(uri: str) -> Iterator[str]:
    """Yield what a client sends for the login in an address: the Base64 of it."""
    authority = uri.partition("://")[2]
    login, at, _ = authority.partition("/")[0].rpartition("@")
    if at and login.partition(":")[2]:
        for written in {login, plain_of_percent(login)}:
            yield _base64(written)


def _base64(text: str) -> str:
    return b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def sent_with(target: str, headers: Headers) -> tuple[str, ...]:
    """Return the secrets that a request's address and headers have, to be looked for in the rest of it.

    There are none to look for where those are too tangled to be read.
    """
    try:
        address = (finding.learned for finding in _address_found(target, NOTHING_ELSE))
        return learned((*_sent_with(headers, NOTHING_ELSE), *address))
    except Tangled:
        return ()


def learned(values: Iterable[str]) -> tuple[str, ...]:
    """Return what is to be looked for elsewhere, longest first: as it was written, as it is read, and its Base64."""
    forms = {form for value in values for form in (value, plain_of_percent(value))}
    keys = {form for form in forms if is_worth_learning(form)}
    # Of a longer one the text around it is opened.
    keys |= {_base64(key).rstrip("=") for key in keys if len(key) < WHOLE_WORDS}
    return tuple(sorted(keys, key=lambda key: (-len(key), key)))[:MOST_LEARNED]


def _resized(response: Response, body: bytes) -> Iterator[Chunk]:
    """Yield the chunks that a changed body came in: each ends in the line it ended in, at most as far along."""
    before, after = response.body.split(b"\n"), body.split(b"\n")
    starts = [list(accumulate((len(line) + 1 for line in lines), initial=0)) for lines in (before, after)]
    sent, covered = 0, 0
    for chunk in response.chunks:
        sent += chunk.size
        line = min(bisect_right(starts[0], sent) - 1, len(after) - 1)
        end = min(starts[1][line] + min(sent - starts[0][line], len(after[line])), len(body))
        end = max(end, covered)
        yield Chunk(chunk.at, end - covered)
        covered = end


def _headers(headers: Headers, known: Sought) -> Headers:
    return tuple(
        (name, redacted(f"header {name}", replaced(value, read_header(name, value, known)), known.own))
        for name, value in headers
    )


@lru_cache(maxsize=4096)
def _address_found(uri: str, known: Sought) -> list[Found]:
    # The same few addresses are asked all the time.
    return read_address(uri, known)


@lru_cache(maxsize=4096)
def _uri(uri: str, known: Sought) -> str:
    return redacted("uri", replaced(uri, read_address(uri, known)), known.own)


def _body_found(body: bytes, headers: Headers, known: Sought) -> list[Found]:
    text = as_text(body, headers)
    try:
        if text.codec.startswith(_WIDE) and read(body.decode("latin-1"), known):
            raise Undecodable(
                f"a body reads as {text.codec}, and has a secret in its bytes that this does not show"
            )
        return read(text.text, known, form=media_type(headers) == _FORM)
    except Tangled as error:
        raise Undecodable(f"a body is too tangled: {error}") from None


def _body(body: bytes, headers: Headers, known: Sought) -> bytes:
    """Return a body without what is found in it, read until nothing more is found.

    A secret that held a quote, as `%22`, leaves texts that begin and end elsewhere once it is replaced.
    """
    if not body:
        return body
    clean = body
    for _ in range(MOST_READINGS):
        text = as_text(clean, headers)
        plain = replaced(text.text, _body_found(clean, headers, known))
        if plain == text.text:
            break
        clean = text.encoded(plain)
    text = as_text(clean, headers)
    last = redacted_body(text.text, known.own)
    return text.encoded(last) if last != text.text else clean
