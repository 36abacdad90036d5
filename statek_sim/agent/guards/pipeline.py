"""Guards in order: each sees the text as those before it left it, and everything that they found is kept."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.agent.effects import Guard as LoopGuard
from statek_sim.agent.effects import GuardPoint, Verdict
from statek_sim.agent.guards.guard import STRENGTH, Find, Guard, Subject
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """On what the document's pipeline and a good one differ (002 §3)."""

    warning: Literal["passes", "blocks"] = "passes"
    """What a warning is. In the document's example a warning makes `passed` false, and its caller returns."""

    modified: Literal["goes_on", "is_lost"] = "goes_on"
    """Whether the guards that follow, and the model, see what a guard changed. The document's `modify` has no text."""

    error: Literal["by_guard", "raises"] = "by_guard"
    """What a check that raises does: what the guard says, or it ends the pipeline (the document)."""


HARDENED: Final = GuardRules()
DOCUMENT: Final = GuardRules(warning="blocks", modified="is_lost", error="raises")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one guard did: the rules that found something, and the text before and after it."""

    guard: str
    action: str
    reason: str
    rules: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a set of guards says of a subject: the strongest action, the text that goes on, and every record."""

    action: Literal["pass", "warn", "modify", "block"]
    text: str
    records: tuple[Record, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the text may go on."""
        return self.action != "block"

    @property
    def reason(self) -> str:
        """Why it is blocked, or what was noted."""
        return "; ".join(record.reason for record in self.records if record.action == self.action)


class GuardSet:
    """Runs guards. `environment` says where: guards that are for others do not apply."""

    def __init__(
        self, guards: Iterable[Guard] = (), *, environment: str = "", rules: GuardRules = HARDENED
    ) -> None:
        self.guards = tuple(guards)
        self._environment = environment
        self._rules = rules
        names = [guard.name for guard in self.guards]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"two guards are called {twice!r}; names tell their records apart")

    def run(self, subject: Subject) -> Outcome:
        """Return what plain guards say; an async one is a `BadInput`, which `arun` takes."""
        records: list[Record] = []
        passed: list[Guard] = []
        for guard in self._of(subject):
            try:
                found = guard.check(subject)
                if inspect.isawaitable(found):
                    _close(found)
                    raise BadInput(f"guard {guard.name!r} is async; run it with arun")
                finds = tuple(found)
            except BadInput:
                raise
            except Exception as error:  # noqa: BLE001  # a user's check
                finds = self._failed(guard, error)
            subject, goes_on = self._passed(guard, subject, finds, records, passed)
            if not goes_on:
                break
        return _outcome(subject.text, records)

    async def arun(self, subject: Subject) -> Outcome:
        """Return what plain and async guards say."""
        records: list[Record] = []
        passed: list[Guard] = []
        for guard in self._of(subject):
            try:
                async with asyncio.timeout(guard.timeout):
                    found = guard.check(subject)
                    finds = tuple(await found if inspect.isawaitable(found) else found)
            except BadInput:
                raise
            except Exception as error:  # noqa: BLE001  # a user's check
                finds = self._failed(guard, error)
            subject, goes_on = self._passed(guard, subject, finds, records, passed)
            if not goes_on:
                break
        return _outcome(subject.text, records)

    def _of(self, subject: Subject) -> Sequence[Guard]:
        return [guard for guard in self.guards if guard.applies(subject, self._environment)]

    def _passed(
        self,
        guard: Guard,
        subject: Subject,
        finds: Sequence[Find],
        records: list[Record],
        passed: list[Guard],
    ) -> tuple[Subject, bool]:
        """Return the subject after a guard, and whether others look at it still; a block takes back what was noted."""
        subject = self._noted(guard, subject, finds, records)
        if records and records[-1].action == "block":
            _undo(passed, subject)
            return subject, False
        passed.append(guard)
        return subject, True

    def _failed(self, guard: Guard, error: Exception) -> tuple[Find, ...]:
        if self._rules.error == "raises":
            raise error
        late = isinstance(error, TimeoutError) and guard.timeout is not None
        what = f"took longer than {guard.timeout:g} s" if late else f"raised {type(error).__name__}: {error}"
        return (Find(_BROKE, detail=f"the guard {what}"),)

    def _noted(self, guard: Guard, subject: Subject, finds: Sequence[Find], records: list[Record]) -> Subject:
        """Add a guard's record; return the subject as those that follow see it."""
        if not finds:
            return subject
        broke = finds[0].rule == _BROKE
        action = ("block" if guard.fails == "closed" else "warn") if broke else guard.action
        if action == "warn" and self._rules.warning == "blocks":
            action = "block"
        after = subject.text
        if action == "modify" and self._rules.modified == "goes_on":
            after = changed(subject.text, finds)
        records.append(
            Record(
                guard=guard.name,
                action=action,
                reason=f"{guard.name}: {_told(finds)}",
                rules=tuple(dict.fromkeys(find.rule for find in finds)),
                before=subject.text,
                after=after,
            )
        )
        return subject if after == subject.text else replace(subject, text=after)


_BROKE: Final = "did not answer"


def _undo(passed: Iterable[Guard], subject: Subject) -> None:
    """Let the guards that let a subject pass take back what they noted of it."""
    for guard in passed:
        if guard.undo is not None:
            guard.undo(subject)


def changed(text: str, finds: Iterable[Find]) -> str:
    """Return a text with what was found replaced by its `put`; a find without a place replaces nothing."""
    pieces, done = [], 0
    places = [(*find.span, find.put) for find in finds if find.span is not None]
    # Of those that overlap the widest is replaced, and what another covers beyond it goes with it.
    for start, end, put in sorted(places, key=lambda place: (place[0], -place[1])):
        if start >= done:
            pieces += [text[done:start], put]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def _told(finds: Sequence[Find]) -> str:
    said = dict.fromkeys(f"{find.rule} ({find.detail})" if find.detail else find.rule for find in finds)
    return ", ".join(said)


def _outcome(text: str, records: Sequence[Record]) -> Outcome:
    action = max((record.action for record in records), key=STRENGTH.__getitem__, default="pass")
    return Outcome(action=action, text=text, records=tuple(records))  # type: ignore[arg-type]  # one of the four


def _close(found: object) -> None:
    """Keep Python from warning of a coroutine that nobody awaits."""
    if inspect.iscoroutine(found):
        found.close()


def in_loop(guards: GuardSet, *, session: str = "", role: str = "", tier: str = "") -> LoopGuard:
    """Return the guards as one part of an agent's loop: `Parts(guards=[in_loop(...)])`.

    The loop shows its guards a text, and the tool where there is one. A guard that needs more (arguments, the time,
    what is spent, sources) is a `BadInput`: hold calls by a gate, and spending by the loop's own budget.
    """
    for one in guards.guards:
        if one.needs:
            raise BadInput(
                f"guard {one.name!r} needs {', '.join(sorted(one.needs))}, which the loop does not show its guards; "
                "run it yourself, or use a gate or the loop's budget"
            )

    def guard(point: GuardPoint, text: str, *, tool: str | None) -> Verdict:
        outcome = guards.run(
            Subject(point=point, text=text, tool=tool, session=session, role=role, tier=tier)
        )
        return Verdict(action=outcome.action, reason=outcome.reason, text=outcome.text)

    # What a check notes it can take back; one that takes nothing back knows nothing that a checkpoint had to hold.
    guard.stateless = all(one.undo is None for one in guards.guards)  # type: ignore[attr-defined]  # a function takes any
    return guard
