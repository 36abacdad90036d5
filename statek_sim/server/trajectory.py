"""What an agent did, as data: its calls of tools in order, and expectations on them that hold for any framework.

run = trajectory(statek_llm_server)  # or a guest, an `AgentHarness`, a `Trace`
run.expect_calls(call("get_weather", city="Oslo"), call("send", ..., to=re.compile("@example.org")))
run.never_called("delete_*")
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest
from types import EllipsisType
from typing import Any, Literal, Protocol, runtime_checkable

from statek_sim.errors import BadInput
from statek_sim.providers.script import Chat
from statek_sim.providers.wire.format import FORMATS
from statek_sim.server.journal import JournalEntry
from statek_sim.trace import LLMReplied, ToolCalled, ToolReturned, Trace
from statek_sim.values import JSON, Message

Order = Literal["exact", "subsequence", "any"]
"""`exact`: these calls and no others. `subsequence`: in this order, others between. `any`: each once, others too."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool.

    `arguments` by name; a text where they are no object of JSON, or, in a trace, no values that can be read back.
    `result` is what the model was told of it, None as long as it was told nothing. `error` is `Type: message` where
    the tool raised and that was seen: a server sees results only. `turn` counts the answers of the model from 1.
    """

    name: str
    arguments: Mapping[str, Any] | str
    result: str | None
    error: str | None
    turn: int

    def __str__(self) -> str:
        """Return the call as Python writes it."""
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments})"
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is expected, made by `call`; `open` when it may have more arguments than `arguments`."""

    name: str
    arguments: Mapping[str, Any]
    open: bool

    def fits(self, made: Call) -> bool:
        """Return whether a call is this one."""
        if not fnmatchcase(made.name, self.name):
            return False
        given = made.arguments
        if isinstance(given, str):
            return self.open and not self.arguments
        if not self.open and given.keys() != self.arguments.keys():
            return False
        return all(
            name in given and _value_fits(wanted, given[name]) for name, wanted in self.arguments.items()
        )

    def __str__(self) -> str:
        """Return the call as a test writes it."""
        shown = ["..."] if self.open else []
        shown += [f"{name}={_shown(value)}" for name, value in self.arguments.items()]
        return f"{self.name}({', '.join(shown)})"


def call(name: str, more: EllipsisType | None = None, /, **arguments: Any) -> ExpectedCall:
    """Return a call to expect. `name` may be a pattern, `search_*`; with `...` other arguments may be there too.

    An argument is a value that must be equal (`unittest.mock.ANY` and `pytest.approx` are), a compiled regular
    expression that is found in the text, a `range` that has the number, or a function that returns whether it fits.
    """
    return ExpectedCall(name, arguments, more is not None)


