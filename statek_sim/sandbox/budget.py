"""Limits on the counted work in a step of model-written code, so that code stops at the same point on every machine.

- **iterations**: one per pass of a loop or comprehension and per item of a lazy iterator, four per call to a
  model-written function, fifty per tool call, eight per printed line, and one per 128 items that a single call
  processes in C.
- **allocation**: bytes that operators, formatting, printing and tools create in one step, even if they are freed.
- **call depth**: the number of nested calls to model-written functions, not the depth of Python's own stack.

`time_limit` stops work that is not counted, such as a long regular expression search.

A value's size is its number of items, counting shared parts each time they occur: after running `x = [x, x]`
forty times, the size exceeds 10**12.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn, final

ITEMS_PER_ITERATION_SHIFT: Final = 7
"""Binary logarithm of the number of items processed in C that count as one iteration: 2**7 items."""

CALL_ITERATIONS: Final = 4
"""Iterations charged for a call to a model-written function."""

TOOL_ITERATIONS: Final = 50
"""Iterations charged for a tool call; the tool's own work is not counted."""

TOOL_BYTES: Final = 1_024
"""Bytes charged for a tool call, because the trace stores the call and its result."""

LINE_BYTES: Final = 256
"""Bytes charged for a console line in addition to its text."""

LINE_ITERATIONS: Final = 8
"""Iterations charged for a console line."""

_ROOM_FROM_DEPTH: Final = 64
_FRAMES_PER_CALL: Final = 12

SuspendedBudget = tuple[int, int, int, str | None, int]
"""A suspended step's state: remaining iterations and bytes, call depth, stop reason, recursion limit."""

_UNWINDING: Final = 4
"""Iterations charged for each call that a RecursionError unwinds."""


class BudgetExceeded(BaseException):
    """Raised when model-written code exceeds a limit; the message states the limit and the likely cause.

    This is a `BaseException`, so that `except Exception` in the code does not catch it. Once raised, it is
    re-raised by every iteration, call and `except` block in the same step.
    """


