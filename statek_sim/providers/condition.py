"""Conditions that a request must meet to get a scripted reply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from statek_sim.errors import BadInput
from statek_sim.providers.protocol import ChatRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """A condition on a string. The string must meet every part that is given.

    `matches` is a regular expression, which may match anywhere in the text (`re.search`).
    """

    contains: str | None = None
    equals: str | None = None
    matches: str | None = None

    def __post_init__(self) -> None:
        if self.contains is None and self.equals is None and self.matches is None:
            raise BadInput("a text match requires one of 'contains', 'equals' or 'matches'")
        if self.matches is not None:
            _check_pattern(self.matches)

    def __str__(self) -> str:
        parts = (("contains", self.contains), ("equals", self.equals), ("matches", self.matches))
        return " and ".join(f"{verb} {wanted!r}" for verb, wanted in parts if wanted is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on a request. The request must meet every part that is given.

    `last_message` is compared with the last message of any role, and `tool_result` with the last message with the role
    `tool`. `turn` is the one-based number of the job's LLM call, and `attempt` the one-based number of the attempt at
    that call. `at` is the earliest virtual second of the request. `headers` maps lower-case names to HTTP headers; only
    requests sent over HTTP have headers.
    """

    last_message: TextMatch | None = None
    tool_result: TextMatch | None = None
    turn: int | None = None
    attempt: int | None = None
    at: float | None = None
    model: TextMatch | None = None
    headers: tuple[tuple[str, TextMatch], ...] = ()

    def __post_init__(self) -> None:
        parts = (self.last_message, self.tool_result, self.turn, self.attempt, self.at, self.model)
        if all(part is None for part in parts) and not self.headers:
            raise BadInput(
                "a condition requires one of 'last_message', 'tool_result', 'turn', 'attempt', 'at', "
                "'model' or 'headers'"
            )

    def __str__(self) -> str:
        parts = (
            ("last message", self.last_message),
            ("tool result", self.tool_result),
            ("turn is", self.turn),
            ("attempt is", self.attempt),
            ("virtual second is at least", self.at),
            ("model", self.model),
            *((f"header {name!r}", wanted) for name, wanted in self.headers),
        )
        return " and ".join(f"{subject} {wanted}" for subject, wanted in parts if wanted is not None)


def contains(part: str) -> TextMatch:
    """Match a string that contains `part`."""
    return TextMatch(contains=part)


def equals(whole: str) -> TextMatch:
    """Match exactly this text."""
    return TextMatch(equals=whole)


def matches(pattern: str) -> TextMatch:
    """Match a string in which the regular expression `pattern` is found."""
    return TextMatch(matches=pattern)


def text_accepts(match: TextMatch, text: str) -> bool:
    """Return whether `text` meets `match`."""
    return (
        (match.contains is None or match.contains in text)
        and (match.equals is None or match.equals == text)
        and (match.matches is None or re.search(match.matches, text) is not None)
    )


def accepts(condition: Condition, request: ChatRequest) -> bool:
    """Return whether `request` meets `condition`; a missing tool result or header never meets a condition."""
    if condition.turn not in (None, request.turn) or condition.attempt not in (None, request.attempt):
        return False
    if condition.at is not None and request.at < condition.at:
        return False
    return all(
        text is not None and text_accepts(match, text)
        for _, match, text in demanded_texts(condition, request)
    )


def demanded_texts(condition: Condition, request: ChatRequest) -> Iterator[tuple[str, TextMatch, str | None]]:
    """Yield each part of a condition on a string: the name, the condition, and the request's string or None."""
    if condition.last_message is not None:
        yield "last message", condition.last_message, request.last_message
    if condition.tool_result is not None:
        yield "tool result", condition.tool_result, request.last_tool_result
    if condition.model is not None:
        yield "model", condition.model, request.model
    for name, match in condition.headers:
        yield f"header {name!r}", match, request.headers.get(name)


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise BadInput(f"'matches' is not a valid regular expression: {pattern!r}: {error}") from error
