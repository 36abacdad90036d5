"""Providers that play a script, or call a function.

The replies for an agent role or a job form a lane. A request gets the first reply in its lane that accepts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import merge
from operator import attrgetter
from typing import Any, Final, final

from statek_sim.errors import BadInput, ScriptError, ScriptExhausted, UnmatchedRequest, UnusedReplies
from statek_sim.providers.condition import accepts
from statek_sim.providers.delivery import Measure, Styles, deliver, manner
from statek_sim.providers.mismatch import (
    Entry,
    exhausted_text,
    no_script_text,
    unmatched_text,
    unused_text,
)
from statek_sim.providers.protocol import ChatRequest, ChatStyleName, RawReply
from statek_sim.providers.script import (
    ReplyFunction,
    ScriptEntry,
    UsageKind,
    as_reply,
    computed,
    reply_list,
)


class Lane:
    """A script's replies for one agent role or job, in order."""

    __slots__ = ("_by_message", "_entries", "_others", "_used", "key", "total")

    def __init__(self, key: str, entries: Sequence[ScriptEntry]) -> None:
        self.key = key
        self.total = len(entries)
        self._used: dict[int, int] = {}
        self._entries = [Entry(key, position, as_reply(entry)) for position, entry in enumerate(entries, 1)]
        self._by_message: defaultdict[str | None, list[Entry]] = defaultdict(list)
        """The entries, keyed by the exact last message that they require; all other entries are under None."""
        for entry in self._entries:
            self._by_message[_exact_message(entry)].append(entry)
        self._others = self._by_message[None]

    def take(self, request: ChatRequest) -> Entry | None:
        """Return the first entry that accepts `request`, and count its use; None if no entry accepts it."""
        # Scripts may have thousands of entries, of which usually all or none demand an exact message.
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
        """Return the state for `resume`: the positions of used replies, and how often each was used."""
        return tuple(self._used.items())

    def resume(self, saved: Iterable[tuple[int, int]]) -> None:
        """Restore the state from `saved`, possibly in another process."""
        given = dict(saved)
        for entry in [entry for entry in self._entries if entry.position in given]:
            self._use(entry, given[entry.position])

    def pending(self) -> list[Entry]:
        """Return the entries that may still be used, in script order."""
        return list(self._entries)

    def unused(self) -> list[Entry]:
        """Return the entries that were used less often than required; for `forever()`, one use is enough."""
        return [entry for entry in self._entries if entry.reply.repeat is not None or not entry.used]


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
"""Lists of replies, keyed by agent role or `job:<job id>`, or a single list for all jobs."""

EVERYBODY: Final = ""
"""The key for a script that is a single list for all jobs."""


@final
class ScriptedLLM:
    """A provider that plays a script.

    A request uses the replies under `job:<job id>` if the script contains this key, or else the replies under its
    agent's role, which all jobs with that role share. The request gets the first reply that accepts it. A reply without
    a condition accepts every request, and a reply that does not match stays available. A retry is a separate request
    and uses another reply. `complete` raises `UnmatchedRequest` if no reply matches, and `ScriptExhausted` if no reply
    is left.

    `styles` is one chat style per agent role, or a single style for all roles; `delivery` describes its effect on code.
    `measure` counts tokens for replies that report `measured` usage. `requests` lists all requests, unless
    `keep_requests` is off.
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
        """Return the answer from the next reply that accepts `request`, or raise the scripted failure."""
        if self._keep:
            self.requests.append(request)
        key = lane_key(self._lanes, request)
        if key is None:
            raise UnmatchedRequest(no_script_text(request, self._lanes))
        lane = self._lanes[key]
        entry = lane.take(request)
        if entry is None:
            raise _no_reply(lane, request)
        return deliver(entry.reply, request, self._manner)

    def saved(self) -> dict[str, object]:
        """Return the state for `resume`: how often each reply was used."""
        return {"lanes": [(key, lane.saved()) for key, lane in self._lanes.items()]}

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the state from `saved`, possibly in another process."""
        for key, given in saved["lanes"]:
            self._lanes[key].resume(given)

    def unused(self) -> list[Entry]:
        """Return the entries that were used less often than required; for `forever()`, one use is enough."""
        return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def check_finished(self) -> None:
        """Raise `UnusedReplies` if a reply was never used."""
        left = self.unused()
        if left:
            raise UnusedReplies(unused_text(left))


def lane_key(keys: Container[str], request: ChatRequest) -> str | None:
    """Return the key of the replies for a request: `job:<job id>`, else its role, else `EVERYBODY`, or None."""
    options = (f"job:{request.job_id}", request.role, EVERYBODY)
    return next((key for key in options if key in keys), None)


def lanes_of(script: Script) -> dict[str, Lane]:
    """Return a script's lanes, keyed by role or job; a single list has the key `EVERYBODY`."""
    scripts = script if isinstance(script, Mapping) else {EVERYBODY: script}
    return {key: Lane(key, reply_list(entries, key)) for key, entries in scripts.items()}


def _no_reply(lane: Lane, request: ChatRequest) -> ScriptError:
    """Return the error for a request that no reply in `lane` accepts."""
    pending = lane.pending()
    if not pending:
        return ScriptExhausted(exhausted_text(request, lane.key, lane.total))
    return UnmatchedRequest(unmatched_text(request, lane.key, pending))


def _refuse_measured(lane: Lane) -> None:
    """Raise `BadInput` if a reply reports measured usage, which requires an LLM with `measure`."""
    for entry in lane.pending():
        if entry.reply.usage is UsageKind.MEASURED:
            raise BadInput(f"{entry} reports 'measured' usage, but the LLM has no `measure` function")


@final
class FunctionLLM:
    """A provider that answers each request with the result of `function`.

    The function returns a `Reply`, a string of code, or a raw body as bytes. `styles` is as in `ScriptedLLM`.
    `requests` lists all requests in order.
    """

    __slots__ = ("_manner", "_reply", "requests")

    def __init__(
        self,
        function: ReplyFunction,
        *,
        styles: Styles | ChatStyleName | None = None,
    ) -> None:
        self._reply = computed(function)
        self._manner = manner(styles, None)
        self.requests: list[ChatRequest] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the function's answer; its exceptions propagate."""
        self.requests.append(request)
        return deliver(self._reply, request, self._manner)
