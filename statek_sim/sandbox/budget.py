"""Counted limits of one step of model-written code: the same code is stopped at the same point on every machine.

- **iterations**: passes of a loop or comprehension, items of a lazy iterator, four for a call of a model-written
  function, fifty for a tool, eight for a printed line, one for 128 items that one call goes through inside C.
- **allocation**: bytes created by operators, formatting, printing and tools in one step, whether kept or not.
- **call depth**: nested active calls of model-written functions, not Python's own stack.

Work that none of these counts, such as a long regular expression search, is ended by `time_limit`.

A value's size is the number of items after copying its shared parts: `x = [x, x]` forty times is a million million.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn, final

ITEMS_PER_ITERATION_SHIFT: Final = 7
"""2**7 items processed inside C count as one iteration."""

CALL_ITERATIONS: Final = 4
"""Iterations of a call of a model-written function."""

TOOL_ITERATIONS: Final = 50
"""Iterations charged for a tool call, whose own work is not counted."""

TOOL_BYTES: Final = 1_024
"""Bytes that the trace keeps of a tool's call and its result."""

LINE_BYTES: Final = 256
"""Cost of a console line besides its text."""

LINE_ITERATIONS: Final = 8
"""Cost of computing a line's text."""

_ROOM_FROM_DEPTH: Final = 64
_FRAMES_PER_CALL: Final = 12

HeldBudget = tuple[int, int, int, str | None, int]
"""The remaining budget of a step that was set aside."""

_UNWINDING: Final = 4
"""Iterations per call that is unwound because the calls became too deep."""


class BudgetExceeded(BaseException):
    """Model-written code exceeded a limit; the message has the limit and the likely cause.

    A `BaseException`, so that `except Exception` in the code does not hide it, and sticky: once raised, every later
    iteration, call or `except` block of the same step raises it again.
    """


