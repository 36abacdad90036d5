"""Runs a user's plugins in engine two's loop.

An exception in a plugin fails the run; the error names the plugin. Every plugin's result is checked. A plugin
that raises an exception, or returns something unexpected, causes `PartBroke`; otherwise, the failure would
look like a bug in the agent loop, or would end the whole command.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

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
    Parts,
    Reading,
    ReplyReader,
    Subject,
    TextWanted,
    ToolCall,
    ToolOutcome,
    Verdict,
    Wait,
    WrittenCall,
)
from statek_sim.agent.escalation import Judgement, Ladder
from statek_sim.agent.execution import OWN_FAILURES, from_outside, shown_error
from statek_sim.agent.permissions.paths import Entry, ScriptedFiles
from statek_sim.agent.permissions.permissions import FindTool, PermissionGate, Permissions
from statek_sim.agent.reliability import reader_of
from statek_sim.backends.agent_setup import ladder_of
from statek_sim.backends.setup import attribute_at
from statek_sim.errors import FAILS_THE_RUN, BadInput, BadScenario, CompactionFailed, PartBroke
from statek_sim.scenario.agent import EscalationText, GuardText, HarnessText
from statek_sim.scenario.schema import Scenario

if TYPE_CHECKING:
    from statek_sim.agent.guards.guard import Guard as ShippedGuard
    from statek_sim.agent.guards.settings import Judges


# -- contracts of seams --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """Describes what plugins of one kind must return.

    `fits` checks a result, and also receives the call's arguments. If `yields` contains types, a plugin may
    be a generator that yields values of these types. With `awaits`, it may be a coroutine function.
    `expected` describes the result for error messages.
    """

    expected: str
    fits: Callable[..., bool]
    yields: tuple[type, ...] = ()
    awaits: bool = False


_ACTIONS: Final = get_args(get_type_hints(Verdict)["action"])
_KINDS: Final = get_args(get_type_hints(Advice)["kind"])


def _all(values: object, kind: Any) -> bool:
    """Return whether a value is a list, tuple or other sequence of `kind`."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        return False
    return all(isinstance(value, kind) for value in values)


def _is_verdict(got: object, subject: Subject) -> bool:
    return (
        isinstance(got, Verdict)
        and got.action in _ACTIONS
        and _all([got.reason, got.text], str | None)
        and _all(got.asks, Ask)
        and (got.action != "ask" or subject.point is GuardPoint.CALL)
    )


def _is_reading(got: object, *_asked: object) -> bool:
    return (
        isinstance(got, Reading)
        and _all([got.text, *got.stages], str)
        and _all([got.refused], str | None)
        and _all(got.calls, WrittenCall)
        and all(_all((call.id, call.name, call.arguments), str) for call in got.calls)
    )


def _is_advice(got: object, *_asked: object) -> bool:
    return got is None or (
        isinstance(got, Advice) and got.kind in _KINDS and _all([got.reason, *got.tools], str)
    )


def _is_choice(got: object, *_asked: object) -> bool:
    if not isinstance(got, Choice):
        return got is None
    lists = (got.names, got.all_tags, got.any_tag)
    return _all([got.task], str | None) and all(one is None or _all(one, str) for one in lists)


def _is_compaction(got: object, *_asked: object) -> bool:
    return got is None or (
        isinstance(got, Compaction)
        and _all([got.strategy], str)
        and _all(got.messages, dict)
        and _all([got.cleared, got.summarised, got.dropped, got.cut], int)
    )


_GATE_METHODS: Final = ("admit", "ended", "withdrawn")

GUARD: Final = Contract(
    expected=f"a Verdict with action {', '.join(_ACTIONS)} (ask only for a call) and strings",
    fits=_is_verdict,
    yields=(TextWanted, Wait),
    awaits=True,
)
READER: Final = Contract(
    expected="a Reading with strings, and WrittenCalls whose arguments are strings", fits=_is_reading
)
WATCHER: Final = Contract(
    expected=f"None or an Advice of kind {', '.join(_KINDS)} with a reason", fits=_is_advice
)
CHOOSER: Final = Contract(expected="None or a Choice with names, a task or tags", fits=_is_choice)
COMPACTOR: Final = Contract(
    expected="None or a Compaction with messages and its strategy's name",
    fits=_is_compaction,
    yields=(TextWanted,),
)
QUALITY: Final = Contract(
    expected="a Judgement, True or False", fits=lambda got, *_asked: isinstance(got, Judgement | bool)
)
ADMISSION: Final = Contract(
    expected="None, a reason as a string, or an Ask",
    fits=lambda got, *_asked: isinstance(got, str | Ask | None),
)
NEW_WATCHER: Final = Contract(expected="a watcher: a callable that takes a turn", fits=callable)
NEW_GATE: Final = Contract(
    expected="a gate with the methods `admit`, `ended` and `withdrawn`",
    fits=lambda got: all(callable(getattr(got, name, None)) for name in _GATE_METHODS),
)


