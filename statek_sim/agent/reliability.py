"""Plugs rescue parsing and loop protection into the loop: a reply reader, a turn watcher and a call gate.

The protections are independent of the loop; this module connects them to it. `reader: rescue` in a scenario uses
`rescued` with the dialect of the agent's model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from statek_sim.agent.effects import (
    Advice,
    Reading,
    ReplyReader,
    ToolCall,
    ToolOutcome,
    TurnFacts,
    TurnWatcher,
    WrittenCall,
)
from statek_sim.agent.protection import (
    Breakers,
    BreakerSettings,
    CallSeen,
    Loop,
    LoopSettings,
    Permit,
    TurnSeen,
    Watch,
    breaker_from,
    observe,
    watch_from,
)
from statek_sim.values import JSON

if TYPE_CHECKING:
    from statek_sim.agent.rescue.parser import Reformat

_IN_EVERY_CALL: Final = re.compile(r"[{(\[<:]|functions\.")
"""Matches part of any text that contains a call, or what looks like one."""


def rescued(
    text: str,
    offered: Mapping[str, Mapping[str, JSON]],
    *,
    dialect: str | None = None,
    model: str = "",
    reformat: Reformat | None = None,
    read_only: Collection[str] = (),
) -> Reading:
    """Return the calls that rescue parsing finds in a reply's text, or why what looks like a call is rejected.

    `stages` describes how the calls were parsed, or why they were rejected. `dialect` is the format that the model
    writes, by default the one that belongs to the model name (see `dialect_of`). `read_only` names tools whose calls
    may be surrounded by text. `reformat` is the agent document's last resort: it takes an unreadable reply and returns
    a better one, or None. Arguments are converted as in a native call.
    """
    if not _IN_EVERY_CALL.search(text):
        return Reading(text=text)
    # Imported only for text that may contain a call: most agents never get any.
    from statek_sim.agent.rescue.formats import dialect_of  # noqa: PLC0415
    from statek_sim.agent.rescue.parser import rescue  # noqa: PLC0415
    from statek_sim.agent.rescue.values import Reason  # noqa: PLC0415

    dialect = dialect or dialect_of(model)
    found = rescue(text, offered, reformat=reformat, dialect=dialect, coerce=True, read_only=read_only)
    if found.calls:
        calls = tuple(
            WrittenCall("", call.name, json.dumps(dict(call.arguments), ensure_ascii=False))
            for call in found.calls
        )
        return Reading(calls=calls, text=found.text, stages=found.stages)
    stages = tuple(dict.fromkeys(refusal.reason.value for refusal in found.refused))
    if not found.refused:
        return Reading(text=text)
    first = found.refused[0]
    shown = first.name if first.reason is Reason.NOT_ALONE else None
    return Reading(text=text, stages=stages, refused=first.why.removesuffix("."), shown=shown)


def reader_of(model: str, dialect: str | None = None) -> ReplyReader:
    """Return a reply reader that uses rescue parsing with `dialect`, or with the dialect for the model's name.

    Raises `BadInput` for an unknown dialect.
    """
    if dialect is not None:
        # Imported only here, as in `rescued`.
        from statek_sim.agent.rescue.formats import dialect_called  # noqa: PLC0415

        dialect_called(dialect)
    return partial(rescued, dialect=dialect, model=model)


def loop_watcher(
    settings: LoopSettings | None = None,
    *,
    escalate: Callable[[Loop], None] | None = None,
) -> TurnWatcher:
    """Return a watcher for one run that responds to loops: by default with a nudge, then without the looping tools.

    The last response ends the run. `escalate` is called for a loop whose response is `escalate`; if there is no such
    function, that response is a nudge.
    """
    return LoopWatcher(settings or LoopSettings(), escalate)


class LoopWatcher:
    """Watches one run and responds to loops, with state that a checkpoint can store."""

    def __init__(self, settings: LoopSettings, escalate: Callable[[Loop], None] | None) -> None:
        self._settings = settings
        self._escalate = escalate
        self.watch = Watch()

    def __call__(self, turn: TurnFacts) -> Advice | None:
        """Return the response to a loop that this turn completes."""
        seen = [
            CallSeen(tool=call.name, arguments=call.arguments, result=f"{outcome.status} {outcome.text}")
            for call, outcome in turn.calls
        ]
        turn_seen = TurnSeen(text=turn.text, calls=seen, progress=turn.progress)
        self.watch, loop = observe(self.watch, turn_seen, self._settings)
        if loop is None:
            return None
        if loop.response == "escalate" and self._escalate is not None:
            self._escalate(loop)
        tools = tuple(dict.fromkeys(call.name for call, _ in turn.calls))
        if loop.response == "fewer_tools" and tools:
            return Advice(kind="fewer_tools", reason=loop.reason, tools=tools)
        return Advice(kind="stop" if loop.response == "stop" else "nudge", reason=loop.reason)

    def saved(self) -> object:
        """Return the remembered turns and the number of loops found."""
        return asdict(self.watch)

    def restore(self, saved: Any) -> None:
        """Restore state returned by `saved`."""
        self.watch = watch_from(saved)


class BreakerGate:
    """A gate with one circuit breaker per tool. Calls that raised, timed out or were cancelled count as failures."""

    def __init__(self, settings: BreakerSettings | None = None) -> None:
        self.breakers = Breakers(settings)
        self._out: list[tuple[ToolCall, Permit]] = []

    def saved(self) -> object:
        """Return the state of every breaker, and the permits in use."""
        return {
            "breakers": {
                key: asdict(breaker) | {"circuit": breaker.circuit.value}
                for key, breaker in self.breakers.state.items()
            },
            "permits": [
                {"id": call.id, "tool": call.name, "permit": asdict(permit)} for call, permit in self._out
            ],
        }

    def restore(self, saved: Any) -> None:
        """Restore state returned by `saved`."""
        self.breakers.restore({key: breaker_from(breaker) for key, breaker in saved["breakers"].items()})
        self._out = [
            (ToolCall(out["id"], out["tool"], {}), Permit(**out["permit"])) for out in saved["permits"]
        ]

    def admit(self, call: ToolCall, *, at: float) -> str | None:
        """Return why `call` must not be executed now, or None to admit it."""
        permit = self.breakers.ask(call.name, at=at)
        if permit is None:
            return self.breakers.why_not(call.name, at=at)
        self._out.append((call, permit))
        return None

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Inform the tool's breaker whether the call failed."""
        permit = self._taken(call)
        if permit is not None:
            self.breakers.tell(call.name, permit, at=at, failed=outcome.failed)

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Inform the tool's breaker that the call was not made."""
        permit = self._taken(call)
        if permit is not None:
            self.breakers.withdraw(call.name, permit, at=at)

    def _taken(self, call: ToolCall) -> Permit | None:
        """Remove and return this call object's permit, because several runs may use the same id.

        After a restart, calls are new objects, so the oldest permit for this tool and id is returned.
        """
        same = [at for at, (other, _) in enumerate(self._out) if other is call]
        same += [
            at for at, (other, _) in enumerate(self._out) if (other.id, other.name) == (call.id, call.name)
        ]
        return self._out.pop(same[0])[1] if same else None
