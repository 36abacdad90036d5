"""Parts of a user's own in the loop of engine two: what breaks in one fails its run, with the part's name.

Every seam is held against its contract: a part that raises, or gives back something else than its seam asks for, is
`PartBroke`. The loop under test would otherwise be blamed, or the whole command end, for what a part of the test did.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_type_hints

from statek_sim.agent.approvals import Approvals
from statek_sim.agent.effects import (
    Advice,
    Ask,
    CallGate,
    Choice,
    Compaction,
    Compactor,
    Guard,
    GuardPoint,
    Judging,
    Parts,
    Reading,
    ReplyReader,
    Subject,
    TextWanted,
    ToolCall,
    ToolChooser,
    ToolOutcome,
    TurnAhead,
    TurnFacts,
    TurnWatcher,
    Verdict,
    Wait,
    WrittenCall,
)
from statek_sim.agent.escalation.ladder import Judgement, Ladder, QualityCheck
from statek_sim.agent.execution import OWN_FAILURES, from_outside, shown_error
from statek_sim.agent.permissions.paths import Entry, ScriptedFiles
from statek_sim.agent.permissions.permissions import FindTool, PermissionGate, Permissions
from statek_sim.agent.reliability import reader_of
from statek_sim.backends.agent_setup import ladder_of
from statek_sim.backends.setup import load_attribute
from statek_sim.errors import FAILS_THE_RUN, BadInput, BadScenario, CompactionFailed, PartBroke
from statek_sim.scenario.agent import EscalationText, GuardText, HarnessText
from statek_sim.scenario.schema import Scenario
from statek_sim.values import JSON, Message

if TYPE_CHECKING:
    from statek_sim.agent.guards.guard import Guard as ShippedGuard
    from statek_sim.agent.guards.settings import Judges


_ACTIONS: Final = get_args(get_type_hints(Verdict)["action"])
_Outer = TypeVar("_Outer")
_KINDS: Final = get_args(get_type_hints(Advice)["kind"])


def as_it_is(guard: ShippedGuard) -> ShippedGuard:
    """Return a guard as it is."""
    return guard


class OwnParts:
    """The parts that one agent of a scenario names, imported; raises `BadScenario` for what cannot be called."""

    def __init__(
        self,
        scenario: Scenario,
        role: str,
        harness: HarnessText,
        context: Compactor | None = None,
        judges: Judges | None = None,
        guards: Callable[[ShippedGuard], ShippedGuard] = as_it_is,
        find: FindTool = lambda name: None,
        model: str = "",
    ) -> None:
        self._harness = harness
        self._judges = judges
        self._changed = guards
        self._context = context
        self._find = find
        self._at = f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}: agents.{role}.harness"
        self._scenario = scenario
        self._guards = [self._guard(f"guards[{at}]", text) for at, text in enumerate(harness.guards)]
        self._watchers = [_Part(f"watchers[{at}]", name, self) for at, name in enumerate(harness.watchers)]
        self._gates = [_Part(f"gates[{at}]", name, self) for at, name in enumerate(harness.gates)]
        self._compactor = None if harness.compactor is None else _Part("compactor", harness.compactor, self)
        self._chooser = None if harness.chooser is None else _Part("chooser", harness.chooser, self)
        self._ladder = None if harness.escalation is None else self._made_ladder(harness.escalation)
        try:
            self._rescued = reader_of(model, harness.dialect)
        except BadInput as error:
            raise BadScenario(f"{self._at}.dialect: {error}") from error
        own = harness.reader is not None and harness.reader != "rescue"
        self._reader = _Part("reader", str(harness.reader), self) if own else None

    def loaded(self, seam: str, name: str) -> Callable[..., Any]:
        """Import `module:attribute` that stands at a seam."""
        found = load_attribute(self._scenario, name)
        if not callable(found):
            raise BadScenario(
                f"{self._at}.{seam}: {name!r} is {found!r}, expected something that can be called"
            )
        return found  # type: ignore[no-any-return]  # checked just above

    def made(self) -> Parts:
        """Return the parts of one run; watchers and gates have a state, so each run gets its own."""
        return Parts(
            chooser=None if self._chooser is None else _chooser(self._chooser),
            reader=self._own_reader(),
            watchers=tuple(_watcher(part) for part in self._watchers),
            gates=(*(_Gate(part) for part in self._gates), *self._permissions(), *self._approvals()),
            compactor=self._context if self._compactor is None else _compactor(self._compactor),
            guards=tuple(guard for made in self._guards for guard in made()),
            ladder=self._ladder,
            commits=self._harness.commits,
        )

    def _guard(self, seam: str, text: GuardText) -> Callable[[], Iterable[Guard]]:
        """Return what makes the guards of one entry; shipped ones may have a state, so each run gets its own."""
        if text.is_own:
            part = _Part(seam, text.guard, self)
            return lambda: (_guard(part),)
        # Imported where a scenario has such guards: it brings JSON Schema.
        from statek_sim.agent.guards.pipeline import GuardSet, in_loop  # noqa: PLC0415
        from statek_sim.agent.guards.settings import guard_of, guards_file, judge_model  # noqa: PLC0415

        judges = self._judges or judge_model
        audience = self._harness.audience
        file = Path(self._scenario.path).parent / text.file

        def made() -> Iterator[Guard]:
            entry = guards_file(file, judges=judges) if text.file else (guard_of(text.entry, judges=judges),)
            for guard in entry:
                own_guards = GuardSet([self._changed(guard)], environment=audience.environment)
                yield in_loop(own_guards, role=audience.role, tier=audience.tier)

        try:
            tuple(made())
        except BadInput as error:
            raise BadScenario(f"{self._at}.{seam}: {error}") from None
        return made

    def _permissions(self) -> tuple[CallGate, ...]:
        """Return the gate of what calls may touch, where that is limited."""
        permissions = self._harness.permissions
        if permissions is None:
            return ()
        files = ScriptedFiles(
            {
                path: Entry(kind="link", target=file.link)
                if file.link
                else Entry(kind=file.kind, links=file.names)
                for path, file in permissions.files.items()
            }
        )
        return (PermissionGate(Permissions(permissions.policy, self._find, files)),)

    def _made_ladder(self, text: EscalationText) -> Ladder:
        checks = [_Part(f"escalation.checks[{at}]", name, self) for at, name in enumerate(text.checks)]
        try:
            return ladder_of(text, map(_quality, checks))
        except BadInput as error:
            raise BadScenario(f"{self._at}.escalation: {error}") from error

    def _approvals(self) -> tuple[CallGate, ...]:
        """Return the gate that asks a person, where one is to be asked; it is the last."""
        asks = {
            name: Ask(text=text.question, seconds=text.within)
            for name, text in self._harness.approvals.items()
        }
        return (Approvals(asks),) if asks else ()

    def _own_reader(self) -> ReplyReader | None:
        if self._reader is not None:
            return _reader(self._reader)
        if self._harness.reader is None:
            return None
        return self._rescued


class _Part:
    """One part: its name, where it stands, and its code."""

    def __init__(self, seam: str, name: str, own: OwnParts) -> None:
        self._who = f"part {name!r} ({seam})"
        self.code = own.loaded(seam, name)

    def call(self, code: Callable[..., Any], *args: object, **named: object) -> Any:
        """Call code of the part; what it raises becomes `PartBroke`, but for what concerns the whole test."""
        try:
            return code(*args, **named)
        except (*FAILS_THE_RUN, CompactionFailed):
            # A compactor that says that it cannot: the loop ends the run for that.
            raise
        except OWN_FAILURES as error:
            raise PartBroke(
                f"{self._who} raised {shown_error(error)}{_place(error)}{_asked(code, args, named)}"
            ) from error

    async def awaited(self, what: Awaitable[object]) -> object:
        """Wait for what code of the part gave; what it raises becomes `PartBroke`, too."""
        try:
            return await what
        except FAILS_THE_RUN:
            raise
        except OWN_FAILURES as error:
            if from_outside(error):
                raise
            raise PartBroke(f"{self._who} raised {shown_error(error)}{_place(error)}") from error

    def expect(self, fits: bool, got: object, expected: str) -> None:
        """Raise `PartBroke` for an answer that does not fit."""
        if fits:
            return
        if inspect.iscoroutine(got):
            got.close()
            expected += "; parts are plain functions"
        shown = "None" if got is None else f"something of type {type(got).__name__!r}"
        raise PartBroke(f"{self._who} gave {shown}, expected {expected}")


def _place(error: BaseException) -> str:
    """Return where in the part's code an error was raised; nothing when the call itself did not fit."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _asked(code: Callable[..., Any], args: Sequence[object], named: Mapping[str, object]) -> str:
    """Return how the part is called, when it cannot be called so."""
    try:
        inspect.signature(code).bind(*args, **named)
    except TypeError:
        given = [type(argument).__name__ for argument in args] + [f"{name}=" for name in named]
        return f"; it is called with {', '.join(given) or 'no arguments'}"
    except ValueError:
        pass  # Code written in C may have no signature.
    return ""