# -- calling a plugin ----------------------------------------------------------------------------------------------


class Plugin:
    """A plugin: `code` is the imported object, `seam` the key under `harness` that names the plugin."""

    def __init__(self, seam: str, name: str, code: Callable[..., Any]) -> None:
        self.code = code
        self._who = f"part {name!r} ({seam})"

    def wrapped(self, code: Callable[..., Any], contract: Contract) -> Any:
        """Wrap `code` to check its results; checkpoints find `code` as the attribute `inner`."""

        def called(*args: object, **named: object) -> Any:
            got = self.call(code, *args, **named)
            if contract.yields and isinstance(got, Generator):
                return self._driven(got, contract, args)
            if contract.awaits and inspect.isawaitable(got):
                return self._awaited(got, contract, args)
            return self._checked(got, contract, args)

        called.inner = code  # type: ignore[attr-defined]  # a function takes any
        withdrawn = getattr(code, "withdrawn", None)
        if withdrawn is not None:
            called.withdrawn = partial(self.call, withdrawn)  # type: ignore[attr-defined]
        return called

    def made(self, contract: Contract) -> Any:
        """Call the plugin without arguments and return the watcher or gate that it creates for one run."""
        return self._checked(self.call(self.code), contract, ())

    def call(self, code: Callable[..., Any], *args: object, **named: object) -> Any:
        """Call the plugin's code, and convert its exceptions to `PartBroke`.

        `CompactionFailed` and errors that concern the whole test, such as `NetworkForbidden`, propagate unchanged.
        """
        try:
            return code(*args, **named)
        except (*FAILS_THE_RUN, CompactionFailed):
            # A compactor reports failure with `CompactionFailed`, and the loop ends the run.
            raise
        except OWN_FAILURES as error:
            raise self._broke(error, _asked(code, args, named)) from error

    async def _awaited(self, what: Awaitable[object], contract: Contract, args: Sequence[object]) -> object:
        try:
            got = await what
        except FAILS_THE_RUN:
            raise
        except OWN_FAILURES as error:
            if from_outside(error):
                raise
            raise self._broke(error) from error
        return self._checked(got, contract, args)

    def _driven(
        self, steps: Generator[Any, Any, object], contract: Contract, args: Sequence[object]
    ) -> Generator[Any, Any, object]:
        """Run a generator plugin and return its result."""
        wants = f"a {' or '.join(kind.__name__ for kind in contract.yields)} from what it yields"
        answer: object = None
        try:
            while True:
                over, got = self.call(_sent, steps, answer)
                if over:
                    return self._checked(got, contract, args)
                self._expect(isinstance(got, contract.yields), got, wants)
                answer = yield got
        finally:
            steps.close()

    def _checked(self, got: object, contract: Contract, args: Sequence[object]) -> Any:
        self._expect(contract.fits(got, *args), got, contract.expected)
        return got

    def _expect(self, fits: bool, got: object, expected: str) -> None:
        if fits:
            return
        if inspect.iscoroutine(got):
            got.close()
            expected += "; plugins must be plain functions"
        shown = "None" if got is None else f"an object of type {type(got).__name__!r}"
        raise PartBroke(f"{self._who} returned {shown}, expected {expected}")

    def _broke(self, error: BaseException, asked: str = "") -> PartBroke:
        return PartBroke(f"{self._who} raised {shown_error(error)}{_place(error)}{asked}")


def _sent(steps: Generator[Any, Any, object], answer: object) -> tuple[bool, object]:
    """Resume a generator; return whether it ended, and the result or yielded value."""
    try:
        return False, steps.send(answer)
    except StopIteration as end:
        return True, end.value


