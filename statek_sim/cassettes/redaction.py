"""Removes secrets from exchanges before they are written, and from requests before they are compared.

`secret_detection` defines what a secret is. Known values are the secrets in the request's headers, parameters and
login, and those passed by the caller, such as environment variable values. Redaction is idempotent.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeVar
from urllib.parse import unquote

from statek_sim.cassettes.bodies import Undecodable, as_text, is_allowed, opened
from statek_sim.cassettes.exchange import (
    Exchange,
    Headers,
    Request,
    Response,
    header,
    media_type,
    without,
)
from statek_sim.cassettes.secret_detection import (
    NOTHING_ELSE,
    PLACEHOLDER,
    Finding,
    Sought,
    bare,
    in_address,
    in_body,
    in_header,
    in_text,
    is_placeholder,
    known_values,
    replaced,
)
from statek_sim.cassettes.secret_patterns import (
    NO_OWN,
    OwnSecrets,
    is_changing_header,
    is_secret_header,
    is_secret_variable,
    shaped,
)

_ENCODING: Final = "content-encoding"
_Message = TypeVar("_Message", Request, Response)


def redacted(exchange: Exchange, own: OwnSecrets = NO_OWN, known: tuple[str, ...] = ()) -> Exchange:
    """Return the exchange with secrets and `known` values redacted.

    Raises `Undecodable` for a body that is not text, unless its media type is in `own.undecoded`.
    """
    sent, received = _opened(exchange.request), _opened(exchange.response)
    for message, what in ((sent, "request"), (received, "response")):
        _check(message, what, own)
    sought = Sought(tuple(sorted({*known, *sent_with(sent.uri, sent.headers, own)})), own)
    return replace(exchange, request=_request(sent, sought), response=_response(received, sought))


def comparable(request: Request, own: OwnSecrets = NO_OWN) -> Request:
    """Return a request without secrets, for comparison with recorded requests."""
    try:
        sent = _opened(request)
    except Undecodable:
        # No recording has such a body, so the request matches none.
        return request
    return _request(sent, Sought(sent_with(sent.uri, sent.headers, own), own))


@lru_cache(maxsize=4096)
def plain_uri(uri: str, own: OwnSecrets = NO_OWN) -> str:
    """Return a URL without secrets."""
    return _uri(uri, Sought(own=own))


@lru_cache(maxsize=1024)
def sent_with(target: str, headers: Headers, own: OwnSecrets = NO_OWN) -> tuple[str, ...]:
    """Return the secrets in a request's URL and headers, as known values to search for elsewhere."""
    return known_values((*_in_headers(headers, own), *_in_target(target, own)))


def _in_headers(headers: Headers, own: OwnSecrets) -> Iterator[str]:
    for name, value in headers:
        if name.lower() == "cookie":
            yield from (value[each.start : each.end] for each in in_header(name, value))
        elif (is_secret_header(name) or own.is_name(name)) and not is_placeholder(value):
            yield bare(value)
            if value.lower().startswith("basic "):
                yield from _of_login(bare(value))


def _of_login(key: str) -> Iterator[str]:
    """Yield `user:password` from HTTP Basic authentication and the password or, without a password, the user name."""
    try:
        login = b64decode(key + "==").decode("utf-8")
    except ValueError:
        return
    user, colon, password = login.partition(":")
    if colon:
        yield login
        yield password or user


def _in_target(target: str, own: OwnSecrets) -> Iterator[str]:
    for each in in_address(target, Sought(own=own)):
        yield target[each.start : each.end]
        yield unquote(target[each.start : each.end])


def _check(message: Request | Response, what: str, own: OwnSecrets) -> None:
    """Raise `Undecodable` for a body that is not text and whose media type is not allowed; `what` is its name."""
    body, headers = message.body, message.headers
    if body and as_text(body) is None and not is_allowed(body, headers, own.undecoded):
        kind = media_type(headers) or "no content type"
        raise Undecodable(f"the {what}'s body ({kind}) is not text, so secrets in it cannot be found")