def _with(inner: object, outer: _Outer) -> _Outer:
    """Return what looks after a part, with the part in it: what the part knows is committed."""
    outer.inner = inner  # type: ignore[attr-defined]  # a function takes any
    return outer


# -- the seams --------------------------------------------------------------------------------------------------


def _guard(part: _Part) -> Guard:
    def checked(got: object, subject: Subject) -> Verdict:
        fits = (
            isinstance(got, Verdict)
            and got.action in _ACTIONS
            and _all([got.reason], str)
            and (got.text is None or _all([got.text], str))
            and _all(got.asks, Ask)
            and (got.action != "ask" or subject.point is GuardPoint.CALL)
        )
        part.expect(
            fits, got, f"a Verdict with an action of {', '.join(_ACTIONS)} (ask: about a call), and texts"
        )
        assert isinstance(got, Verdict)
        return got

    async def awaited(verdict: Awaitable[object], subject: Subject) -> Verdict:
        return checked(await part.awaited(verdict), subject)

    def driven(steps: Generator[Any, Any, object], subject: Subject) -> Judging:
        return checked((yield from _driven(part, steps, (TextWanted, Wait))), subject)

    def guard(subject: Subject) -> Verdict | Awaitable[Verdict] | Judging:
        got = part.call(part.code, subject)
        if isinstance(got, Generator):
            return driven(got, subject)
        return awaited(got, subject) if inspect.isawaitable(got) else checked(got, subject)

    withdrawn = getattr(part.code, "withdrawn", None)
    if withdrawn is not None:
        guard.withdrawn = partial(part.call, withdrawn)  # type: ignore[attr-defined]  # a function takes any
    return _with(part.code, guard)


