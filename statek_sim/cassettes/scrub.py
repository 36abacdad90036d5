"""Take secrets out of exchanges before they are written, and out of requests before they are compared.

What is replaced: headers, parameters and members of JSON bodies that are called like a credential; whatever looks
like a known kind of key, anywhere; the keys that the request itself was sent with, wherever they come again; and what a
team calls its own secrets. Scrubbing twice changes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from statek_sim.cassettes import sse
from statek_sim.cassettes.exchange import Chunk, Exchange, Headers, Request, Response, media_type
from statek_sim.cassettes.jsontext import NotJson, Style, laid_out, parsed, style_of, written
from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets
from statek_sim.cassettes.secrets import (
    LEAST_LEARNED,
    PLACEHOLDER,
    Sought,
    Span,
    bare,
    find_secrets,
    is_placeholder,
    is_secret_header,
    is_secret_name,
    is_secret_parameter,
    looks_clean,
    replaced,
)
from statek_sim.values import JSON

_FORM: Final = "application/x-www-form-urlencoded"
_PAIR: Final = re.compile(r"([^&;=]*)=([^&;]*)")

_NOTHING_ELSE: Final = Sought()


def scrubbed(exchange: Exchange, own: OwnSecrets = NO_OWN) -> Exchange:
    """Return the exchange without secrets."""
    known = Sought(keys_of(exchange.request, own), own)
    return replace(
        exchange, request=_request(exchange.request, known), response=_response(exchange.response, known)
    )


def comparable(request: Request, own: OwnSecrets = NO_OWN) -> Request:
    """Return a request without secrets for comparing: what `scrubbed` makes of its address and its body.

    Takes a quick look first: this runs for every recording of a cassette that has no index.
    """
    known = Sought(keys_of(request, own), own)
    text = request.body.decode("latin-1" if own.is_empty else "utf-8", "replace")
    quick = (
        looks_clean(text, own)
        and not any(key in text for key in known.keys)
        and media_type(request.headers) != _FORM
    )
    body = request.body if quick else _body(request.body, request.headers, known)
    return replace(request, uri=_uri(request.uri, known), body=body)


def plain_uri(uri: str, own: OwnSecrets = NO_OWN) -> str:
    """Return an address without secrets, of a request whose keys are not known."""
    return _uri(uri, Sought(own=own))


def keys_of(request: Request, own: OwnSecrets = NO_OWN) -> tuple[str, ...]:
    """Return the keys that a request was sent with, in its headers or its address, longest first."""
    sent = [bare(value) for name, value in request.headers if is_secret_header(name, own)]
    if "?" in request.uri:
        pairs = parse_qsl(urlsplit(request.uri).query)
        sent += [value for name, value in pairs if is_secret_parameter(name, own)]
    keys = {key for key in sent if len(key) >= LEAST_LEARNED and not is_placeholder(key)}
    return tuple(sorted(keys, key=lambda key: (-len(key), key)))


def _request(request: Request, known: Sought) -> Request:
    return replace(
        request,
        uri=_uri(request.uri, known),
        headers=_headers(request.headers, known),
        body=_body(request.body, request.headers, known),
    )


def _response(response: Response, known: Sought) -> Response:
    body = _body(response.body, response.headers, known)
    chunks = response.chunks if body == response.body else tuple(_resized(response, body))
    return replace(response, headers=_headers(response.headers, known), body=body, chunks=chunks)


def _resized(response: Response, body: bytes) -> Iterator[Chunk]:
    """Yield the chunks that a changed body came in: each ends in the line it ended in, at most as far along."""
    before, after = response.body.split(b"\n"), body.split(b"\n")
    starts = [list(accumulate((len(line) + 1 for line in lines), initial=0)) for lines in (before, after)]
    sent, told = 0, 0
    for chunk in response.chunks:
        sent += chunk.size
        line = min(bisect_right(starts[0], sent) - 1, len(after) - 1)
        end = min(starts[1][line] + min(sent - starts[0][line], len(after[line])), len(body))
        yield Chunk(chunk.at, end - told)
        told = end


def _headers(headers: Headers, known: Sought) -> Headers:
    return tuple((name, _header(name, value, known)) for name, value in headers)


def _header(name: str, value: str, known: Sought) -> str:
    if not is_secret_header(name, known.own):
        return _text(value, known)
    return value if is_placeholder(value) else PLACEHOLDER


@lru_cache(maxsize=4096)
def _uri(uri: str, known: Sought) -> str:
    parts = urlsplit(uri)
    if parts.query:
        query = _PAIR.sub(lambda pair: _parameter(pair, known), parts.query)
        uri = urlunsplit(parts._replace(query=query)) if query != parts.query else uri
    return _text(uri, known)


def _parameter(pair: re.Match[str], known: Sought) -> str:
    name, value = pair.groups()
    for _, plain in parse_qsl(pair.group(), keep_blank_values=True):
        if is_secret_parameter(name, known.own) and not is_placeholder(plain):
            return f"{name}={PLACEHOLDER}"
        if find_secrets(plain, known):
            return f"{name}={PLACEHOLDER}"
    return f"{name}={value}"


def _body(body: bytes, headers: Headers, known: Sought) -> bytes:
    if not body:
        return body
    encoding = "utf-8"
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        # Every byte is a character of Latin-1, so that a key between binary data is found too.
        encoding = "latin-1"
        text = body.decode(encoding)
    clean = scrubbed_text(text, media_type(headers), known)
    return body if clean == text else clean.encode(encoding)


def scrubbed_text(text: str, kind: str = "", known: Sought = _NOTHING_ELSE) -> str:
    """Return a body without secrets; `kind` is its media type. JSON and server-sent events are seen as such."""
    if kind == _FORM:
        return _PAIR.sub(lambda pair: _parameter(pair, known), text)
    if text.startswith(("data:", "event:", ":", "id:", "retry:")) or "\ndata:" in text:
        return _stream(text, known)
    return _json_or_text(text, known)


def _json_or_text(text: str, known: Sought) -> str:
    if not text.lstrip().startswith(("{", "[", '"')):
        return _text(text, known)
    try:
        value = parsed(text)
        clean = _value(value, known)
    except (NotJson, RecursionError):
        return _text(text, known)
    if clean == value:
        return text
    style = style_of(text)
    if style is None and "\n" in text:
        return laid_out(clean)
    return written(clean, style or Style.SPACED)


def _value(value: JSON, known: Sought) -> JSON:
    """Return a value without secrets; its keys stay, and so does what is no text."""
    if isinstance(value, str):
        return _json_or_text(value, known)
    if isinstance(value, list):
        return [_value(item, known) for item in value]
    if isinstance(value, dict):
        return {_text(key, known): _member(key, item, known) for key, item in value.items()}
    return value


def _member(key: str, value: JSON, known: Sought) -> JSON:
    if is_secret_name(key, known.own):
        if isinstance(value, str):
            return value if is_placeholder(value) else PLACEHOLDER
        if isinstance(value, list):
            return [_member(key, item, known) for item in value]
        if known.own.is_name(key):
            return _own(value)
    return _value(value, known)


def _own(value: JSON) -> JSON:
    """Return what a team's own name holds without anything in it: numbers can be secrets too."""
    if isinstance(value, dict):
        return {key: _own(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_own(item) for item in value]
    if value is None or isinstance(value, bool) or (isinstance(value, str) and is_placeholder(value)):
        return value
    return PLACEHOLDER


def _stream(text: str, known: Sought) -> str:
    lines = text.split("\n")
    found = list(sse.events(lines))
    spans: dict[int, list[tuple[sse.Path, Span]]] = {}
    for (number, path), span in sse.joined_secrets(found, known):
        spans.setdefault(number, []).append((path, span))
    for number, parts in spans.items():
        end = "\r" if lines[found[number].line].endswith("\r") else ""
        lines[found[number].line] = sse.changed(found[number], parts) + end
    return "\n".join(_line(line, known) for line in lines)


def _line(line: str, known: Sought) -> str:
    start, colon, rest = line.partition(":")
    if start != "data":
        return _text(line, known)
    text = rest.strip()
    return f"{start}{colon}{rest.replace(text, _json_or_text(text, known), 1)}" if text else line


def _text(text: str, known: Sought) -> str:
    """Return a text without secrets."""
    spans = find_secrets(text, known)
    return replaced(text, spans) if spans else text
