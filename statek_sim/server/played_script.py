"""The script of a server: which entry answers a request, and what to say where none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.errors import BadInput, UnmatchedRequest
from statek_sim.providers.mismatch import PendingReply
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.protocol import Place as PlaceName
from statek_sim.providers.script import Chat, Computed, ScriptEntry, UsageKind, Vector, as_reply
from statek_sim.providers.scripted import EVERYBODY, Entry, Lane, Script, lanes_of
from statek_sim.server.nearest import exhausted, unmatched

AGENT_HEADER: Final = "x-statek-agent"
"""Names the script by role; without it the model does."""


class PlayedScript:
    """A script by job, by role or for everybody, and how much of it has been given."""

    def __init__(self, script: Script, *, count_usage: bool) -> None:
        self._lanes = lanes_of(_counting(script) if count_usage else script)
        self._recorded = _recorded_places(self._lanes.values())

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom; for one that repeats forever, once is enough."""
        return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def _lane(self, request: ChatRequest) -> Lane | None:
        lanes = self._lanes
        return lanes.get(f"job:{request.job_id}") or lanes.get(request.role) or lanes.get(EVERYBODY)

    def demanded(self, request: ChatRequest, name: str) -> Entry:
        """Return the entry that answers; a `ScriptError` says why there is none, for the request of this name."""
        lane = self._lane(request)
        entry = None if lane is None else lane.take(request)
        if entry is None:
            raise UnmatchedRequest(self._mismatch(request, name, lane))
        return entry

    def scripted(self, request: ChatRequest, name: str) -> Entry | None:
        """Return the entry that answers a request for something else than a reply, or None: it is computed.

        Where such requests were recorded, one without a recording is an error.
        """
        lane = self._lane(request)
        entry = None if lane is None else lane.take(request)
        everybody = self._lanes.get(EVERYBODY)
        if entry is None and everybody is not None:
            entry = everybody.take(request)
        if entry is None and request.place in self._recorded:
            raise UnmatchedRequest(self._mismatch(request, name, lane))
        return entry

    def _mismatch(self, request: ChatRequest, name: str, lane: Lane | None) -> str:
        question = f"{name}, model {request.model!r}, turn {request.turn})"
        if lane is None:
            known = ", ".join(map(repr, self._lanes)) or "nobody"
            return (
                f"{question} is for {request.role!r}, but there are scripts for {known} only; "
                f"the header {AGENT_HEADER} names another one, and a list instead of names is for everybody"
            )
        script = f"script {lane.key!r}" if lane.key else "the script"
        pending = [entry for entry in lane.pending() if entry.reply.place == request.place]
        if not pending:
            return exhausted(question, request, script, lane.total)
        return unmatched(question, request, script, pending)


def _recorded_places(lanes: Iterable[Lane]) -> frozenset[PlaceName]:
    """Return for what else than chats the script has answers that are more than vectors: a recording has them."""
    return frozenset(
        entry.reply.place
        for lane in lanes
        for entry in lane.pending()
        if entry.reply.place != "chat" and not isinstance(entry.reply.answer, Vector)
    )


def _counting(script: Script) -> Script:
    """Return `script` with usage counted wherever a reply does not say its own."""
    if isinstance(script, Mapping):
        return {key: _counted(key, entries) for key, entries in script.items()}
    return _counted(EVERYBODY, script)


def _counted(key: str, entries: Sequence[ScriptEntry]) -> list[ScriptEntry]:
    if isinstance(entries, str | bytes) or not isinstance(entries, Sequence):
        raise BadInput(f"{f'script {key!r}' if key else 'a script'} is a list of replies, not {entries!r}")
    replies = map(as_reply, entries)
    return [
        replace(reply, usage=UsageKind.MEASURED)
        if reply.usage is UsageKind.ABSENT and isinstance(reply.answer, Chat | Computed)
        else reply
        for reply in replies
    ]
