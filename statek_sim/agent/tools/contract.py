"""A public checker that every tool registry passes, ours or a user's, through a small adapter.

def test_my_registry_executes_only_what_it_offered() -> None:
    check_tool_registry(MyAdapter)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from types import FrameType
from typing import Any, Final, NoReturn, Protocol, TypeVar

from statek_sim.adapters import with_methods
from statek_sim.agent.effects import ToolFunction
from statek_sim.errors import ContractViolation
from statek_sim.values import JSON

R = TypeVar("R")

MOST: Final = 4
"""Tools in the registries whose every offer is tried."""
MANY: Final = 1000
"""Tools in the registry whose offers are measured."""
STEPS: Final = 40
"""Steps of Python's interpreter that a tool may cost per turn that is registered and not offered: a microsecond."""

_FEW: Final = 10
_NAMES: Final = ("zeta_list", "alpha_read", "mid_write", "beta_send", "omega_stop", "kappa_find")


class RegistryAdapter(Protocol):
    """One registry, empty at first, for the checker."""

    def register(
        self, name: str, description: str, parameters: Mapping[str, JSON], run: ToolFunction
    ) -> None:
        """Add a tool; a name that is taken is an exception of any kind."""

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        """Choose the tools of the next turn (None: all); return their names, in the order in which they go out."""

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        """Do what a call by the model does; return whether the tool was executed, and what the model reads."""


MakeRegistry = Callable[[], RegistryAdapter]

_SCHEMA: Final[dict[str, JSON]] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "at": {"type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"]},
        "rows": {"type": "array", "items": {"type": "string"}},
        "size": {"enum": ["small", "large"]},
        "note": {"type": "string"},
    },
    "required": ["count"],
    "additionalProperties": False,
}
_GOOD: Final[tuple[dict[str, JSON], ...]] = (
    {"count": 1},
    {"count": 2, "note": ""},
    {"count": 2, "note": "4"},
    {"count": 3, "size": "large"},
    {"count": 3, "at": {"hour": 7}},
    {"count": 4, "rows": ["a", "2"]},
)
_BAD: Final[tuple[tuple[dict[str, JSON], tuple[str, ...]], ...]] = (
    ({}, ("count",)),
    ({"count": 0}, ("count",)),
    ({"count": "x"}, ("count",)),
    ({"count": 4.5}, ("count",)),
    ({"count": "4.5"}, ("count",)),
    ({"count": 1, "extra": 2}, ("extra",)),
    ({"count": 1, "note": {}}, ("note",)),
    ({"count": 1, "size": "huge"}, ("size",)),
    ({"count": 1, "at": {}}, ("at", "hour")),
    ({"count": 1, "at": {"hour": "noon"}}, ("at", "hour")),
    ({"count": 1, "rows": ["a", {"b": 1}]}, ("rows", "1")),
)
"""Arguments that do not fit, and what the path to the first of their problems consists of."""


def check_tool_registry(make_registry: MakeRegistry) -> int:
    """Check a registry of tools; return how much was tried, or raise `ContractViolation` with the smallest case.

    `make_registry` returns a fresh, empty registry. Checked, in every offer of up to 4 tools: what is offered can be
    called, is executed once with the arguments as they came, and its result is what the model reads; what is not is
    not executed, and the model is told so by its name. A name that is taken is refused, and the first tool stays.
    Arguments that do not fit the JSON Schema are not executed, and the model reads where they are wrong. Offers come in
    one order, turn after turn: that of registration, newest first, or that of the alphabet; what a `set` gives is
    another one in the next process. A turn costs next to nothing for tools that it does not offer (counted in steps of
    the interpreter, not on a clock). `BadInput` for an adapter without a method.
    """
    tried = 0
    for check in (_offered_only, _taken_names, _arguments, _order, _cost):
        for _ in check(lambda: _Careful(make_registry())):
            tried += 1
    return tried


