"""The driver for tests: executes runs in virtual time, in the same order on every machine.

`AsyncDriver` performs the effects on an event loop with virtual time. This module adds actions scheduled for a given
second, process death, and a choice of which run continues first.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from dataclasses import replace
from functools import partial
from typing import Final, ParamSpec, TypeVar

from statek_sim.agent.async_driver import AsyncDriver
from statek_sim.agent.effects import Delayed, Invocation, PersonSaid, Question, Receipt, Snapshot
from statek_sim.agent.loop import AgentRun
from statek_sim.clock import VirtualClock
from statek_sim.errors import AsyncToolStuck, ProviderFailure
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply, ask, bug_of
from statek_sim.virtual_loop import STUCK, Timer, VirtualLoop, all_cancelled, running_loop

Settle = Callable[[PersonSaid], bool]
"""Settles a question with its result; returns False if it was already settled."""

QuestionHandler = Callable[[Question, Settle], None]
"""Takes a question and a function; calling the function, now or later, settles the question."""

Renewal = tuple[float, Callable[[], None]]
"""An interval in virtual seconds, and a function called after every interval to renew a lease."""

Choose = Callable[[Sequence[str]], int]
"""Takes the names of runs that can continue, or of calls that can end, and returns the index of the first to do so."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_JOB: Final[ContextVar[str | None]] = ContextVar("job", default=None)
"""The executing run's job; None while a scheduled action is executed."""


class Simulation:
    """Performs the effects of runs in virtual time. Actions due in the same second run in the order of scheduling.

    `person` answers the runs' questions. `committed` is called with every snapshot, and `receipted` with the outcome of
    every call and question, before the run continues. `renewed` is called at its interval until `kill`. `tool_worked`
    is called when a tool has finished, before the receipt is written, and `after_tool` after that. `choose` selects
    what continues first. Without `choose`, or if it returns 0, runs continue as long as they can, and calls end at
    their declared times.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        clock: VirtualClock,
        person: QuestionHandler | None = None,
        committed: Callable[[Snapshot], None] | None = None,
        receipted: Callable[[Receipt], None] | None = None,
        renewed: Renewal | None = None,
        tool_worked: Callable[[AgentRun, str], None] | None = None,
        after_tool: Callable[[AgentRun, str], None] | None = None,
        choose: Choose | None = None,
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._person = person
        self._renewal = renewed
        self._choose = choose
        self._renewed_at = clock.now()
        self.waiting: dict[str, Question] = {}
        """Open questions, keyed by token."""
        self._life = 0
        self._open = 0
        """The number of scheduled actions plus the number of unfinished runs."""
        self._failure: BaseException | None = None
        self._goes_on = False
        self._loop = _Agenda(clock, moved=self._advance_to, choose=choose)
        self._outside = copy_context()
        self._outside.run(_JOB.set, None)
        self._driver = AsyncDriver(
            self._complete,
            clock=clock.now,
            timeout=None,
            person=None if person is None else self._asked,
            committed=None if committed is None else self._async_fatal(committed),
            receipted=None if receipted is None else self._async_fatal(receipted),
        )
        self._driver.tool_worked = None if tool_worked is None else self._fatal(tool_worked)
        self._driver.after_tool = None if after_tool is None else self._fatal(after_tool)
        self._driver.in_order = None if choose is None else self._in_order

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        """Schedule a call to `act` at virtual second `seconds`, after all actions already scheduled for that second."""
        self._plan(seconds, act, self._outside.copy())

    def start(self, run: AgentRun) -> None:
        """Start a run, or continue it after `push`, once everything else that is due now has been done."""
        context = self._outside.copy()
        context.run(_JOB.set, run.job)
        self._plan(self._clock.now(), partial(self._begin, run, self._life), context)

    def _plan(self, seconds: float, act: Callable[[], object], context: Context) -> None:
        self._open += 1
        self._loop.call_at(seconds, self._do, act, context=context)

    def _do(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as failure:  # noqa: BLE001  # raised by `run`
            self._fail(failure)
        self._over()

    def _begin(self, run: AgentRun, life: int) -> None:
        if life == self._life:
            self._open += 1
            self._loop.create_task(self._driver.run(run)).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self._fail(failure)
        self._over()

    def _over(self) -> None:
        self._open -= 1
        if not self._open:
            self._halt()

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        self._halt()

    def _halt(self) -> None:
        if self._goes_on:
            self._loop.stop()

    def kill(self) -> None:
        """Cancel all runs, as if their process had died. Actions scheduled with `at` still happen."""
        self._life += 1
        self.waiting.clear()
        self._renewal = None
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def run(self, until: float) -> bool:
        """Execute everything due by second `until`; return True if no actions or unfinished runs are left.

        Raises the first exception from an action or a run, and `AsyncToolStuck` if an unfinished run can never
        continue.
        """
        loop = self._loop
        loop.until = until
        with running_loop(None):
            if self._open:
                self._goes_on = True
                try:
                    loop.run_forever()
                except BaseException as failure:  # noqa: BLE001  # raised below, when all runs have ended
                    self._failure = self._failure or failure
                finally:
                    self._goes_on = False
            left = asyncio.all_tasks(loop)
            if self._failure is not None or not self._open:
                loop.until = math.inf
                if left:
                    loop.run_until_complete(all_cancelled(left))
            else:
                for task in left:
                    # The task continues in the next call of `run`, or never.
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
        failed, self._failure = self._failure, None
        if failed is not None:
            raise failed
        if self._open and not self.waiting and not loop.timers:
            raise AsyncToolStuck(STUCK)
        return not self._open

    def _advance_to(self, seconds: float) -> None:
        """Advance the clock to this second, renewing the lease after every interval that passes."""
        if self._renewal is not None:
            every, renew = self._renewal
            while (next_ := self._renewed_at + every) < seconds:
                self._clock.advance_to(max(next_, self._clock.now()))
                self._renewed_at = next_
                renew()
        self._clock.advance_to(seconds)

    # -- callbacks of the asyncio driver -----------------------------------------------------------------------

    def _fatal(self, callback: Callable[_P, None]) -> Callable[_P, None]:
        """Return a callback that ends the current run if the callback kills the process."""

        def called(*positional: _P.args, **named: _P.kwargs) -> None:
            life = self._life
            callback(*positional, **named)
            if life != self._life:
                raise asyncio.CancelledError

        return called

    def _async_fatal(self, callback: Callable[[_T], None]) -> Callable[[_T], Awaitable[None]]:
        """Return `_fatal(callback)` as a coroutine function."""
        fatal = self._fatal(callback)

        async def called(value: _T) -> None:
            fatal(value)

        return called

    async def _complete(self, request: ChatRequest) -> RawReply:
        came: RawReply | ProviderFailure
        try:
            came = ask(self._provider, request)
        except ProviderFailure as failure:
            came = failure
        except (SystemExit, asyncio.CancelledError) as error:
            raise bug_of(type(self._provider).__name__, error) from error
        if came.latency:
            await asyncio.sleep(came.latency)
        elif self._choose is not None:
            # The run continues now, before all others, unless another one is chosen.
            turn = asyncio.Event()
            self._loop.call_first(turn.set)
            await turn.wait()
        if isinstance(came, ProviderFailure):
            raise came
        return came

    async def _asked(self, question: Question) -> PersonSaid:
        assert self._person is not None, "only a run with a person asks questions"
        answer: asyncio.Future[PersonSaid] = self._loop.create_future()

        def settle(words: PersonSaid) -> bool:
            if answer.done():
                return False
            answer.set_result(words)
            self.waiting.pop(question.token, None)
            return True

        self.waiting[question.token] = question
        try:
            self._person(question, settle)
            return await answer
        finally:
            if self.waiting.get(question.token) is question:
                del self.waiting[question.token]

    def _in_order(self, calls: Sequence[Invocation], taking: Mapping[int, Delayed]) -> Mapping[int, Delayed]:
        """Return the calls' durations by position, ordered by when the calls end; calls may exchange durations."""
        seconds = {at: min(one.seconds, calls[at].timeout or math.inf) for at, one in taking.items()}
        last = max(seconds.values())
        # A call cannot take longer than its timeout, and a call that times out takes exactly that long.
        free = [at for at in taking if (calls[at].timeout or last + 1) > last]
        if len(free) < 2:
            return taking
        assert self._choose is not None, "calls keep their order if nothing chooses one"
        names = dict(zip(free, _numbered_names([calls[at].call.name for at in free]), strict=True))
        undisturbed = sorted(free, key=lambda at: (seconds[at], at))
        left, chosen = [*undisturbed], list[int]()
        while left:
            chosen.append(left.pop(self._choose([names[at] for at in left]) if len(left) > 1 else 0))
        if chosen == undisturbed:
            return taking
        moved = {
            at: replace(taking[at], seconds=seconds[instead])
            for at, instead in zip(chosen, undisturbed, strict=True)
        }
        fixed = {at: one for at, one in taking.items() if at not in moved}
        return {**moved, **fixed}