def _value_fits(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, re.Pattern):
        return isinstance(given, str) and wanted.search(given) is not None
    if isinstance(wanted, range):
        return given in wanted
    if isinstance(wanted, dict) and isinstance(given, dict):
        return wanted.keys() == given.keys() and all(
            _value_fits(part, given[name]) for name, part in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(given, list):
        return len(wanted) == len(given) and all(map(_value_fits, wanted, given))
    if wanted == given:
        return True
    return callable(wanted) and bool(wanted(given))


def _shown(wanted: Any) -> str:
    if isinstance(wanted, re.Pattern):
        return f"/{wanted.pattern}/"
    return getattr(wanted, "__name__", None) or repr(wanted)


class Trajectory:
    """The calls that an agent made, in order, and its last `answer`, None where that was no text of a script.

    The expectations raise AssertionError, with what was wanted beside what was called.
    """

    __slots__ = ("answer", "calls")

    def __init__(self, calls: Iterable[Call], answer: str | None = None) -> None:
        self.calls = tuple(calls)
        self.answer = answer

    def __repr__(self) -> str:
        """Return the calls, for assertions that fail."""
        return f"<Trajectory {', '.join(map(str, self.calls)) or 'without calls'}>"

    def expect_calls(self, *wanted: ExpectedCall, order: Order = "exact") -> None:
        """Raise unless the wanted calls were made, in an `Order`."""
        __tracebackhide__ = True
        if order not in ("exact", "subsequence", "any"):
            raise BadInput(f"order={order!r}: expected 'exact', 'subsequence' or 'any'")
        missing = _missing(wanted, self.calls, order)
        if missing is not None:
            raise AssertionError(f"{missing}\n{_side_by_side(wanted, self.calls)}")

    def never_called(self, *patterns: str) -> None:
        """Raise when a tool was called whose name fits one of the patterns, `delete_*`."""
        __tracebackhide__ = True
        for number, made in enumerate(self.calls, 1):
            for pattern in patterns:
                if fnmatchcase(made.name, pattern):
                    raise AssertionError(f"{pattern} must never be called, but call {number} is {made}")

    def at_most(self, pattern: str, times: int) -> None:
        """Raise when tools whose names fit the pattern were called more than so many times."""
        __tracebackhide__ = True
        made = [one for one in self.calls if fnmatchcase(one.name, pattern)]
        if len(made) > times:
            listed = "\n".join(f"  {one}" for one in made)
            raise AssertionError(
                f"{pattern} was called {len(made)} times, expected at most {times}:\n{listed}"
            )


def _missing(wanted: Sequence[ExpectedCall], made: Sequence[Call], order: Order) -> str | None:
    """Return what is not as wanted, None when all is."""
    if order == "exact":
        for number, (one, other) in enumerate(zip_longest(wanted, made), 1):
            if one is None:
                return f"call {number} is one too many: {other}"
            if other is None or not one.fits(other):
                return f"call {number}: expected {one}, got {other or 'no more calls'}"
        return None
    rest = list(made)
    for one in wanted:
        place = next((place for place, other in enumerate(rest) if one.fits(other)), None)
        if place is None:
            behind = "" if order == "any" else " behind the calls that are expected before it"
            return f"expected {one}{behind}: it was not called"
        rest = rest[place + 1 :] if order == "subsequence" else rest[:place] + rest[place + 1 :]
    return None


def _side_by_side(wanted: Sequence[ExpectedCall], made: Sequence[Call]) -> str:
    left = ["expected", *map(str, wanted)] if wanted else ["expected", "(no calls)"]
    right = ["called", *map(str, made)] if made else ["called", "(no calls)"]
    width = max(map(len, left))
    return "\n".join(
        f"  {one:{width}}  {other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")
    )


@runtime_checkable
class _Traced(Protocol):
    @property
    def trace(self) -> Trace: ...


@runtime_checkable
class _Asked(Protocol):
    @property
    def requests(self) -> tuple[JournalEntry, ...]: ...


def trajectory(source: _Asked | _Traced | Trace) -> Trajectory:
    """Return what an agent did so far: seen by a fake LLM server, or in the trace of a guest, an agent or a runtime.

    A server knows the calls that its script made and finds their results in later requests. Several conversations are
    one trajectory, in the order of the answers.
    """
    if isinstance(source, Trace):
        return Trajectory(_traced_calls(source), _traced_answer(source))
    if isinstance(source, _Traced):
        return trajectory(source.trace)
    if isinstance(source, _Asked):
        return _served(source.requests)
    raise BadInput(
        f"{source!r} has neither requests nor a trace: pass a fake LLM server, a guest, an agent or a trace"
    )


# ---- from a trace


def _traced_calls(trace: Trace) -> Iterator[Call]:
    turns: dict[str, int] = {}
    begun: list[tuple[ToolCalled, int]] = []
    ended: dict[int, ToolReturned] = {}
    for event in trace.events:
        if isinstance(event, LLMReplied):
            turns[event.job] = event.turn
        elif isinstance(event, ToolCalled):
            begun.append((event, turns.get(event.job, 0)))
        elif isinstance(event, ToolReturned):
            place = next(
                (
                    place
                    for place, (called, _) in enumerate(begun)
                    if place not in ended
                    and (called.job, called.name, called.call_id) == (event.job, event.name, event.call_id)
                ),
                None,
            )
            if place is not None:
                ended[place] = event
    for place, (called, turn) in enumerate(begun):
        end = ended.get(place)
        arguments = _written_arguments(called.arguments)
        yield Call(called.name, arguments, end.result if end else None, end.error if end else None, turn)


