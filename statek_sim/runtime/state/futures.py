"""Durable waiting: signals, futures and temporal functions ("Jobs", Suspended Jobs).

A temporal function returns a `FutureResult`. Reading the value before it is ready raises `FutureError`, which
suspends the job. STATEK polls every waiting job. Here, a future whose `deps` are signals is only checked
again after one of them has fired; only futures with unknown dependencies are polled.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar, cast, get_args, get_origin

from statek_sim.runtime.state.access import FULL, access, current_access, denied, full_name, missing
from statek_sim.runtime.stored.ordering import Shows, shown_members
from statek_sim.runtime.stored.storable_types import NamedAsInC, object_text
from statek_sim.sandbox.compile import FILENAME as AGENT_CODE
from statek_sim.sandbox.llm_repr import STORES_OWN
from statek_sim.sandbox.policy import RestrictedMethod


class Signal:
    """Notifies listeners in registration order when code calls `fire` after a change.

    The cost of `listen` and `fire` does not depend on how many jobs are waiting for other signals.
    """

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[str], None]] = {}

    def listen(self, key: str, listener: Callable[[str], None]) -> None:
        """Call `listener(key)` on every `fire` until `forget(key)`."""
        self._listeners[key] = listener

    def forget(self, key: str) -> None:
        """Remove the listener for `key`; unknown keys are ignored."""
        self._listeners.pop(key, None)

    def fire(self) -> None:
        """Call every listener."""
        for key, listener in list(self._listeners.items()):
            listener(key)


F = TypeVar("F", bound=Callable[..., Any])


class HandlerTarget(Protocol):
    """The job interface that a deferred error handler uses."""

    def add_error_handler(self, error_handler: Callable[..., object], context: object) -> None:
        """Register `error_handler` with `context`."""


class FutureError(Exception):
    """Raised when a future's value is not available yet.

    `instr_num` is the statement at which to continue; STATEK adds it while the error propagates.
    """

    def __init__(self, future_result: FutureResult, instr_num: object = None) -> None:
        # Agents see `str(error)`, which contains the statement number only if it was given here.
        super().__init__(*((future_result,) if instr_num is None else (future_result, instr_num)))
        self.future_result = future_result
        self.instr_num = instr_num


_MEMBERS: Final = (
    "deps",
    "state_num",
    "_FutureResult__check_condition",
    "_FutureResult__fetch_result",
    "_FutureResult__pending_error_handler",
    "_FutureResult__pending_error_handler_job",
)
_ADDRESS: Final = re.compile(" at 0x[0-9a-f]+")
_READ_BY_CODE: Final = ContextVar("read_by_code", default=False)


class FutureResult(metaclass=NamedAsInC):
    """A value that will be available later.

    `deps` are its dependencies: a `Signal`, an object with a `signal` attribute, or a set or tuple of these.
    Anything else (including None) means that the condition must be polled, as STATEK does for all futures.
    """

    equals_others_of_its_tool = True
    """Whether the store treats all futures from the same tool as equal; see `__eq__`."""

    def __init__(self, deps: object = None, state_num: int = 0) -> None:
        self.deps = deps
        self.state_num = state_num
        self.__check_condition: Callable[[Any], bool] | None = None
        self.__fetch_result: Callable[[Any], object] | None = None
        self.__pending_error_handler: Callable[..., object] | None = None
        self.__pending_error_handler_job: HandlerTarget | None = None

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; for an unknown one, agent code gets dbzero's error."""
        try:
            if current_access() != FULL and not name.startswith("__"):
                if name == "deps":
                    with access(FULL):
                        return self.stored_deps
                if sys._getframe(1).f_code.co_filename == AGENT_CODE:
                    return _read_by_agents(self, name)
            return object.__getattribute__(self, name)
        except AttributeError:
            if name.startswith("__") or inspect.getattr_static(self, name, None) is not None:
                raise
            raise missing(self, name) from None

    def __store_members__(self, shows: Shows) -> dict[str, object]:
        """Return the members displayed to agents for a future that has not been awaited.

        These are its private members, in dbzero's order.
        """
        members = {**vars(self), "deps": self.stored_deps}
        return shown_members(members, shows)

    def __str__(self) -> str:
        return object_text(self)

    def __repr__(self) -> str:
        # A dataclass's `repr`, used in a FutureError with a message, but without the functions' addresses.
        if current_access() != FULL:
            raise denied("__class__")
        kind = type(self).__name__
        members = ", ".join(
            f"{name}={value!r}" for name, value in zip(_MEMBERS, self._compared(), strict=True)
        )
        return f"{kind}({_ADDRESS.sub(' at 0x...', members)})"

    def __eq__(self, other: object) -> bool:
        """Compare as in STATEK, where futures are dataclasses: members added by a subclass are ignored.

        Therefore, two elements of one tuple are equal, as are two awaited tasks: a name that is bound to one
        keeps it when the other is assigned (checked with 1.2.5 to 1.4.2). For agent code, the store denies
        access to the first attribute that a dataclass comparison reads: `approved() == "yes"`, compared
        directly rather than through a name, raises AttributeError for any value.
        """
        if current_access() != FULL:
            raise denied("__class__")
        if not isinstance(other, FutureResult) or type(self) is not type(other):
            return NotImplemented
        return self._compared() == other._compared()

    __hash__ = object.__hash__

    def _compared(self) -> tuple[object, ...]:
        return (
            self.stored_deps,
            self.state_num,
            self.__check_condition,
            self.__fetch_result,
            self.__pending_error_handler,
            self.__pending_error_handler_job,
        )

    @property
    def stored_deps(self) -> object:
        """The dependencies that STATEK stores with the future; None if the dependencies are signals here."""
        return None if self.signals() is not None else self.deps

    def set_complement_functions(
        self, complement: Callable[[Any], object], condition: Callable[[Any], bool]
    ) -> None:
        """Set the functions that return the value and check whether it is available."""
        self.__fetch_result = complement
        self.__check_condition = condition

    def bind_error_handler(self, error_handler: Callable[..., object], job: HandlerTarget) -> None:
        """Register `error_handler` on `job` when the value is first fetched.

        Source: "Error Handling", Future-Returning Claims.
        """
        self.__pending_error_handler = error_handler
        self.__pending_error_handler_job = job

    @property
    def value(self) -> object:
        """The value; raises `FutureError` if it is not available yet."""
        # Without a @temporal function there is none; the error is Python's, as in STATEK.
        result = cast("Callable[[Any], object]", self.__fetch_result)(self)
        handler, job = self.__pending_error_handler, self.__pending_error_handler_job
        if handler is not None and job is not None:
            job.add_error_handler(handler, result)
            self.__pending_error_handler = self.__pending_error_handler_job = None
        return _readable(result)

    @property
    def value_for_code(self) -> object:
        """The value for agent code; raises AttributeError for None, which the store treats as no value.

        This also applies to each of the futures that a combined future contains (behaviour 7.3, checked with
        1.2.7 and 1.4.2).
        """
        before = _READ_BY_CODE.set(True)
        try:
            return self.value
        finally:
            _READ_BY_CODE.reset(before)

    def check_condition(self) -> bool:
        """Return whether the value is available."""
        return cast("Callable[[Any], bool]", self.__check_condition)(self)

    def signals(self) -> tuple[Signal, ...] | None:
        """Return the signals after which this future may be ready, or None if they are unknown."""
        return signals_of(self.deps)

    def __iter__(self) -> Iterator[FutureElement]:
        """Yield one lazy element per member of a tuple-typed result."""
        size = _declared_tuple_size(self.__fetch_result)
        if size is None:
            raise FutureError(self, "Cannot unpack FutureResult: return type is not a tuple")
        return iter([FutureElement(self, index) for index in range(size)])