class _Careful:
    """A registry under test whose methods are there, raise nothing, and return what they should."""

    def __init__(self, registry: RegistryAdapter) -> None:
        self._registry = with_methods(registry, ("register", "offer", "call"), of="RegistryAdapter")
        self._names: list[str] = []
        self._offered = "nothing offered"

    def register(
        self, name: str, description: str, parameters: Mapping[str, JSON], run: ToolFunction
    ) -> None:
        """Add a tool; only one whose name is taken may be refused."""
        if name in self._names:
            self._registry.register(name, description, parameters, run)
            return
        self._names.append(name)
        _held(f"{name} registered", partial(self._registry.register, name, description, parameters, run))

    def offer(self, names: Sequence[str] | None) -> Sequence[str]:
        """Choose the tools of a turn."""
        self._offered = "all offered" if names is None else f"{_listed(names) or 'none'} offered"
        offered = _held(self._here, partial(self._registry.offer, names))
        if isinstance(offered, str) or not isinstance(offered, Iterable):
            _violated(self._here, f"the offer is {offered!r}, expected a list of names")
        return offered

    def call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[bool, str]:
        """Do what a call by the model does."""
        here = f"{self._here}, {name} called"
        found: object = _held(here, partial(self._registry.call, name, arguments))
        match found:
            case (executed, str(said)):
                return bool(executed), said
        return _violated(here, f"the call gives {found!r}, expected whether it was executed, and a text")

    @property
    def _here(self) -> str:
        shown = _listed(self._names) if len(self._names) <= _FEW else f"{len(self._names)} tools"
        return f"{shown} registered, {self._offered}"


def _held(here: str, act: Callable[[], R]) -> R:
    try:
        return act()
    except Exception as error:  # a user's registry
        raise ContractViolation(f"{here}: the registry raised {type(error).__name__}: {error}") from error


@dataclass(slots=True)
class _Tools:
    """A registry with tools that note their calls."""

    registry: RegistryAdapter
    called: list[tuple[str, dict[str, JSON]]]

    def add(self, name: str, schema: Mapping[str, JSON] | None = None, *, says: str = "") -> None:
        def run(**arguments: Any) -> str:
            self.called.append((name, arguments))
            return says or f"result of {name}"

        parameters = schema or {"type": "object", "properties": {}}
        self.registry.register(name, f"What {name} does.", parameters, run)


def _made(make_registry: MakeRegistry, names: Sequence[str]) -> _Tools:
    tools = _Tools(make_registry(), [])
    for name in names:
        tools.add(name)
    return tools


