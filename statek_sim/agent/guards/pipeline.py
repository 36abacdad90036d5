"""Runs guards in order: each guard checks the text returned by the previous one, and all findings are recorded.

Guards that find attacks run first, whatever their position.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from statek_sim.agent.effects import (
    Ask,
    GuardPoint,
    Judging,
    Saved,
    Subject,
    TextWanted,
    Verdict,
    Wait,
    Waited,
)
from statek_sim.agent.execution import OWN_FAILURES, shown_error, waited
from statek_sim.agent.guards.guard import STRENGTH, Find, Guard, Judgement
from statek_sim.agent.guards.normalization import unescaped
from statek_sim.agent.schema import changed_arguments
from statek_sim.errors import BadInput

AskModel = Callable[[TextWanted], Awaitable[str | None]]
"""Takes a guard's model request and returns the model's answer, or None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a guard with findings did: its action, the rules that matched, and the text before and after."""

    guard: str
    action: str
    reason: str
    rules: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of running guards: the strongest action, the resulting text, the records, and the questions."""

    action: Literal["pass", "warn", "modify", "ask", "block"]
    text: str
    records: tuple[Record, ...] = ()
    asks: tuple[Ask, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the text passes without a person's approval."""
        return self.action not in ("ask", "block")

    @property
    def reason(self) -> str:
        """The reason for the block or the warning."""
        return "; ".join(record.reason for record in self.records if record.action == self.action)


class GuardSet:
    """Runs a set of guards, leaving out those restricted to an environment other than `environment`."""

    def __init__(self, guards: Iterable[Guard] = (), *, environment: str = "") -> None:
        self.guards = tuple(sorted(guards, key=lambda guard: not guard.finds_attacks))
        self._environment = environment
        names = [guard.name for guard in self.guards]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"two guards have the name {twice!r}; expected unique names")

    def run(self, subject: Subject) -> Outcome:
        """Return the outcome for a subject; raises `BadInput` if a guard is async or asks a model (use `arun`)."""
        steps = self.steps(subject)
        try:
            wanted = next(steps)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        steps.close()
        if isinstance(wanted, Wait) and inspect.iscoroutine(wanted.what):
            # Otherwise Python warns that it was never awaited.
            wanted.what.close()
        what = "is async" if isinstance(wanted, Wait) else "asks a model"
        raise BadInput(
            f"a guard of {', '.join(guard.name for guard in self.guards)} {what}; run it with arun"
        )

    async def arun(self, subject: Subject, *, model: AskModel | None = None) -> Outcome:
        """Return the outcome for a subject, including async guards; `model` answers guards that ask a model."""
        steps = self.steps(subject)
        told: Waited | str | None = None
        try:
            while True:
                wanted = steps.send(told)
                if isinstance(wanted, Wait):
                    told = await waited(wanted)
                elif model is None:
                    raise BadInput(f"a guard asks the model {wanted.by.model!r}; pass a model to arun")
                else:
                    told = await model(wanted)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        finally:
            steps.close()

    def steps(self, subject: Subject) -> Generator[Wait | TextWanted, Waited | str | None, Outcome]:
        """Check a subject with each guard, yielding waits and model requests; return the outcome."""
        records: list[Record] = []
        asks: list[Ask] = []
        passed: list[Guard] = []
        for guard in self._of(subject):
            finds = yield from self._finds(guard, subject)
            subject = self._noted(guard, subject, finds, records)
            if records and records[-1].action == "block":
                _undo(passed, subject)
                return _outcome(subject.text, records, ())
            if finds and records[-1].action == "ask":
                asks += [
                    find.ask or Ask(text=f"{records[-1].reason}: may it be called?", confirms=True)
                    for find in finds
                ]
            passed.append(guard)
        return _outcome(subject.text, records, asks)

    def withdrawn(self, subject: Subject) -> None:
        """Let the guards undo what they recorded about a call that was not made."""
        _undo(self._of(subject), subject)

    def _finds(
        self, guard: Guard, subject: Subject
    ) -> Generator[Wait | TextWanted, Waited | str | None, tuple[Find, ...]]:
        places: Sequence[tuple[int, int]] | None = None
        if subject.point is GuardPoint.CALL:
            plain, places = unescaped(subject.text)
            subject = replace(subject, text=plain)
        try:
            found = guard.check(subject)
            if isinstance(found, Judgement):
                text = yield found.wanted
                assert not isinstance(text, Waited), "a request to a model must be answered with a string"
                return _placed(found.read(text), subject.text, places)
            if inspect.isawaitable(found):
                done = yield Wait(found, guard.timeout)
                assert isinstance(done, Waited), "a driver must answer Wait with a Waited"
                if done.late:
                    return self._failed(guard, done.error, late=True)
                if done.error is not None:
                    raise done.error
                found = done.value
            return _placed(found, subject.text, places)
        except BadInput:
            raise
        except OWN_FAILURES as error:
            return self._failed(guard, error)

    def _of(self, subject: Subject) -> Sequence[Guard]:
        return [guard for guard in self.guards if guard.applies(subject, self._environment)]

    def _failed(self, guard: Guard, error: BaseException | None, *, late: bool = False) -> tuple[Find, ...]:
        shown = shown_error(error or TimeoutError())
        what = f"took longer than {guard.timeout:g} s" if late else f"raised {shown}"
        return (Find(_BROKE, detail=f"the guard {what}"),)

    def _noted(self, guard: Guard, subject: Subject, finds: Sequence[Find], records: list[Record]) -> Subject:
        """Record a guard's findings, if any; return the subject, possibly changed, for the next guard."""
        if not finds:
            return subject
        broke = finds[0].rule == _BROKE
        if broke:
            action = "block" if guard.fails == "closed" else "warn"
        else:
            action = "warn" if all(find.mild for find in finds) else guard.action
        after = subject.text
        if action == "modify":
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
        if after == subject.text:
            return subject
        is_call = subject.point is GuardPoint.CALL
        arguments = changed_arguments(subject.arguments, after) if is_call else subject.arguments
        return replace(subject, text=after, arguments=arguments)


