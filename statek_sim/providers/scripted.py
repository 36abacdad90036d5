"""The scripted LLM: answers come from a script, in order; nothing is generated.

The replies of a script form lanes; a request takes the first reply that applies to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from operator import attrgetter
from typing import Any, Final, final

from statek_sim.errors import BadInput, ScriptError, ScriptExhausted, UnmatchedRequest, UnusedReplies
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
from statek_sim.providers.script import (
    Reply,
    ReplyFunction,
    ScriptEntry,
    UsageKind,
    as_reply,
    computed,
    reply_list,
)


class Entry:
    """A reply with its position from 1 in the script under `key`, and how often it was used."""

    __slots__ = ("key", "position", "reply", "used")

    def __init__(self, key: str, position: int, reply: Reply) -> None:
        self.key = key
        self.position = position
        self.reply = reply
        self.used = 0


class Lane:
    """The replies under one key of a script, in order."""

    __slots__ = ("_by_message", "_entries", "_others", "_used", "key", "total")

    def __init__(self, key: str, entries: Sequence[ScriptEntry]) -> None:
        self.key = key
        self.total = len(entries)
        self._used: dict[int, int] = {}
        self._entries = [Entry(key, position, as_reply(entry)) for position, entry in enumerate(entries, 1)]
        self._by_message: defaultdict[str | None, list[Entry]] = defaultdict(list)
        """The entries that want exactly this last message; under None those that do not."""
        for entry in self._entries:
            self._by_message[_exact_message(entry)].append(entry)
        self._others = self._by_message[None]

    def take(self, request: ChatRequest) -> Entry | None:
        """Return the first entry that accepts `request` and count its use; None if none does."""
        # In most scripts no entry wants an exact message, or all do: a script may have thousands.
        exact = self._by_message.get(request.last_message, ()) if len(self._by_message) > 1 else ()
        candidates = (
            merge(self._others, exact, key=_position) if exact and self._others else exact or self._others
        )
        found = _first(candidates, request)
        if found is not None:
            self._use(found, 1)
        return found

    def _use(self, entry: Entry, times: int) -> None:
        entry.used += times
        self._used[entry.position] = entry.used
        if entry.reply.repeat is not None and entry.used >= entry.reply.repeat:
            self._entries.remove(entry)
            self._by_message[_exact_message(entry)].remove(entry)

    def saved(self) -> tuple[tuple[int, int], ...]:
        """Return the positions of used replies, and how often each was used."""
        return tuple(self._used.items())

    def resume(self, saved: Iterable[tuple[int, int]]) -> None:
        """Continue from where another process `saved` it."""
        given = dict(saved)
        for entry in [entry for entry in self._entries if entry.position in given]:
            self._use(entry, given[entry.position])

    def pending(self) -> list[PendingReply]:
        """Return the replies that may still be used, in script order."""
        return self._described(self._entries)

    def unused(self) -> list[PendingReply]:
        """Return the replies with uses left; a reply that repeats forever needs only one use."""
        return self._described(
            entry for entry in self._entries if entry.reply.repeat is not None or not entry.used
        )

    def _described(self, entries: Iterable[Entry]) -> list[PendingReply]:
        return [
            PendingReply(key=self.key, position=entry.position, reply=entry.reply, used=entry.used)
            for entry in entries
        ]


_position: Final = attrgetter("position")


def _exact_message(entry: Entry) -> str | None:
    condition = entry.reply.condition
    return None if condition is None or condition.last_message is None else condition.last_message.equals


def _first(entries: Iterable[Entry], request: ChatRequest) -> Entry | None:
    """Return the first entry that accepts `request`."""
    for entry in entries:
        reply = entry.reply
        if reply.place != request.place:
            continue
        if reply.job is not None and reply.job != request.job_id:
            continue
        if reply.condition is None or accepts(reply.condition, request):
            return entry
    return None


Script = Mapping[str, Sequence[ScriptEntry]] | Sequence[ScriptEntry]
"""Replies by agent role or `job:<job id>`, or one list for all jobs."""

EVERYBODY: Final = ""
"""The key of a script that is one list for all jobs."""


@final
class ScriptedLLM:
    """A provider that plays a script.

    A request uses the script `job:<job id>` if there is one, otherwise that of its agent's role. Jobs of one role share
    that script in the order of their requests. The first reply that accepts the request is used: a reply without a
    condition always does, and a reply whose condition (or `job`) does not match is kept for later. A retry takes the
    next reply. If no reply matches, `complete` raises `UnmatchedRequest`; if none is left, `ScriptExhausted`.

    `styles` is the chat style per agent role, or one for all; `delivery` describes its effect on code. `measure` counts
    tokens for replies that report `measured` usage. All requests are kept in `requests`, unless `keep_requests` is off.
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
        self._lanes = lanes_of(script)
        self._keep = keep_requests
        self.requests: list[ChatRequest] = []
        if measure is None:
            for lane in self._lanes.values():
                _refuse_measured(lane)

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the next reply that accepts `request`."""
        if self._keep:
            self.requests.append(request)
        lanes = self._lanes
        lane = lanes.get(f"job:{request.job_id}") or lanes.get(request.role) or lanes.get(EVERYBODY)
        if lane is None:
            raise UnmatchedRequest(no_script_text(request, lanes))
        entry = lane.take(request)
        if entry is None:
            raise _no_reply(lane, request)
        return deliver(entry.reply, request, self._manner)

    def saved(self) -> dict[str, object]:
        """Return the position in the script."""
        return {"lanes": [(key, lane.saved()) for key, lane in self._lanes.items()]}

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Continue from where another process `saved` it."""
        for key, given in saved["lanes"]:
            self._lanes[key].resume(given)

    def unused(self) -> list[PendingReply]:
        """Return the replies with uses left; a reply that repeats forever needs only one use."""
        return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def check_finished(self) -> None:
        """Raise `UnusedReplies` if replies were never used."""
        left = self.unused()
        if left:
            raise UnusedReplies(unused_text(left))


def lanes_of(script: Script) -> dict[str, Lane]:
    """Return the lanes of a script by key; a single list has the key `EVERYBODY`."""
    scripts = script if isinstance(script, Mapping) else {EVERYBODY: script}
    return {key: Lane(key, reply_list(entries, key)) for key, entries in scripts.items()}


def _no_reply(lane: Lane, request: ChatRequest) -> ScriptError:
    """Return the error if `lane` has no reply for `request`."""
    pending = lane.pending()
    if not pending:
        return ScriptExhausted(exhausted_text(request, lane.key, lane.total))
    return UnmatchedRequest(unmatched_text(request, lane.key, pending))


def _refuse_measured(lane: Lane) -> None:
    """Raise `BadInput` if a reply reports measured usage but there is no counter."""
    for entry in lane.pending():
        if entry.reply.usage is UsageKind.MEASURED:
            raise BadInput(f"{entry} reports 'measured' usage, but the LLM has no `measure` function")


@final
class FunctionLLM:
    """A provider that calls `function` for every reply: a `Reply`, a string of code, or bytes of a raw body.

    `styles` and `measure` are those of `ScriptedLLM`. Every request is kept in `requests`, in order.
    """

    __slots__ = ("_manner", "_reply", "requests")

    def __init__(
        self,
        function: ReplyFunction,
        *,
        styles: Styles | ChatStyleName | None = None,
        measure: Measure | None = None,
    ) -> None:
        self._reply = computed(function)
        self._manner = manner(styles, measure)
        self.requests: list[ChatRequest] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Call the function. Its exceptions propagate to the caller."""
        self.requests.append(request)
        return deliver(self._reply, request, self._manner)
