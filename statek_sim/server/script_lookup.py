"""A server's script: finds the entry that answers a request or, if there is none, describes the closest entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rapidfuzz import fuzz

from statek_sim.cassettes.redaction import ends_without_secrets, sent_with
from statek_sim.errors import UnmatchedRequest
from statek_sim.providers.condition import demanded_texts, text_accepts
from statek_sim.providers.mismatch import Entry, conversation_tail, shorten
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.protocol import Place as PlaceName
from statek_sim.providers.script import Chat, Computed, ScriptEntry, UsageKind, Vector, as_reply, reply_list
from statek_sim.providers.scripted import EVERYBODY, Lane, Script, lane_key, lanes_of

AGENT_HEADER: Final = "x-statek-agent"
"""The request header that selects the script for a role; without it, the model name selects the script."""


class PlayedScript:
    """A script per job, per role or for all requests, and the number of times each reply was used."""

    def __init__(self, script: Script, *, count_usage: bool) -> None:
        self._lanes = lanes_of(_counting(script) if count_usage else script)
        replies = [entry.reply for lane in self._lanes.values() for entry in lane.pending()]
        answers = [reply.answer for reply in replies]
        self.has_logprobs = any(isinstance(answer, Chat) and answer.tokens for answer in answers)
        self._recorded = {reply.place for reply in replies if not isinstance(reply.answer, Vector)}

    def unused(self) -> list[Entry]:
        """Return the entries that were used less often than required; for `forever()`, one use is enough."""
        return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def is_recorded(self, place: PlaceName) -> bool:
        """Return whether the script has recorded responses to this kind of request."""
        return place in self._recorded

    def _lane(self, request: ChatRequest) -> Lane | None:
        key = lane_key(self._lanes, request)
        return None if key is None else self._lanes[key]

    def demanded(self, request: ChatRequest, name: str) -> Entry:
        """Return the entry that answers a request (`name` in messages); raises `UnmatchedRequest` if there is none."""
        lane = self._lane(request)
        entry = None if lane is None else lane.take(request)
        if entry is None:
            raise UnmatchedRequest(self._mismatch(request, name, lane))
        return entry

    def scripted(self, request: ChatRequest, name: str) -> Entry | None:
        """Return the entry that answers an embedding or count request, or None if the response must be computed.

        Raises `UnmatchedRequest` if the script contains recordings for this kind of request, but none for this request.
        """
        lane = self._lane(request)
        entry = None if lane is None else lane.take(request)
        everybody = self._lanes.get(EVERYBODY)
        if entry is None and everybody is not None:
            entry = everybody.take(request)
        if entry is None and self.is_recorded(request.place):
            raise UnmatchedRequest(self._mismatch(request, name, lane))
        return entry

    def _mismatch(self, request: ChatRequest, name: str, lane: Lane | None) -> str:
        question = f"{name}, model {request.model!r}, turn {request.turn})"
        if lane is None:
            known = ", ".join(map(repr, self._lanes)) or "nobody"
            return (
                f"{question} is for {request.role!r}, but there are scripts only for {known}; set another name in "
                f"the {AGENT_HEADER} header, or use one list of replies for all agents"
            )
        script = f"script {lane.key!r}" if lane.key else "the script"
        pending = [entry for entry in lane.pending() if entry.reply.place == request.place]
        if not pending:
            return exhausted(question, request, script, lane.total)
        return unmatched(question, request, script, pending)


def _counting(script: Script) -> Script:
    """Return `script` with `measured` usage added to each message that reports no usage."""
    if isinstance(script, Mapping):
        return {key: _counted(key, entries) for key, entries in script.items()}
    return _counted(EVERYBODY, script)


def _counted(key: str, entries: Sequence[ScriptEntry]) -> list[ScriptEntry]:
    replies = map(as_reply, reply_list(entries, key))
    return [
        replace(reply, usage=UsageKind.MEASURED)
        if reply.usage is UsageKind.ABSENT and isinstance(reply.answer, Chat | Computed)
        else reply
        for reply in replies
    ]


_COMPARED: Final = 4096
"""The maximum number of characters to compare when measuring similarity."""


def exhausted(question: str, request: ChatRequest, script: str, total: int) -> str:
    """Return the error message for a request after all `total` replies were used; `question` names the request."""
    replies = "no replies" if total == 0 else f"{total} {'reply' if total == 1 else 'replies'}, all used"
    return "\n".join(
        (
            f"{question} needs another reply, but {script} has {replies}",
            *conversation_tail(request.messages, _plain(request)),
            f"add a reply to {script}, or make a reply .forever()",
        )
    )


def _remaining(replies: int) -> str:
    return "the remaining reply" if replies == 1 else f"any of the {replies} remaining replies"


def unmatched(question: str, request: ChatRequest, script: str, pending: Sequence[Entry]) -> str:
    """Return the error message for a request that no reply matches, with the closest reply and the differences."""
    nearest = min(
        pending, key=lambda entry: (len(list(_differences(entry, request))), -_likeness(entry, request))
    )
    plain = _plain(request)
    return "\n".join(
        (
            f"{question} does not match {_remaining(len(pending))} in {script}",
            *conversation_tail(request.messages, plain),
            f"nearest is {nearest}",
            *(f"  {line}" for line in _differences(nearest, request, plain)),
            "change its condition, or add a reply for this request",
        )
    )


def _plain(request: ChatRequest) -> Callable[[str], str]:
    """Return a function that redacts secrets, including those in this request, before a string is truncated."""
    sent = sent_with("", tuple(request.headers.items()))
    return lambda text: ends_without_secrets(text, sent)


def _differences(entry: Entry, request: ChatRequest, plain: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the parts of the entry's condition that the request does not meet; `plain` redacts a string."""
    reply, condition = entry.reply, entry.reply.condition
    if reply.job is not None and reply.job != request.job_id:
        yield f"job: expected {reply.job!r}, got {request.job_id!r}"
    if condition is None:
        return
    for subject, match, text in demanded_texts(condition, request):
        if text is None or not text_accepts(match, text):
            got = "nothing" if text is None else repr(shorten(plain(text), 200))
            yield f"{subject}: expected {match}, got {got}"
    if condition.turn is not None and condition.turn != request.turn:
        yield f"turn: expected {condition.turn}, got {request.turn}"
    if condition.attempt is not None and condition.attempt != request.attempt:
        yield f"attempt: expected {condition.attempt}, got {request.attempt}"
    if condition.at is not None and request.at < condition.at:
        yield f"virtual second: expected at least {condition.at:g}, got {request.at:g}"


def _likeness(entry: Entry, request: ChatRequest) -> float:
    """Return the similarity between the last message and the text that `entry` expects, from 0 to 100."""
    condition = entry.reply.condition
    match = None if condition is None else condition.last_message
    if match is None:
        return 0.0
    wanted = match.equals or match.contains or match.matches or ""
    return round(fuzz.ratio(wanted[:_COMPARED], request.last_message[:_COMPARED]), 6)