def _place(error: BaseException) -> str:
    """Return the file and line in the plugin's code where an error was raised, or an empty string for a bad call."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _asked(code: Callable[..., Any], args: Sequence[object], named: dict[str, object]) -> str:
    """Describe the arguments passed to the plugin if it does not accept them; otherwise return an empty string."""
    try:
        inspect.signature(code).bind(*args, **named)
    except TypeError:
        given = [type(argument).__name__ for argument in args] + [f"{name}=" for name in named]
        return f"; it is called with {', '.join(given) or 'no arguments'}"
    except ValueError:
        pass  # Code written in C may have no signature.
    return ""


class _Gate(CallGate):
    """A gate for one run, whose results are checked."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self.inner = plugin.made(NEW_GATE)
        self._admit = plugin.wrapped(self.inner.admit, ADMISSION)

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        admission: str | Ask | None = self._admit(call, at=at)
        return admission

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        self._plugin.call(self.inner.ended, call, outcome, at=at)

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        self._plugin.call(self.inner.withdrawn, call, at=at)


# -- the plugins of an agent ---------------------------------------------------------------------------------------


class AgentPlugins:
    """The plugins for one agent in a scenario; raises `BadScenario` for a plugin that is not callable."""

    def __init__(
        self,
        scenario: Scenario,
        role: str,
        harness: HarnessText,
        *,
        context: Compactor | None,
        judges: Judges | None,
        guards: Callable[[ShippedGuard], ShippedGuard],
        find: FindTool,
        model: str,
    ) -> None:
        self._harness = harness
        self._judges = judges
        self._changed = guards
        self._find = find
        self._at = f"{scenario.place}: agents.{role}.harness"
        self._scenario = scenario
        self._guards = [self._guard(f"guards[{at}]", text) for at, text in enumerate(harness.guards)]
        self._watchers = [self._plugin(f"watchers[{at}]", name) for at, name in enumerate(harness.watchers)]
        self._gates = [self._plugin(f"gates[{at}]", name) for at, name in enumerate(harness.gates)]
        self._compactor = context
        if harness.compactor is not None:
            self._compactor = self._function("compactor", harness.compactor, COMPACTOR)
        self._chooser = (
            None if harness.chooser is None else self._function("chooser", harness.chooser, CHOOSER)
        )
        self._ladder = None if harness.escalation is None else self._made_ladder(harness.escalation)
        self._reader = self._made_reader(harness, model)

    def _plugin(self, seam: str, name: str) -> Plugin:
        """Import the `module:attribute` given under a key in `harness`."""
        found = attribute_at(self._scenario.place, name)
        if not callable(found):
            raise BadScenario(f"{self._at}.{seam}: {name!r} is {found!r}, expected a callable")
        return Plugin(seam, name, found)

    def _function(self, seam: str, name: str, contract: Contract) -> Any:
        plugin = self._plugin(seam, name)
        return plugin.wrapped(plugin.code, contract)

    def made(self) -> Parts:
        """Return the plugins for one run.

        Each run gets its own watchers, gates and guards, because they have state.
        """
        return Parts(
            chooser=self._chooser,
            reader=self._reader,
            watchers=tuple(plugin.wrapped(plugin.made(NEW_WATCHER), WATCHER) for plugin in self._watchers),
            gates=(*map(_Gate, self._gates), *self._permissions(), *self._approvals()),
            compactor=self._compactor,
            guards=tuple(guard for made in self._guards for guard in made()),
            ladder=self._ladder,
            commits=self._harness.commits,
        )

    def _guard(self, seam: str, text: GuardText) -> Callable[[], Iterable[Guard]]:
        """Return a function that creates the guards for one entry.

        Built-in guards may have state, so each run needs its own.
        """
        if text.is_own:
            guard = self._function(seam, text.guard, GUARD)
            return lambda: (guard,)
        # Imported only for scenarios with such guards, because it loads JSON Schema.
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
        """Return the gate that enforces permissions, or an empty tuple if the agent has none."""
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
        checks = [
            self._function(f"escalation.checks[{at}]", name, QUALITY) for at, name in enumerate(text.checks)
        ]
        try:
            return ladder_of(text, checks)
        except BadInput as error:
            raise BadScenario(f"{self._at}.escalation: {error}") from error

    def _approvals(self) -> tuple[CallGate, ...]:
        """Return the gate that asks a person to approve calls, or an empty tuple if no call needs approval."""
        asks = {
            name: Ask(text=text.question, seconds=text.within)
            for name, text in self._harness.approvals.items()
        }
        return (Approvals(asks),) if asks else ()

    def _made_reader(self, harness: HarnessText, model: str) -> ReplyReader | None:
        try:
            rescue = reader_of(model, harness.dialect)
        except BadInput as error:
            raise BadScenario(f"{self._at}.dialect: {error}") from error
        if harness.reader is None:
            return None
        if harness.reader == "rescue":
            return rescue
        reader: ReplyReader = self._function("reader", str(harness.reader), READER)
        return reader