def _quality(part: _Part) -> QualityCheck:
    def judge(task: str, answer: str) -> Judgement | bool:
        got = part.call(part.code, task, answer)
        part.expect(isinstance(got, Judgement | bool), got, "a Judgement, True or False")
        judged: Judgement | bool = got
        return judged

    return judge


def _reader(part: _Part) -> ReplyReader:
    def read(text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
        got = part.call(part.code, text, offered)
        fits = (
            isinstance(got, Reading)
            and _all([got.text], str)
            and (got.refused is None or _all([got.refused], str))
            and _all(got.stages, str)
            and _all(got.calls, WrittenCall)
            and all(_all((call.id, call.name, call.arguments), str) for call in got.calls)
        )
        part.expect(fits, got, "a Reading of texts and WrittenCalls whose arguments are text")
        reading: Reading = got
        return reading

    return _with(part.code, read)


def _watcher(part: _Part) -> TurnWatcher:
    watch = part.call(part.code)
    part.expect(callable(watch), watch, "a watcher, which is called with every turn")

    def watched(turn: TurnFacts) -> Advice | None:
        got = part.call(watch, turn)
        fits = got is None or (
            isinstance(got, Advice)
            and got.kind in _KINDS
            and _all([got.reason], str)
            and _all(got.tools, str)
        )
        part.expect(fits, got, f"None or an Advice of the kind {', '.join(_KINDS)}, with a reason")
        advice: Advice | None = got
        return advice

    return _with(watch, watched)


class _Gate(CallGate):
    def __init__(self, part: _Part) -> None:
        self._part = part
        self._gate = part.call(part.code)
        fits = all(callable(getattr(self._gate, name, None)) for name in ("admit", "ended", "withdrawn"))
        part.expect(fits, self._gate, "a gate with the methods `admit`, `ended` and `withdrawn`")
        self.inner = self._gate

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        got = self._part.call(self._gate.admit, call, at=at)
        self._part.expect(isinstance(got, str | Ask | None), got, "None, a reason as text, or an Ask")
        reason: str | Ask | None = got
        return reason

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        self._part.call(self._gate.ended, call, outcome, at=at)

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        self._part.call(self._gate.withdrawn, call, at=at)


def _chooser(part: _Part) -> ToolChooser:
    def choose(ahead: TurnAhead) -> Choice | None:
        got = part.call(part.code, ahead)
        lists = (got.names, got.all_tags, got.any_tag) if isinstance(got, Choice) else ()
        fits = got is None or (
            isinstance(got, Choice)
            and (got.task is None or _all([got.task], str))
            and all(member is None or _all(member, str) for member in lists)
        )
        part.expect(fits, got, "None or a Choice of names, a task or tags")
        choice: Choice | None = got
        return choice

    return _with(part.code, choose)


def _compactor(part: _Part) -> Compactor:
    def compact(
        messages: Sequence[Message], *, tokens: int
    ) -> Generator[TextWanted, str | None, Compaction | None]:
        got = part.call(part.code, messages, tokens=tokens)
        if isinstance(got, Generator):
            got = yield from _driven(part, got, (TextWanted,))
        fits = got is None or (
            isinstance(got, Compaction)
            and _all([got.strategy], str)
            and _all(got.messages, dict)
            and _all([got.cleared, got.summarised, got.dropped, got.cut], int)
        )
        part.expect(fits, got, "None or a Compaction of messages and the name of its strategy")
        compaction: Compaction | None = got
        return compaction

    return _with(part.code, compact)


def _driven(
    part: _Part, steps: Generator[Any, Any, object], wants: tuple[type, ...]
) -> Generator[Any, Any, object]:
    """Drive a part that is a generator, and return what it returns."""
    answer: object = None
    try:
        while True:
            over, got = part.call(_sent, steps, answer)
            if over:
                return got
            part.expect(
                isinstance(got, wants),
                got,
                f"a {' or '.join(kind.__name__ for kind in wants)} from what it yields",
            )
            answer = yield got
    finally:
        steps.close()


def _sent(steps: Generator[Any, Any, object], answer: object) -> tuple[bool, object]:
    """Return whether a generator has returned, and what it returned or yielded."""
    try:
        return False, steps.send(answer)
    except StopIteration as end:
        return True, end.value


def _all(values: object, kind: type) -> bool:
    """Return whether this is a list, tuple or other sequence of `kind`."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        return False
    return all(isinstance(value, kind) for value in values)
