"""How much one step of model-written code may cost.

Costs are counted, never timed, so the same code is stopped at the same point on every machine:

- **iterations**: turns of a loop or comprehension, items of a lazy iterator, calls of model-written functions.
  A turn with a long body counts one for every `steps.STEPS_PER_ITERATION` steps, a call `CALL_ITERATIONS` and its
  body, a tool `TOOL_ITERATIONS`; work that one call does inside C (sorting, searching, copying) counts one for every
  128 items.
- **allocation**: bytes of new data in one step, whether kept or not; containers are charged per item. Copies of
  text count a quarter while they are short (`copied`), so that building text piece by piece stays affordable.
- **call depth**: model-written functions active inside each other, not Python's own stack.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final, NoReturn, final

ITEMS_PER_ITERATION_SHIFT: Final = 7
"""Walking 2**7 items inside C costs as much as one iteration of a loop in model code."""

CALL_ITERATIONS: Final = 4
"""Calling a model-written function costs as much as four iterations."""

TOOL_ITERATIONS: Final = 50
"""Calling a tool costs as much as fifty iterations: it is traced, and what it does is not counted."""

TOOL_BYTES: Final = 1_024
"""What the trace keeps of a tool's call and its result."""

LINE_BYTES: Final = 256
"""What a line on the console costs beside its text."""

LONG_LINE: Final = 1 << 16
LONG_LINE_COPIES: Final = 16
"""Characters from which on a text is paid for several times: it is escaped, sent, kept and measured."""

LINE_ITERATIONS: Final = 8
"""What finding out how a line looks costs."""

LONG_INTEGER: Final = 2_000
"""Bits from which on an integer pays for being made."""

COPY_SHIFT: Final = 2
"""Copying 2**2 bytes costs as much as one byte of new data, up to `LONG_COPY` bytes at a time."""

LONG_COPY: Final = 131_072

_ROOM_FROM_DEPTH: Final = 64
_FRAMES_PER_CALL: Final = 12

HeldBudget = tuple[int, int, int, str | None, int]
"""What was left of a step that was set aside."""

_UNWINDING: Final = 4
"""Iterations per call that is left because the calls became too deep."""


class BudgetExceeded(BaseException):
    """Model-written code was stopped; the message says which limit it crossed and what is the likely cause.

    A `BaseException`, so that `except Exception` in the code does not hide it, and sticky: once raised, every later
    iteration, call or `except` block of the same step raises it again.
    """