_HERE_ONLY: Final = frozenset({"equals_others_of_its_tool", "signals", "stored_deps", "value_for_code"})
"""Attributes that this package's futures have, but STATEK's do not."""


setattr(FutureResult.__str__, STORES_OWN, True)


def _read_by_agents(future: FutureResult, name: str) -> Any:
    """Return a future's attribute for agent code, which can only call methods.

    Raises dbzero's AttributeError for attributes that STATEK does not have.
    """
    if name in _HERE_ONLY:
        raise denied(name)
    value = object.__getattribute__(future, name)
    return RestrictedMethod(value) if inspect.ismethod(value) else value


def _readable(value: object) -> object:
    """Return a future's value; raises AttributeError if agent code reads a value that is None."""
    if value is None and _READ_BY_CODE.get():
        raise AttributeError("Restricted memo attribute access denied: value")
    return value


class FutureElement(FutureResult):
    """An element of a tuple-typed future, as in `a, b = future`."""

    def __init__(self, parent: FutureResult, index: int) -> None:
        super().__init__(parent.deps, parent.state_num)
        self.__parent_result = parent
        self.__elem_id = index

    @property
    def value(self) -> object:
        """The element's value; raises `FutureError` if it is not available yet."""
        return _readable(cast("Sequence[object]", self.__parent_result.value)[self.__elem_id])

    def check_condition(self) -> bool:
        """Return whether the whole tuple is available."""
        return self.__parent_result.check_condition()

    def signals(self) -> tuple[Signal, ...] | None:
        """Return the signals of the whole tuple."""
        return self.__parent_result.signals()


class CombinedFutureResult(FutureResult):
    """Several futures awaited together."""

    def __init__(self, futures: Sequence[FutureResult], deps: object = None, state_num: int = 0) -> None:
        super().__init__(deps, state_num)
        self.futures = tuple(futures)

    @property
    def stored_deps(self) -> object:
        """The dependencies, including signals."""
        return vars(self)["deps"]

    def signals(self) -> tuple[Signal, ...] | None:
        """Return the signals of all members, or None if any member must be polled."""
        found: list[Signal] = []
        for future in self.futures:
            signals = future.signals()
            if signals is None:
                return None
            found.extend(signals)
        return tuple(found)