@final
class ExecutionBudget:
    """The limits for one step of model-written code, and the remaining budget. `reset` starts a new step.

    `loop_iterations` and `call_depth` are counts, `allocation` is in bytes. A runtime has one budget for all
    its jobs.
    """

    __slots__ = ("_bytes_left", "_depth", "_end", "_iterations_left", "_reason", "_stack_limit", "allocation",
                 "call_depth", "loop_iterations", "opened")  # fmt: skip

    def __init__(
        self, loop_iterations: int = 1_000_000, allocation: int = 64_000_000, call_depth: int = 250
    ) -> None:
        self.loop_iterations = loop_iterations
        self.allocation = allocation
        self.call_depth = call_depth
        self.opened: list[Coroutine[object, object, object]] = []
        self._stack_limit = 0
        self.reset()

    def reset(self) -> None:
        """Start a new step with the full budget."""
        self._iterations_left = self.loop_iterations
        self._bytes_left = self.allocation
        self._depth = 0
        self._reason: str | None = None
        self._end: BaseException | None = None
        self._give_back_stack()
        self.close_coroutines()

    def close_coroutines(self) -> None:
        """Close the coroutines created in the step; otherwise, Python warns that they were never awaited."""
        while self.opened:
            with suppress(BaseException):
                self.opened.pop().close()

    @property
    def iterations(self) -> int:
        """The iterations counted in this step so far."""
        return self.loop_iterations - self._iterations_left

    @property
    def allocated(self) -> int:
        """The bytes counted in this step so far."""
        return self.allocation - self._bytes_left

    def tick(self, iterations: int = 1) -> bool:
        """Count iterations. Returns True, so that it can be called in a comprehension's condition."""
        self._iterations_left -= iterations
        if self._iterations_left < 0:
            self._out_of_iterations()
        return True

    def scan(self, items: int) -> None:
        """Count the processing of `items` items in C."""
        if items >= 1 << ITEMS_PER_ITERATION_SHIFT:
            self.tick(items >> ITEMS_PER_ITERATION_SHIFT)

    def allocate(self, size: int) -> None:
        """Count `size` bytes of new data. Where possible, callers count the data before creating it."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            self.stop(
                f"the code built more than {self.allocation:,} bytes of data in one step; the likely cause is a value "
                "that grows in a loop, or a huge repetition, range or field width"
            )

    def call_tool(self) -> None:
        """Count a tool call: its iterations, and the bytes that the trace stores."""
        self.allocate(TOOL_BYTES)
        self.tick(TOOL_ITERATIONS)

    def write(self, characters: int) -> None:
        """Count a console line of this many characters."""
        self.allocate(LINE_BYTES + characters)
        self.tick(LINE_ITERATIONS)

    def enter(self) -> None:
        """Count a call to a model-written function, and increase the call depth until `leave`."""
        self._depth = depth = self._depth + 1
        self._iterations_left -= CALL_ITERATIONS
        if self._iterations_left < 0:
            self._out_of_iterations()
        if depth >= _ROOM_FROM_DEPTH:
            self._go_deep(depth)

    def leave(self) -> None:
        """Decrease the call depth after a call counted by `enter`."""
        self._depth = depth = self._depth - 1
        if self._stack_limit and depth < _ROOM_FROM_DEPTH:
            self._give_back_stack()

    def suspend(self) -> SuspendedBudget:
        """Suspend this step, so that other steps can use the budget, and return its state for `resume`."""
        held = (self._iterations_left, self._bytes_left, self._depth, self._reason, self._stack_limit)
        self._stack_limit = 0
        return held

    def resume(self, held: SuspendedBudget) -> None:
        """Continue a step suspended with `suspend`."""
        self._give_back_stack()
        self._iterations_left, self._bytes_left, self._depth, self._reason, self._stack_limit = held

    def check(self) -> None:
        """Re-raise the error that ended the step, if any. End the step if a MemoryError is being handled."""
        if self._end is not None:
            raise self._end
        if self._reason is not None:
            raise BudgetExceeded(self._reason)
        if isinstance(sys.exc_info()[1], MemoryError):
            self.out_of_memory()

    def end(self, end: BaseException) -> NoReturn:
        """End the step with the error `end`, which is re-raised by every later `except` block in the step."""
        self._end = end
        raise end

    def stop(self, reason: str) -> NoReturn:
        """Raise `BudgetExceeded` with `reason`, and again at every later count until `reset`."""
        if self._reason is None:
            self._reason = reason
        self._iterations_left = min(self._iterations_left, -1)
        self._bytes_left = min(self._bytes_left, -1)
        raise BudgetExceeded(self._reason)

    def out_of_memory(self) -> NoReturn:
        """Stop code that tried to allocate more memory than `time_limit` or the machine allows."""
        self.stop(
            "the code tried to allocate more memory than allowed; the likely cause is a value that grows in a loop, or "
            "a huge repetition, range or field width"
        )

    def _out_of_iterations(self) -> NoReturn:
        self.stop(
            f"the code ran more than {self.loop_iterations:,} loop iterations in one step; the likely cause is a loop, "
            "generator or recursion that never ends"
        )

    def _go_deep(self, depth: int) -> None:
        if depth > self.call_depth:
            # Like Python's own limit, but always at the same call. `leave` is not called for a call that did not start.
            self._depth = depth - 1
            # All unwound calls are charged, because code that catches the error may repeat it.
            self.tick(_UNWINDING * self.call_depth)
            raise RecursionError("maximum recursion depth exceeded")
        if not self._stack_limit:
            # Python's own limit also counts callers' frames; increase it, so that only the call depth applies.
            self._stack_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(self._stack_limit + _FRAMES_PER_CALL * self.call_depth)

    def _give_back_stack(self) -> None:
        if self._stack_limit:
            limit, self._stack_limit = self._stack_limit, 0
            sys.setrecursionlimit(limit)


_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS: Final[tuple[type, ...]] = (
    list, tuple, dict, set, frozenset, deque, slice, BaseException, *_VIEWS,
)  # fmt: skip
_SCALARS: Final = frozenset({int, float, bool, complex, type(None)})
_FLAT: Final = _SCALARS | {str}
_MAX_NESTING: Final = 400

# Containers hold any values of model-written code.
Value = Any


def is_container(value: Value) -> bool:
    """Return whether `value` is a collection, a view, a slice or an exception, all of which contain other values."""
    return type(value) not in _SCALARS and isinstance(value, _CONTAINERS)


MOST_UNFOLDED: Final = 5_000_000
"""Maximum `unfolded_size` of a value that is copied or compared; running `x = [x, x]` forty times exceeds 10**12."""


def unfolded_size(value: Value) -> int:
    """Return the number of items in `value`, counting the items in a shared part each time the part occurs.

    Takes linear time, because each part is visited only once. A container nested more than 400 levels deep,
    or inside itself, counts as one item.
    """
    sizes: dict[int, int] = {}
    # The entries of a dict view are new objects, whose ids are unique only while references to them exist.
    held: list[list[Value]] = []
    open_: list[_Counting] = []
    container: Value | None = value
    while True:
        if container is not None:
            inside = _inside(container)
            held.append(inside)
            flat = len(open_) >= _MAX_NESTING or set(map(type, inside)) <= _FLAT
            # A container counts as one item until all its items are counted.
            sizes[id(container)] = 1
            open_.append(_Counting(container, iter(() if flat else inside), len(inside)))
        container = _next_inside(open_[-1], sizes)
        if container is None:
            done = open_.pop()
            sizes[id(done.container)] = done.total
            if not open_:
                return done.total
            open_[-1].total += done.total


class _Counting:
    """The state while counting a container: the remaining items and the count so far."""

    __slots__ = ("container", "rest", "total")

    def __init__(self, container: Value, rest: Iterator[Value], total: int) -> None:
        self.container = container
        self.rest = rest
        self.total = total


def _next_inside(counting: _Counting, sizes: Mapping[int, int]) -> Value | None:
    """Count the items up to the next container of unknown size; return that container, or None at the end."""
    for item in counting.rest:
        if is_container(item):
            known = sizes.get(id(item))
            if known is None:
                return item
            counting.total += known
    return None


def _inside(container: Value) -> list[Value]:
    if isinstance(container, dict):
        return [part for item in container.items() for part in item]
    if isinstance(container, set):
        return list(set.__iter__(container))
    if isinstance(container, slice):
        return [container.start, container.stop, container.step]
    if isinstance(container, BaseException):
        return list(container.args)
    return list(frozenset.__iter__(container)) if isinstance(container, frozenset) else list(container)