class _Agenda(VirtualLoop):
    """A simulation's event loop: it stops at a given second, and orders the runs that continue in the same second."""

    def __init__(self, clock: VirtualClock, *, moved: Callable[[float], None], choose: Choose | None) -> None:
        super().__init__(moved=moved)
        self._clock = clock
        self._choose = choose
        self.until = 0.0

    def time(self) -> float:
        """Return the clock's virtual seconds."""
        return self._clock.now()

    def next_timer(self) -> None:
        """Advance to the next timer, or stop the loop if no timer is due."""
        self.forget_cancelled()
        if self.timers and self.timers[0][0] <= self.until:
            super().next_timer()
        else:
            self.stop()

    def take(self) -> Timer:
        """Remove and return the next timer. If several runs have a timer in that second, one run is chosen."""
        choose = self._choose
        first = super().take()
        if choose is None or _job_of(first) is None:
            return first
        others = [first]
        while self.timers and self.timers[0][0] == first[0] and _job_of(self.timers[0]) is not None:
            other = super().take()
            others.append(other)
            self.forget_cancelled()
        # The first timer of each run: timers of one run stay in order.
        runs: dict[str | None, Timer] = {}
        for timer in others:
            runs.setdefault(_job_of(timer), timer)
        names = [name for name in runs if name is not None]
        chosen = runs[names[choose(names)]] if len(names) > 1 else first
        for timer in others:
            if timer is not chosen:
                self.put(timer)
        return chosen


def _job_of(timer: Timer) -> str | None:
    """Return the job of the run that scheduled a timer, or None for a scheduled action."""
    context: Context = timer[2]._context  # type: ignore[attr-defined]  # asyncio keeps it there
    return context.get(_JOB)


def _numbered_names(names: Sequence[str]) -> list[str]:
    """Return the names, numbering duplicates so that all are unique."""
    return [
        f"{name}-{n}" if (n := [*names[: at + 1]].count(name)) > 1 else name for at, name in enumerate(names)
    ]
