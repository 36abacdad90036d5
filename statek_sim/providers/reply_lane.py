"""The replies of one script in order, and which of them a request takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from statek_sim.providers.condition import accepts
from statek_sim.providers.mismatch import PendingReply
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, ScriptEntry, as_reply

_NONE: Final[deque[Entry]] = deque()


class Entry:
    """A reply with its place, the position from 1 in the script under `key`, and how often it was given."""

    __slots__ = ("key", "position", "reply", "used")

    def __init__(self, key: str, position: int, reply: Reply) -> None:
        self.key = key
        self.position = position
        self.reply = reply
        self.used = 0


class Lane:
    """The replies under one key of a script, those first that were written first.

    Replies that demand a whole last message are found by that message, so that a script of thousands costs a request
    no more than a script of ten. All others are looked through in order.
    """

    __slots__ = ("_by_message", "_others", "_used", "key", "total")

    def __init__(self, key: str, entries: Sequence[ScriptEntry]) -> None:
        self.key = key
        self.total = len(entries)
        self._used: dict[int, int] = {}
        self._others: deque[Entry] = deque()
        self._by_message: dict[str, deque[Entry]] = {}
        for position, entry in enumerate(entries, 1):
            reply = as_reply(entry)
            whole = _whole_message(reply)
            home = self._others if whole is None else self._by_message.setdefault(whole, deque())
            home.append(Entry(key, position, reply))

    def take(self, request: ChatRequest) -> Entry | None:
        """Return the first entry that accepts `request` and count its use; None when no entry does."""
        named = self._by_message.get(request.last_message, _NONE) if self._by_message else _NONE
        found = _first(named, request)
        other = _first(self._others, request)
        if found is None or (other is not None and other.position < found.position):
            found, named = other, self._others
        if found is None:
            return None
        self._use(found, 1)
        repeat = found.reply.repeat
        if repeat is not None and found.used >= repeat:
            named.remove(found)
        return found

    def _use(self, entry: Entry, times: int) -> None:
        entry.used += times
        self._used[entry.position] = entry.used

    def saved(self) -> tuple[tuple[int, int], ...]:
        """Return which replies were given, by their positions, and how often."""
        return tuple(self._used.items())

    def resume(self, saved: Iterable[tuple[int, int]]) -> None:
        """Go on where another process `saved` it."""
        given = dict(saved)
        for home in (self._others, *self._by_message.values()):
            for entry in [reply for reply in home if reply.position in given]:
                self._use(entry, given[entry.position])
                if entry.reply.repeat is not None and entry.used >= entry.reply.repeat:
                    home.remove(entry)

    def pending(self) -> list[PendingReply]:
        """Return the replies that may still be given, in script order."""
        return self._described(self._entries())

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom; for one that repeats forever, once is enough."""
        return self._described(
            entry for entry in self._entries() if entry.reply.repeat is not None or not entry.used
        )

    def _entries(self) -> Iterator[Entry]:
        everything = [*self._others, *(entry for home in self._by_message.values() for entry in home)]
        yield from sorted(everything, key=lambda entry: entry.position)

    def _described(self, entries: Iterable[Entry]) -> list[PendingReply]:
        return [
            PendingReply(key=self.key, position=entry.position, reply=entry.reply, used=entry.used)
            for entry in entries
        ]


def _whole_message(reply: Reply) -> str | None:
    """Return the last message that the reply demands to the letter, if it demands one."""
    condition = reply.condition
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
