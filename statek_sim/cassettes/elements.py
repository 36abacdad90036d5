"""Secrets in XML and HTML: in elements that are called like one, or have such a name in an attribute."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from statek_sim.cassettes.names import is_placeholder, is_secret_name, is_value
from statek_sim.cassettes.own_secrets import OwnSecrets

# The whole name of an element, and the name without its namespace.
_TAG: Final = re.compile(r"<((?:[\w.-]{1,80}:)?([\w.-]{1,80}))(?:\s[^<>]{0,1000})?>")
_CLOSING: Final = re.compile(r"</([\w.:-]{1,161})")
_ELEMENT_TEXT: Final = re.compile(r"<!\[CDATA\[((?:[^\]]|\](?!\]>))+)(?:\]\]>)?|<[^<>]{0,1000}>|([^<]+)")
_NEXT_TAG: Final = re.compile(r"<(?!!\[CDATA\[)")
# What an element is called by an attribute, and what that says it holds.
_NAMED: Final = re.compile(r"\s(key|name|id|field|property)\s?=\s?([\"']?)([\w.:-]{1,80})\2(?=[\s/>])")
_GIVEN: Final = re.compile(
    r"\s(?:value|content)\s?=\s?(?:([\"'])(.{1,1000}?)\1|(?!\\)([^\s\"'<>]{1,1000}?)(?=[\s>]|/>))", re.DOTALL
)
_INNER: Final = re.compile(r"([^<>]{1,1000})</([\w.:-]{1,161})")
# The lists of Apple, and what XML-RPC calls a member.
_PAIR_OF_ELEMENTS: Final = re.compile(
    r"<(?:key|name)>\s{0,9}([\w .-]{1,80}?)\s{0,9}</(?:key|name)>\s{0,99}(?:<\w{1,40}>\s{0,99}){1,2}([^<>]{1,1000})</"
)


def in_elements(text: str, own: OwnSecrets) -> Iterator[tuple[int, int, str]]:
    """Yield the texts in elements of a telling name: start, end, and what each is called.

    An element may have a namespace, attributes, CDATA or children, and be cut off. The name may be an attribute, and
    the text, too: `<string name="password">…`, `<add key="password" value="…"/>`.
    """
    is_document = text.lstrip()[:1] == "<"
    if not is_document and "</" not in text and not ("<" in text and ("value" in text or "content" in text)):
        return
    for pair in _PAIR_OF_ELEMENTS.finditer(text) if "<key>" in text or "<name>" in text else ():
        if is_secret_name(pair[1], own) and not is_placeholder(pair[2]):
            yield *pair.span(2), f"a value named {pair[1]!r}"
    # Found once for all: a search per element is as long as the text where none of them is closed.
    closings: dict[str, list[int]] = {}
    for closing in _CLOSING.finditer(text):
        closings.setdefault(closing[1], []).append(closing.start())
    done = 0
    for tag in _TAG.finditer(text):
        name, ends = tag[2], closings.get(tag[1], ())
        after = bisect_left(ends, tag.end())
        if "=" in tag[0]:
            yield from _of_attributes(text, tag, own)
        if tag.start() < done or not is_secret_name(name, own):
            continue
        if after < len(ends):
            done = ends[after]
        elif is_document:
            # It was cut off, or nobody closed it.
            next_tag = _NEXT_TAG.search(text, tag.end())
            done = next_tag.start() if next_tag is not None else len(text)
        elif (inner := _INNER.match(text, tag.end())) is not None and '"' not in inner[1]:
            done = inner.end(1)
        else:
            continue
        for part in _ELEMENT_TEXT.finditer(text, tag.end(), done):
            value = part[part.lastindex or 0]
            if value.strip() and not is_placeholder(value):
                yield *part.span(part.lastindex or 0), f"a value named {name!r}"


def _of_attributes(text: str, tag: re.Match[str], own: OwnSecrets) -> Iterator[tuple[int, int, str]]:
    """Yield what an element holds that has its name in an attribute: its value in another, or its text."""
    named = _NAMED.search(tag[0])
    name = named[3] if named is not None else tag[2]
    if not is_secret_name(name, own):
        return
    kind = f"a value named {name!r}"
    given = _GIVEN.search(tag[0])
    if given is not None and not is_placeholder(given[given.lastindex or 0]):
        left, right = given.span(given.lastindex or 0)
        yield tag.start() + left, tag.start() + right, kind
    if named is None:
        return
    inner = _INNER.match(text, tag.end()) if named[1] != "id" else None
    if inner is not None and inner[2] == tag[1] and is_value(named[3], inner[1]):
        yield *inner.span(1), kind