def _opened(message: _Message) -> _Message:
    """Return a message with a decompressed body; raises `Undecodable` if that is impossible."""
    encoding = header(message.headers, _ENCODING)
    if not encoding or not message.body:
        return message
    headers = without(message.headers, [_ENCODING])
    return replace(message, body=opened(message.body, encoding), headers=headers)


def _request(request: Request, sought: Sought) -> Request:
    return replace(
        request,
        uri=_uri(request.uri, sought),
        headers=_headers(request.headers, sought),
        body=_body(request.body, request.headers, sought),
    )


def _response(response: Response, sought: Sought) -> Response:
    body = _body(response.body, response.headers, sought)
    return replace(
        response,
        reason=replaced(response.reason, in_text(response.reason, sought)),
        headers=_headers(response.headers, sought),
        body=body,
        # The chunk sizes include the secrets. Without chunks, the body is replayed at once.
        chunks=response.chunks if body == response.body else (),
    )


def _headers(headers: Headers, sought: Sought) -> Headers:
    return tuple((name, replaced(value, in_header(name, value, sought))) for name, value in headers)


def _uri(uri: str, sought: Sought) -> str:
    return replaced(uri, in_address(uri, sought))


def _body(body: bytes, headers: Headers, sought: Sought) -> bytes:
    """Return a body without secrets; a body that is not text is left unchanged."""
    text = as_text(body)
    if not text:
        return body
    clean = replaced(text, in_body(text, sought, media_type(headers)))
    return body if clean == text else clean.encode("utf-8", "surrogateescape")


def lasting(exchange: Exchange) -> Exchange:
    """Return the exchange without headers that change from call to call, such as dates and request ids."""
    return replace(
        exchange,
        request=replace(exchange.request, headers=_kept_headers(exchange.request.headers, "of_requests")),
        response=replace(exchange.response, headers=_kept_headers(exchange.response.headers, "of_responses")),
    )


def _kept_headers(headers: Headers, kind: str) -> Headers:
    return tuple((name, value) for name, value in headers if not is_changing_header(name, kind))


AROUND: Final = 8_000
"""Number of characters searched beyond the displayed part; no secret is longer."""
_SETTING: Final = re.compile(r"\s*(?:export\s+)?([\w.-]+)")
_MOST_SHOWN: Final = 2_000


def without_keys(text: str) -> str:
    """Return a message with matches of key patterns redacted; names are not considered."""
    return replaced(text, sorted(Finding(*each) for each in shaped(text)))


def without_secrets(text: str, sent: tuple[str, ...] = ()) -> str:
    """Return a string with secrets redacted, as in a recorded body; `sent` are known values."""
    return replaced(text, in_body(text, Sought(sent) if sent else NOTHING_ELSE))


def plain_setting(line: str) -> str:
    """Return a line from a settings file (valid or not), without the value if the name denotes a secret."""
    name = _SETTING.match(line)
    if name is not None and is_secret_variable(name[1]):
        return f"{name[0]} {PLACEHOLDER}"
    return without_secrets(line)


def ends_without_secrets(text: str, sent: tuple[str, ...] = ()) -> str:
    """Return a string without secrets, for a caller that shows at most 2,000 characters at either end.

    Only the ends of a long string are searched and returned, joined by spaces.
    """
    if len(text) <= 2 * AROUND:
        return without_secrets(text, sent)
    start, end = (without_secrets(part, sent) for part in (text[:AROUND], text[-AROUND:]))
    return f"{start}{' ' * _MOST_SHOWN}{end}"


def plain_header(name: str, value: str) -> str:
    """Return a header's value with secrets redacted."""
    return replaced(value, in_header(name, value))


def plain_target(target: str) -> str:
    """Return a path and query with secrets redacted."""
    return replaced(target, in_address(target))
