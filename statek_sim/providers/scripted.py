"""The scripted LLM: answers come from a script, in order, and nothing is made up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from statek_sim.errors import BadInput, ScriptExhausted, UnmatchedRequest, UnusedReplies
from statek_sim.providers.condition import accepts
from statek_sim.providers.delivery import Measure, Styles, deliver, manner
from statek_sim.providers.mismatch import (
    PendingReply,
    exhausted_text,
    no_script_text,
    unmatched_text,
    unused_text,
)
from statek_sim.providers.protocol import ChatRequest, ChatStyleName, RawReply
from statek_sim.providers.script import Reply, ScriptEntry, UsageKind, as_reply

Script = Mapping[str, Sequence[ScriptEntry]] | Sequence[ScriptEntry]
"""Replies by agent role or `job:<job id>`, or one list for everybody."""

_EVERYBODY: Final = ""


@final
class ScriptedLLM:
    """A provider that plays a script.

    A request goes to the script `job:<job id>` if there is one, else to its agent role's. Jobs of one role
    share that script in the order they ask. The first reply that accepts the request is given: one without
    condition always does, one whose condition (or `job`) does not fit is left for later. A retry takes the
    next reply. When no reply fits, `complete` raises `UnmatchedRequest`, and `ScriptExhausted` when none is
    left.

    `styles` names the chat style per agent role, or one for all; `delivery` says what it does to code.
    `measure` counts tokens for replies that report `measured` usage. Every request is kept in `requests`,
    unless `keep_requests` is off.
    """

    __slots__ = ("_keep", "_lanes", "_manner", "requests")

    def __init__(
        self,
        script: Script,
        *,
        styles: Styles | ChatStyleName | None = None,
        measure: Measure | None = None,
        keep_requests: bool = True,
    ) -> None:
        self._manner = manner(styles, measure)
        self._lanes = {key: _Lane(key, entries) for key, entries in _by_key(script).items()}
        self._keep = keep_requests
        self.requests: list[ChatRequest] = []
        if measure is None:
            for lane in self._lanes.values():
                lane.refuse_measured()

    def complete(self, request: ChatRequest) -> RawReply:
        """Give the next reply that accepts `request`."""
        if self._keep:
            self.requests.append(request)
        lanes = self._lanes
        lane = lanes.get(f"job:{request.job_id}") or lanes.get(request.role) or lanes.get(_EVERYBODY)
        if lane is None:
            raise UnmatchedRequest(no_script_text(request, lanes))
        return deliver(lane.take(request), request, self._manner)

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom; for one that repeats forever, once is enough."""
        return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def check_finished(self) -> None:
        """Raise `UnusedReplies` when replies are left that no job asked for."""
        left = self.unused()
        if left:
            raise UnusedReplies(unused_text(left))


class _Lane:
    """The replies under one key; `pending` holds those that may still be given, in script order."""

    __slots__ = ("key", "pending", "total")

    def __init__(self, key: str, entries: Sequence[ScriptEntry]) -> None:
        self.key = key
        self.pending = deque(_Entry(position, as_reply(entry)) for position, entry in enumerate(entries, 1))
        self.total = len(self.pending)

    def take(self, request: ChatRequest) -> Reply:
        """Return the first reply that accepts `request`, and count its use."""
        for index, entry in enumerate(self.pending):
            reply = entry.reply
            if reply.job is not None and reply.job != request.job_id:
                continue
            if reply.condition is not None and not accepts(reply.condition, request):
                continue
            entry.used += 1
            if reply.repeat is not None and entry.used >= reply.repeat:
                del self.pending[index]
            return reply
        if not self.pending:
            raise ScriptExhausted(exhausted_text(request, self.key, self.total))
        raise UnmatchedRequest(unmatched_text(request, self.key, self._describe(self.pending)))

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom."""
        return self._describe(
            entry for entry in self.pending if entry.reply.repeat is not None or not entry.used
        )

    def refuse_measured(self) -> None:
        """Raise `BadInput` when a reply reports usage that nobody measures."""
        for entry in self._describe(e for e in self.pending if e.reply.usage is UsageKind.MEASURED):
            raise BadInput(f"{entry} reports 'measured' usage, but the LLM was given no `measure` function")

    def _describe(self, entries: Iterable[_Entry]) -> list[PendingReply]:
        return [
            PendingReply(key=self.key, position=entry.position, reply=entry.reply, used=entry.used)
            for entry in entries
        ]


class _Entry:
    """A reply with its place in the script and how often it was given."""

    __slots__ = ("position", "reply", "used")

    def __init__(self, position: int, reply: Reply) -> None:
        self.position = position
        self.reply = reply
        self.used = 0


def _by_key(script: Script) -> Mapping[str, Sequence[ScriptEntry]]:
    scripts = script if isinstance(script, Mapping) else {_EVERYBODY: script}
    for key, entries in scripts.items():
        if isinstance(entries, str | bytes) or not isinstance(entries, Sequence):
            name = f"script {key!r}" if key else "a script"
            raise BadInput(f"{name} is a list of replies, not {entries!r}")
    return scripts