@final
class ExecutionBudget:
    """The limits of one step and what is left of them. One budget serves one runtime; `reset` starts a step.

    `loop_iterations` and `call_depth` are counts, `allocation` is in bytes.
    """

    __slots__ = ("_bytes_left", "_depth", "_end", "_iterations_left", "_reason", "_stack_limit", "allocation",
                 "call_depth", "loop_iterations", "opened", "step")  # fmt: skip

    def __init__(
        self, loop_iterations: int = 1_000_000, allocation: int = 64_000_000, call_depth: int = 250
    ) -> None:
        self.loop_iterations = loop_iterations
        self.allocation = allocation
        self.call_depth = call_depth
        self.step = 0
        self.opened: list[Coroutine[object, object, object]] = []
        self._stack_limit = 0
        self.reset()

    def reset(self) -> None:
        """Start a new step with nothing spent. `step` numbers them."""
        self.step += 1
        self._iterations_left = self.loop_iterations
        self._bytes_left = self.allocation
        self._depth = 0
        self._reason: str | None = None
        self._end: BaseException | None = None
        self._give_back_stack()
        self.close_coroutines()

    def close_coroutines(self) -> None:
        """Close the coroutines that the step made: nothing can wait for them later, and Python would warn of it."""
        while self.opened:
            with suppress(BaseException):
                self.opened.pop().close()

    @property
    def iterations(self) -> int:
        """Iterations spent in this step."""
        return self.loop_iterations - self._iterations_left

    @property
    def allocated(self) -> int:
        """Bytes charged in this step."""
        return self.allocation - self._bytes_left

    def tick(self, iterations: int = 1) -> bool:
        """Pay for a pass of a loop; always True, so that it can stand as a condition of a comprehension."""
        self._iterations_left -= iterations
        if self._iterations_left < 0:
            self._out_of_iterations()
        return True

    def work(self, iterations: int) -> None:
        """Pay for several iterations at once."""
        self._iterations_left -= iterations
        if self._iterations_left < 0:
            self._out_of_iterations()

    def scan(self, items: int) -> None:
        """Pay for walking `items` items inside C."""
        if items >= 1 << ITEMS_PER_ITERATION_SHIFT:
            self.work(items >> ITEMS_PER_ITERATION_SHIFT)

    def allocate(self, size: int) -> None:
        """Pay for `size` bytes of new data, before they are made where possible."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            self.stop(
                f"the code built more than {self.allocation:,} bytes of data in one step; the likely cause is a value "
                "that grows in a loop, or a huge repetition, range or field width"
            )

    def copied(self, size: int) -> None:
        """Pay for copying `size` bytes of data that exists already. Long copies cost as much as new data."""
        self.allocate(size >> COPY_SHIFT if size < LONG_COPY else size)

    def made_integer(self, bits: int) -> None:
        """Pay for an integer of so many bits that was just computed. Most are forgotten at once: an eighth is paid."""
        if bits > LONG_INTEGER:
            self.allocate(bits >> 6)

    def call_tool(self) -> None:
        """Pay for the call of a tool."""
        self.allocate(TOOL_BYTES)
        self.work(TOOL_ITERATIONS)

    def write(self, characters: int) -> None:
        """Pay for a line on the console."""
        self.allocate(LINE_BYTES + characters)
        self.work(LINE_ITERATIONS)
        self.say(characters)

    def say(self, characters: int) -> None:
        """Pay for what becomes of a text that the console shows, when it is long."""
        if characters > LONG_LINE:
            self.allocate(characters * LONG_LINE_COPIES)

    def enter(self, extra: int = 0) -> None:
        """Pay for a call of a model-written function and go one call deeper; `leave` goes back.

        `extra` is what its body costs in iterations.
        """
        self._depth = depth = self._depth + 1
        self._iterations_left -= CALL_ITERATIONS + extra
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
        """Set this step aside: other code begins steps of its own before this one goes on."""
        held = (self._iterations_left, self._bytes_left, self._depth, self._reason, self._stack_limit)
        self._stack_limit = 0
        return held

    def go_on(self, held: HeldBudget) -> None:
        """Go on with a step that was set aside."""
        self._give_back_stack()
        self.step += 1
        self._iterations_left, self._bytes_left, self._depth, self._reason, self._stack_limit = held

    def check(self) -> None:
        """Raise again what was raised before in this step, if anything was."""
        if self._end is not None:
            raise self._end
        if self._reason is not None:
            raise BudgetExceeded(self._reason)

    def end(self, end: BaseException) -> NoReturn:
        """End the step with an error that no handler of its code keeps: each raises it again."""
        self._end = end
        raise end

    def stop(self, reason: str) -> NoReturn:
        """Stop the code now and keep it stopped until `reset`. `reason` is a clause for people."""
        if self._reason is None:
            self._reason = reason
        self._iterations_left = min(self._iterations_left, -1)
        self._bytes_left = min(self._bytes_left, -1)
        raise BudgetExceeded(self._reason)

    def _out_of_iterations(self) -> NoReturn:
        self.stop(
            f"the code ran more than {self.loop_iterations:,} loop iterations in one step; the likely cause is a loop, "
            "generator or recursion that never ends"
        )

    def _go_deep(self, depth: int) -> None:
        if depth > self.call_depth:
            # As Python's own limit would, only always at the same call. The one that did not begin is not left.
            self._depth = depth - 1
            # All the way back has to be paid for: code that catches the error may do it again and again.
            self.work(_UNWINDING * self.call_depth)
            raise RecursionError("maximum recursion depth exceeded")
        if not self._stack_limit:
            # Python's own limit counts frames of every caller: lift it while this deep, so that only ours decides.
            self._stack_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(self._stack_limit + _FRAMES_PER_CALL * self.call_depth)

    def _give_back_stack(self) -> None:
        if self._stack_limit:
            limit, self._stack_limit = self._stack_limit, 0
            sys.setrecursionlimit(limit)