def _placed(finds: Iterable[object], text: str, places: Sequence[tuple[int, int]] | None) -> tuple[Find, ...]:
    """Convert findings in the checked `text` to findings with spans in the original text.

    Raises `TypeError` for a value that is not a finding, and `ValueError` for a span outside `text`.
    """
    placed = []
    for find in finds:
        if not isinstance(find, Find):
            raise TypeError(f"its check yielded {type(find).__name__} {find!r:.40}, expected Finds")
        if find.span is not None and not 0 <= find.span[0] <= find.span[1] <= len(text):
            raise ValueError(f"its span {find.span} is outside the text of {len(text)} characters")
        if places is None or find.span is None or find.span[0] >= find.span[1]:
            placed.append(find)
        else:
            span = (places[find.span[0]][0], places[find.span[1] - 1][1])
            placed.append(replace(find, span=span))
    return tuple(placed)


_BROKE: Final = "did not answer"


def _undo(passed: Iterable[Guard], subject: Subject) -> None:
    """Let guards undo what they recorded about a call that they allowed."""
    for guard in passed:
        if guard.undo is not None:
            guard.undo(subject)


def changed(text: str, finds: Iterable[Find]) -> str:
    """Return a text with each finding's span replaced by its `put`; findings without a span are ignored."""
    pieces, done = [], 0
    places = [(*find.span, find.put) for find in finds if find.span is not None]
    # Of overlapping findings, the widest one determines the replacement for the whole overlapping text.
    for start, end, put in sorted(places, key=lambda place: (place[0], -place[1])):
        if start >= done:
            pieces += [text[done:start], put]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def _told(finds: Sequence[Find]) -> str:
    said = dict.fromkeys(f"{find.rule} ({find.detail})" if find.detail else find.rule for find in finds)
    return ", ".join(said)


def _outcome(text: str, records: Sequence[Record], asks: Iterable[Ask]) -> Outcome:
    action = max((record.action for record in records), key=STRENGTH.__getitem__, default="pass")
    return Outcome(action=action, text=text, records=tuple(records), asks=tuple(asks))  # type: ignore[arg-type]  # one of the five


class LoopGuards:
    """A set of guards for an agent's loop, checking on behalf of a user with one role and tier."""

    def __init__(self, guards: GuardSet, role: str, tier: str) -> None:
        self._guards = guards
        self._role = role
        self._tier = tier

    def __call__(self, subject: Subject) -> Verdict | Judging:
        """Return the verdict, or a generator that returns it if a guard waits or asks a model."""
        steps = self._guards.steps(replace(subject, role=self._role, tier=self._tier))
        first = _sent(steps, None)
        return first if isinstance(first, Verdict) else _continued(steps, first)

    def withdrawn(self, subject: Subject) -> None:
        """Let the guards undo what they recorded about a call that was not made."""
        self._guards.withdrawn(replace(subject, role=self._role, tier=self._tier))

    def saved(self) -> dict[str, object]:
        """Return the state of all checks that have state (`effects.Saved`), by guard name."""
        return {name: check.saved() for name, check in self._knowing()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore state returned by `saved`."""
        knowing = dict(self._knowing())
        if set(knowing) != set(saved):
            raise BadInput(
                f"guards {sorted(saved)} were saved, but this run has {sorted(knowing)}; expected the same names"
            )
        for name, check in knowing.items():
            check.restore(saved[name])

    def _knowing(self) -> Iterator[tuple[str, Saved]]:
        for guard in self._guards.guards:
            check: object = guard.check
            if isinstance(check, Saved):
                yield guard.name, check


def in_loop(guards: GuardSet, *, role: str = "", tier: str = "") -> LoopGuards:
    """Return guards for an agent's loop, for a user with this role and tier: `Parts(guards=[in_loop(...)])`."""
    return LoopGuards(guards, role, tier)


_Steps = Generator[Wait | TextWanted, Waited | str | None, Outcome]


def _continued(steps: _Steps, wanted: Wait | TextWanted) -> Judging:
    try:
        while True:
            told = _sent(steps, (yield wanted))
            if isinstance(told, Verdict):
                return told
            wanted = told
    finally:
        steps.close()


def _sent(steps: _Steps, told: Waited | str | None) -> Wait | TextWanted | Verdict:
    """Advance the guards' generator; return their next request or their verdict."""
    try:
        return steps.send(told)
    except StopIteration as end:
        outcome: Outcome = end.value
        return Verdict(action=outcome.action, reason=outcome.reason, text=outcome.text, asks=outcome.asks)