for _kind in (FutureElement, CombinedFutureResult):
    # Python's own errors name stored classes with their module.
    _kind.__name__ = full_name(_kind)


def signals_of(deps: object) -> tuple[Signal, ...] | None:
    """Return the signals in `deps`, or None if any dependency is not a signal."""
    if isinstance(deps, Signal):
        return (deps,)
    if isinstance(deps, tuple | list | set | frozenset):
        found = [signals_of(dep) for dep in deps]
        if not found or any(signals is None for signals in found):
            return None
        return tuple(signal for signals in found if signals is not None for signal in signals)
    signal = getattr(deps, "signal", None)
    return (signal,) if isinstance(signal, Signal) else None


def _declared_tuple_size(complement: Callable[..., object] | None) -> int | None:
    """Return n for a complement whose return type is `tuple[X1, ..., Xn]`, else None (behaviour 7.3)."""
    if complement is None:
        return None
    try:
        hint = inspect.signature(complement, eval_str=True).return_annotation
    except (NameError, TypeError, ValueError):
        return None
    members = get_args(hint)
    if get_origin(hint) is not tuple or not members or members[-1] is Ellipsis:
        return None
    return len(members)


def temporal(
    complement: Callable[[Any], object] | None = None,
    condition: Callable[[Any], bool] | None = None,
    extends: Callable[..., object] | None = None,
) -> Callable[[F], F]:
    """Mark a function as temporal: the futures it returns get `complement` and `condition`.

    `condition(future)` returns whether the value is available. It must not raise an exception, which would
    end the worker. `complement(future)` returns the value. Until the value is available, `complement` raises
    `FutureError(future)`, and the job that reads the value waits. Any other exception is raised in the code
    that reads the value.

    Pass both functions, or another temporal function as `extends`; raises ValueError for other combinations.
    """
    if extends is not None:
        if complement is not None or condition is not None:
            raise ValueError("Cannot specify both 'extends' and 'complement'/'condition'")
        complement = getattr(extends, "__temporal_complement__", None)
        condition = getattr(extends, "__temporal_condition__", None)
        if complement is None or condition is None:
            raise ValueError(f"Cannot extend {extends.__name__}: it is not a temporal function")
    if complement is None or condition is None:
        raise ValueError("Must specify either 'extends' or both 'complement' and 'condition'")
    return _temporal_decorator(complement, condition, extends)


def _temporal_decorator(
    complement: Callable[[Any], object],
    condition: Callable[[Any], bool],
    extends: Callable[..., object] | None,
) -> Callable[[F], F]:
    def attach(result: object) -> object:
        if isinstance(result, FutureResult):
            result.set_complement_functions(complement, condition)
        return result

    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*args: object, **kwargs: object) -> object:
                return attach(await function(*args, **kwargs))

            wrapper: Any = waiting
        else:

            @functools.wraps(function)
            def plain(*args: object, **kwargs: object) -> object:
                return attach(function(*args, **kwargs))

            wrapper = plain
        wrapper.__is_temporal__ = True
        wrapper.__temporal_complement__ = complement
        wrapper.__temporal_condition__ = condition
        if extends is not None:
            wrapper.__extends__ = extends
        return cast("F", wrapper)  # functools.wraps keeps the signature, which mypy cannot see

    return decorate


def _any_ready(combined: CombinedFutureResult) -> bool:
    return any(future.check_condition() for future in combined.futures)


def _first_value(combined: CombinedFutureResult) -> object:
    for future in combined.futures:
        if future.check_condition():
            return future.value
    raise FutureError(combined)


def _all_ready(combined: CombinedFutureResult) -> bool:
    return all(future.check_condition() for future in combined.futures)


def _all_values(combined: CombinedFutureResult) -> tuple[object, ...]:
    found = []
    for future in combined.futures:
        if not future.check_condition():
            raise FutureError(combined)
        # Read each value before checking the next, so that failed or unreadable values are reported although
        # others are not ready.
        found.append(future.value)
    return tuple(found)


@temporal(complement=_first_value, condition=_any_ready)
def get_any_future(*futures: FutureResult) -> CombinedFutureResult:
    """Return a future for the first ready value among `futures`; raises TypeError if called without futures."""
    if not futures:
        raise TypeError("get_any_future requires at least one argument")
    return CombinedFutureResult(futures)


@temporal(complement=_all_values, condition=_all_ready)
def get_all_future(*futures: FutureResult) -> CombinedFutureResult:
    """Return a future for the tuple of all values; raises TypeError if called without futures."""
    if not futures:
        raise TypeError("get_all_future requires at least one argument")
    return CombinedFutureResult(futures)