def _traced_answer(trace: Trace) -> str | None:
    return next((event.text for event in reversed(trace.events) if isinstance(event, LLMReplied)), None)


def _written_arguments(text: str) -> Mapping[str, Any] | str:
    """Return the values of arguments that a trace has as Python writes them; the text where they cannot be read."""
    try:
        parsed = ast.parse(f"_({text})", mode="eval").body
        if not isinstance(parsed, ast.Call) or parsed.args or any(one.arg is None for one in parsed.keywords):
            return text
        return {str(one.arg): ast.literal_eval(one.value) for one in parsed.keywords}
    except (SyntaxError, ValueError):
        return text


# ---- from a server


def _served(entries: Sequence[JournalEntry]) -> Trajectory:
    heard = [(entry, _messages(entry)) for entry in entries]
    calls: list[Call] = []
    answer, turn = None, 0
    for number, (entry, messages) in enumerate(heard):
        if entry.reply is None or entry.status != 200 or not entry.is_answered:
            continue
        turn += 1
        message = entry.reply.reply.answer
        scripted = (
            [(one.name, dict(one.args)) for one in message.calls] if isinstance(message, Chat) else None
        )
        later = [following for _, following in heard[number + 1 :]]
        made = list(_answered(scripted, messages, later, turn))
        calls += made
        answer = message.text if isinstance(message, Chat) and not made else None
    return Trajectory(calls, answer)


def _messages(entry: JournalEntry) -> tuple[Message, ...]:
    try:
        return FORMATS[entry.wire].read_request(entry.json, entry.raw_target).messages
    except ValueError:
        return ()


def _answered(
    scripted: list[tuple[str, dict[str, JSON]]] | None,
    before: tuple[Message, ...],
    later: Sequence[tuple[Message, ...]],
    turn: int,
) -> Iterator[Call]:
    """Yield the calls of one answer, with the results that a later request has for them.

    The request that goes on from this one has them; where a framework writes its history anew, the first one with the
    same calls. What a function or raw bytes answered is known from there only.
    """
    found = next((rest for rest in _continued(before, later) if _calls_in(rest[0])), None)
    if found is None and scripted:
        turns = (messages[place:] for messages in later for place in range(len(messages)))
        found = next((rest for rest in turns if [one[:2] for one in _calls_in(rest[0])] == scripted), None)
    seen = _calls_in(found[0]) if found else []
    results = [message for message in found[1:] if message.get("role") == "tool"] if found else []
    known = scripted if scripted is not None else [one[:2] for one in seen]
    for place, (name, arguments) in enumerate(known):
        call_id = seen[place][2] if place < len(seen) else None
        result = next((one for one in results if one.get("tool_call_id") == call_id), None)
        if result is not None:
            results.remove(result)
        yield Call(name, arguments, _text(result), None, turn)


def _text(result: Message | None) -> str | None:
    content = result.get("content") if result else None
    return content if content is None or isinstance(content, str) else json.dumps(content)


def _continued(
    before: tuple[Message, ...], later: Iterable[tuple[Message, ...]]
) -> Iterator[tuple[Message, ...]]:
    """Yield what later requests say behind the messages of one before them."""
    for messages in later:
        if len(messages) > len(before) and messages[: len(before)] == before:
            yield messages[len(before) :]


def _calls_in(message: Message) -> list[tuple[str, Any, str]]:
    """Return the name, arguments and id of each call of a message."""
    calls = message.get("tool_calls")
    found = []
    for one in calls if isinstance(calls, list) else []:
        function: Any = one.get("function") if isinstance(one, dict) else None
        if isinstance(one, dict) and isinstance(function, dict):
            found.append(
                (str(function.get("name")), _read_arguments(function.get("arguments")), str(one.get("id")))
            )
    return found


def _read_arguments(text: JSON) -> Any:
    try:
        read = json.loads(str(text))
    except ValueError:
        return str(text)
    return read if isinstance(read, dict) else str(text)
