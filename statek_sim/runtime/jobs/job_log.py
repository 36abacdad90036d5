"""A job's chat log, and the rules for console entries, error counts and stored values (behaviour 4.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statek_sim import trace as events
from statek_sim.runtime.state.access import attribute, ended_in
from statek_sim.runtime.state.chat_log import (
    ChatItem,
    CodeBlock,
    DifficultyChangeLogItem,
    LLM_LogItem,
    UserLogItem,
    WarmupLogItem,
)
from statek_sim.runtime.state.context import CurrentJob
from statek_sim.runtime.state.counters import Counters, PositionCounters, TurnCounters
from statek_sim.runtime.state.pyenv import Error, ErrorKind, PyEnv
from statek_sim.runtime.stored.block_end import PREDICTED_RELEASE, Remark, predict_losses, remark_of
from statek_sim.runtime.stored.containers import Kept, kept, put, stored_text, unstorable
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.semantics import Profile


class JobLog:
    """A job's chat log, with its turn and exception counters."""

    __slots__ = ("_profile", "counters", "items")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.items: list[ChatItem] = []
        by_turn = profile.console_error_belongs_to == "turn"
        self.counters: Counters = TurnCounters() if by_turn else PositionCounters()

    def add(self, item: ChatItem) -> None:
        """Append an item to the chat log."""
        self.items.append(item)
        if isinstance(item, (LLM_LogItem, WarmupLogItem)):
            self.counters.open(item)

    @property
    def last(self) -> ChatItem | None:
        """The newest item in the chat log, or None."""
        log = (item for item in reversed(self.items) if not isinstance(item, DifficultyChangeLogItem))
        return next(log, None)

    @property
    def last_response(self) -> str | CodeBlock | None:
        """The newest item's response if it is an LLM turn, else None (behaviour 2)."""
        last = self.last
        return last.llm_resp if isinstance(last, LLM_LogItem) else None

    def print(self, env: PyEnv, text: Any, error: ErrorKind | None) -> tuple[int, str]:
        """Append an entry to the console; return its index and its stored form.

        `error` is the kind of error, if any. A string with a lone surrogate raises dbzero's error. The entry
        is stored as an empty string, except that since 1.2.7, an error is not stored at all. A non-string
        value becomes an entry if the store accepts it, but after that no request can be built. The store
        rejects str subclasses.
        """
        if not isinstance(text, str) or (env.stores and type(text) is not str):
            return self._print_as_it_is(env, text)
        if env.stores:
            lost = unstorable(text)
            if lost is not None and error is not None and self._profile.console_error_belongs_to == "turn":
                raise ended_in("Error.__init__") from lost
            if lost is not None:
                env.lines.append("")
                raise lost
            text = stored_text(text)
        text = without_addresses(text)
        index = len(env.lines)
        env.lines.append(text)
        if error is not None:
            self._record_error(env, index, error, text)
        return index, text

    @staticmethod
    def _print_as_it_is(env: PyEnv, value: Any) -> tuple[int, str]:
        index = len(env.lines)
        if env.stores:
            put(value, env.lines.append)
        else:
            env.lines.append(value)
        return index, without_addresses(str(env.lines[index]))

    def _record_error(self, env: PyEnv, index: int, kind: ErrorKind, text: str) -> None:
        position = self.newest_position()
        if self._profile.console_error_belongs_to == "position":
            env.errors[position] = text
        else:
            env.errors[index] = Error(kind, text)
        if kind is ErrorKind.EXECUTION or self._profile.harness_error_counts:
            self.counters.record_error(position)

    def newest_position(self) -> int:
        """Return the newest item's console position, or 0 for a user message, which has none.

        Under the 1.2.5 rules, a user message raises AttributeError.
        """
        last = self.last
        if isinstance(last, str | UserLogItem) and not self._profile.message_may_end_chat_log:
            kind = "str" if isinstance(last, str) else "statek.executors.chat_log_item.UserLogItem"
            raise AttributeError(f"{kind!r} object has no attribute 'console_pos'")
        return 0 if last is None or isinstance(last, str | UserLogItem) else last.console_pos


class Keeping:
    """Converts a job's values to stored form, and records losses as remarks."""

    __slots__ = ("_job", "_remarked")

    def __init__(self, job: CurrentJob) -> None:
        self._job = job
        self._remarked: set[str] = set()

    def remark(self, remarks: Iterable[Remark], release: str | None = None) -> None:
        """Record remarks in the trace.

        If `release` is given, they are predictions for that release and are recorded once per name.
        """
        job = self._job
        for found in remarks:
            if release is not None and found.name in self._remarked:
                continue
            self._remarked.add(found.name)
            at = job.host.clock.now()
            job.host.trace.add(
                events.StoreRemark(at, job.id, found.name, found.change, found.reason, release)
            )

    def predict_losses(self, before: dict[str, object], after: dict[str, object]) -> None:
        """Record which of the names bound since `before` STATEK would lose. With a store, do nothing."""
        if not self._job.py_env.stores:
            self.remark(predict_losses(before, after), PREDICTED_RELEASE)

    def drop(self) -> None:
        """Remove the variables that the run store cannot save, and record a remark for each.

        Without such a store, do nothing.
        """
        why_not, env = self._job.host.why_not, self._job.py_env
        if why_not is None:
            return
        for name, value in [*env.local_state.items()]:
            reason = why_not(value)
            if reason is not None:
                del env.local_state[name]
                self.remark([Remark(name, "lost", reason)])

    def keeps(self, name: str, value: Any) -> Kept:
        """Return the stored form of an attribute's value, and record losses as remarks about `name`.

        Raises the store's error for a rejected value. Without a store, the value is returned unchanged.
        """
        why_not = self._job.host.why_not
        reason = None if why_not is None or self._job.py_env.stores else why_not(value)
        if reason is not None:
            self.remark([Remark(name, "lost", reason)])
            return Kept(None, None)
        found, stores = kept(value), self._job.py_env.stores
        remark = remark_of(name, found)
        if remark is not None:
            self.remark([remark], None if stores else PREDICTED_RELEASE)
        return attribute(value, found) if stores else Kept(value, None)

    def constructor_argument(self, name: str, value: Any, owner: str) -> Any:
        """Return the stored form of a constructor argument, like `keeps`; `owner` is the class name.

        Raises SystemError for a damaged value.
        """
        found = self.keeps(name, value)
        if found.error is not None:
            raise ended_in(f"{owner}.__init__") from found.error
        return found.value