def _offers(most: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield registered names with each choice of them, the smallest first."""
    for size in range(1, most + 1):
        registered = _NAMES[:size]
        for chosen in range(size + 1):
            yield from ((registered, offered) for offered in combinations(registered, chosen))


# -- what is offered --------------------------------------------------------------------------------------------


def _offered_only(make_registry: MakeRegistry) -> Iterator[None]:
    for registered, chosen in _offers(MOST):
        here = f"{_listed(registered)} registered, {_listed(chosen) or 'none'} offered"
        tools = _made(make_registry, registered)
        # A turn before, with everything: what was offered then is not offered now.
        tools.registry.offer(None)
        offered = tools.registry.offer(chosen)
        if sorted(offered) != sorted(chosen):
            _violated(here, f"the offer is {_listed(offered) or 'empty'}")
        for name in (*registered, "rm", registered[0].upper()):
            tools.called.clear()
            executed, text = tools.registry.call(name, {})
            if name in chosen:
                _judge_good(f"{here}, {name} called", tools, (executed, text), (name, {}))
            else:
                _judge_refused(f"{here}, {name} called", tools, executed=executed)
                if name not in text:
                    _violated(
                        f"{here}, {name} called",
                        f"the model reads {text[:80]!r}, which does not name the call",
                    )
            yield


def _taken_names(make_registry: MakeRegistry) -> Iterator[None]:
    tools = _made(make_registry, _NAMES[:1])
    name = _NAMES[0]
    try:
        tools.add(name, says="result of the second")
    except Exception:  # noqa: BLE001  # of any kind
        refused = True
    else:
        refused = False
    if not refused:
        _violated(f"{name} registered twice", "the second was accepted, so one of the two is never called")
    tools.registry.offer(None)
    _, text = tools.registry.call(name, {})
    if text != f"result of {name}":
        _violated(f"{name} registered twice", f"the first was replaced: a call gives {text[:80]!r}")
    yield


# -- arguments --------------------------------------------------------------------------------------------------


def _arguments(make_registry: MakeRegistry) -> Iterator[None]:
    tools = _Tools(make_registry(), [])
    name = _NAMES[0]
    tools.add(name, _SCHEMA)
    tools.registry.offer(None)
    for good in sorted(_GOOD, key=_size):
        tools.called.clear()
        found = tools.registry.call(name, json.loads(json.dumps(good)))
        _judge_good(f"{name}({json.dumps(good)}), which fits", tools, found, (name, good))
        yield
    for bad, path in sorted(_BAD, key=lambda case: _size(case[0])):
        tools.called.clear()
        executed, text = tools.registry.call(name, json.loads(json.dumps(bad)))
        here = f"{name}({json.dumps(bad)}), which does not fit"
        _judge_refused(here, tools, executed=executed)
        if not all(step in text.replace(name, "") for step in path):
            _violated(here, f"the model reads {text[:120]!r}, which does not lead to {'.'.join(path)}")
        yield


# -- lists ------------------------------------------------------------------------------------------------------


def _order(make_registry: MakeRegistry) -> Iterator[None]:
    whole: Sequence[str] = ()
    for registered, chosen in _offers(len(_NAMES)):
        here = f"{_listed(registered)} registered, {_listed(chosen) or 'none'} asked for"
        registry = _made(make_registry, registered).registry
        if not chosen:
            whole = tuple(registry.offer(None))
            if tuple(_made(make_registry, registered).registry.offer(None)) != whole:
                _violated(here, "two registries with the same tools offer them in different orders")
            if list(whole) not in (list(registered), list(reversed(registered)), sorted(registered)):
                order = "neither the order of registration nor that of the alphabet"
                _violated(
                    here, f"the offer is {_listed(whole)}, {order}: another process may offer another one"
                )
        first, second = tuple(registry.offer(chosen)), tuple(registry.offer(chosen))
        if first != second:
            _violated(here, f"one turn offers {_listed(first)}, the next {_listed(second)}")
        if first not in (tuple(chosen), tuple(name for name in whole if name in chosen)):
            _violated(here, f"the offer is {_listed(first)}, while all come as {_listed(whole)}")
        yield


def _cost(make_registry: MakeRegistry) -> Iterator[None]:
    chosen = [f"tool_{number}" for number in range(5)]
    steps: list[int] = []
    for size in (_FEW, MANY):
        registry = _made(make_registry, [f"tool_{number}" for number in range(size)]).registry
        registry.offer(chosen)
        steps.append(_steps(lambda registry=registry: registry.offer(chosen)))  # type: ignore[misc]
        yield
    each = (steps[1] - steps[0]) / (MANY - _FEW)
    if each > STEPS:
        _violated(
            f"{MANY} tools registered, the same {len(chosen)} offered again",
            f"each of the others costs {each:.0f} steps, expected {STEPS} at most: keep offers until something changes",
        )


def _steps(act: Callable[[], object]) -> int:
    """Return how many steps of the interpreter `act` takes."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


# -- judging ----------------------------------------------------------------------------------------------------


def _judge_good(
    here: str, tools: _Tools, found: tuple[bool, str], wanted: tuple[str, Mapping[str, JSON]]
) -> None:
    executed, text = found
    if not executed:
        _violated(here, f"it was refused: {text[:120]!r}")
    if tools.called != [(wanted[0], dict(wanted[1]))]:
        _violated(here, f"executed was {tools.called!r}")
    if f"result of {wanted[0]}" not in text:
        _violated(here, f"the model reads {text[:80]!r} in the place of the result")


def _judge_refused(here: str, tools: _Tools, *, executed: bool) -> None:
    if tools.called:
        _violated(here, "it was executed")
    if executed:
        _violated(here, "it was not executed, and is said to have been")


def _size(arguments: Mapping[str, JSON]) -> int:
    return len(json.dumps(arguments))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _violated(here: str, what: str) -> NoReturn:
    raise ContractViolation(f"{here}: {what}")
