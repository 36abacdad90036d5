"""The scripted LLM: answers come from a script, in order, and nothing is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from statek_sim.errors import BadInput, ScriptError, ScriptExhausted, UnmatchedRequest, UnusedReplies
from statek_sim.providers.delivery import Measure, Styles, deliver, manner
from statek_sim.providers.mismatch import (
    PendingReply,
    exhausted_text,
    no_script_text,
    unmatched_text,
    unused_text,
)
from statek_sim.providers.protocol import ChatRequest, ChatStyleName, RawReply
from statek_sim.providers.reply_lane import Lane
from statek_sim.providers.script import ScriptEntry, UsageKind

Script = Mapping[str, Sequence[ScriptEntry]] | Sequence[ScriptEntry]
"""Replies by agent role or `job:<job id>`, or one list for everybody."""

EVERYBODY: Final = ""
"""The key of a script that is one list for everybody."""


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
        self._lanes = lanes_of(script)
        self._keep = keep_requests
        self.requests: list[ChatRequest] = []
        if measure is None:
            for lane in self._lanes.values():
                _refuse_measured(lane)

    def complete(self, request: ChatRequest) -> RawReply:
        """Give the next reply that accepts `request`."""
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
        """Return how far the script is."""
        return {"lanes": [(key, lane.saved()) for key, lane in self._lanes.items()]}

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Go on where another process `saved` it."""
        for key, given in saved["lanes"]:
            self._lanes[key].resume(given)

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom; for one that repeats forever, once is enough."""
        return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def check_finished(self) -> None:
        """Raise `UnusedReplies` when replies are left that no job asked for."""
        left = self.unused()
        if left:
            raise UnusedReplies(unused_text(left))


def lanes_of(script: Script) -> dict[str, Lane]:
    """Return the lanes of a script by their key; one list for everybody has the key `EVERYBODY`."""
    scripts = script if isinstance(script, Mapping) else {EVERYBODY: script}
    for key, entries in scripts.items():
        if isinstance(entries, str | bytes) or not isinstance(entries, Sequence):
            name = f"script {key!r}" if key else "a script"
            raise BadInput(f"{name} is a list of replies, not {entries!r}")
    return {key: Lane(key, entries) for key, entries in scripts.items()}


def _no_reply(lane: Lane, request: ChatRequest) -> ScriptError:
    """Say why `lane` has nothing for `request`."""
    pending = lane.pending()
    if not pending:
        return ScriptExhausted(exhausted_text(request, lane.key, lane.total))
    return UnmatchedRequest(unmatched_text(request, lane.key, pending))


def _refuse_measured(lane: Lane) -> None:
    """Raise `BadInput` when a reply reports usage that nobody measures."""
    for entry in lane.pending():
        if entry.reply.usage is UsageKind.MEASURED:
            raise BadInput(f"{entry} reports 'measured' usage, but the LLM was given no `measure` function")