@final
class ExecutionBudget:
    """The limits of one step and the remaining budget. One budget serves one runtime; `reset` starts a step.

    `loop_iterations` and `call_depth` are counts, `allocation` is in bytes.
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
        """Start a new step with nothing spent."""
        self._iterations_left = self.loop_iterations
        self._bytes_left = self.allocation
        self._depth = 0
        self._reason: str | None = None
        self._end: BaseException | None = None
        self._give_back_stack()
        self.close_coroutines()

    def close_coroutines(self) -> None:
        """Close the coroutines that the step created: nothing can await them later, and Python would warn about it."""
        while self.opened:
            with suppress(BaseException):
                self.opened.pop().close()

    @property
    def iterations(self) -> int:
        """Iterations spent in this step."""
        return self.loop_iterations - self._iterations_left

    @property
    def allocated(self) -> int:
        """Bytes counted in this step."""
        return self.allocation - self._bytes_left

    def tick(self, iterations: int = 1) -> bool:
        """Count iterations; always True, so that it can be a condition of a comprehension."""
        self._iterations_left -= iterations
        if self._iterations_left < 0:
            self._out_of_iterations()
        return True

    def scan(self, items: int) -> None:
        """Count a pass through `items` items inside C."""
        if items >= 1 << ITEMS_PER_ITERATION_SHIFT:
            self.tick(items >> ITEMS_PER_ITERATION_SHIFT)

    def allocate(self, size: int) -> None:
        """Count `size` bytes of new data, if possible before they are created."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            self.stop(
                f"the code built more than {self.allocation:,} bytes of data in one step; the likely cause is a value "
                "that grows in a loop, or a huge repetition, range or field width"
            )

    def call_tool(self) -> None:
        """Count the call of a tool."""
        self.allocate(TOOL_BYTES)
        self.tick(TOOL_ITERATIONS)

    def write(self, characters: int) -> None:
        """Count a line on the console."""
        self.allocate(LINE_BYTES + characters)
        self.tick(LINE_ITERATIONS)

    def enter(self) -> None:
        """Count a call of a model-written function and increase the call depth; `leave` decreases it."""
        self._depth = depth = self._depth + 1
        self._iterations_left -= CALL_ITERATIONS
        if self._iterations_left < 0:
            self._out_of_iterations()
        if depth >= _ROOM_FROM_DEPTH:
            self._go_deep(depth)

    def leave(self) -> None:
        """Return from a call that `enter` began."""
        self._depth = depth = self._depth - 1
        if self._stack_limit and depth < _ROOM_FROM_DEPTH:
            self._give_back_stack()

    def hold(self) -> HeldBudget:
        """Suspend this step, so that other code can run its own steps before it continues."""
        held = (self._iterations_left, self._bytes_left, self._depth, self._reason, self._stack_limit)
        self._stack_limit = 0
        return held

    def go_on(self, held: HeldBudget) -> None:
        """Continue a step that was set aside."""
        self._give_back_stack()
        self._iterations_left, self._bytes_left, self._depth, self._reason, self._stack_limit = held

    def check(self) -> None:
        """Raise again the error that ended the step, if any. In a handler of a MemoryError, end the step."""
        if self._end is not None:
            raise self._end
        if self._reason is not None:
            raise BudgetExceeded(self._reason)
        if isinstance(sys.exc_info()[1], MemoryError):
            self.out_of_memory()

    def end(self, end: BaseException) -> NoReturn:
        """End the step with an error that its handlers cannot swallow: each raises it again."""
        self._end = end
        raise end

    def stop(self, reason: str) -> NoReturn:
        """Stop the code now and keep it stopped until `reset`. `reason` is a clause for people."""
        if self._reason is None:
            self._reason = reason
        self._iterations_left = min(self._iterations_left, -1)
        self._bytes_left = min(self._bytes_left, -1)
        raise BudgetExceeded(self._reason)

    def out_of_memory(self) -> NoReturn:
        """Stop code that asked for more memory than `time_limit` or the machine allows."""
        self.stop(
            "the code asked for more memory than it may have; the likely cause is a value that grows in a loop, or a "
            "huge repetition, range or field width"
        )

    def _out_of_iterations(self) -> NoReturn:
        self.stop(
            f"the code ran more than {self.loop_iterations:,} loop iterations in one step; the likely cause is a loop, "
            "generator or recursion that never ends"
        )

    def _go_deep(self, depth: int) -> None:
        if depth > self.call_depth:
            # Like Python's own limit, but always at the same call. A call that did not start must not be left.
            self._depth = depth - 1
            # The whole unwinding counts: code that catches the error may repeat it.
            self.tick(_UNWINDING * self.call_depth)
            raise RecursionError("maximum recursion depth exceeded")
        if not self._stack_limit:
            # Python's own limit counts the frames of every caller; raise it here, so that only this limit applies.
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
    """Return whether `value` has contents to traverse."""
    return type(value) not in _SCALARS and isinstance(value, _CONTAINERS)


MOST_UNFOLDED: Final = 5_000_000
"""Maximum items that may be copied or compared at once: `x = [x, x]` forty times is a million million."""


def unfolded_size(value: Value) -> int:
    """Return the number of items in a traversal of `value` that enters a shared part every time.

    Computed from the parts, each of which is visited once, so the time is linear in the data. Containers more than 400
    levels down, and a container inside itself, count as one item.
    """
    sizes: dict[int, int] = {}
    # The entries of a dict's view are new objects: while they are held, their identity is unique.
    held: list[list[Value]] = []
    open_: list[_Counting] = []
    container: Value | None = value
    while True:
        if container is not None:
            inside = _inside(container)
            held.append(inside)
            flat = len(open_) >= _MAX_NESTING or set(map(type, inside)) <= _FLAT
            # One item until all of it is counted.
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
    """A container during counting: its remaining items, and the count so far."""

    __slots__ = ("container", "rest", "total")

    def __init__(self, container: Value, rest: Iterator[Value], total: int) -> None:
        self.container = container
        self.rest = rest
        self.total = total


def _next_inside(counting: _Counting, sizes: Mapping[int, int]) -> Value | None:
    """Count items up to the next container of unknown size, and return it; None if there is none."""
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
