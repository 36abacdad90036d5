"""The simulated driver: runs in virtual time, in the same order on every machine.

The asyncio driver performs the effects, on a loop whose time is virtual. This module adds actions of the world at a
given second, the death of the process, and choices of which run continues first.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import replace
from functools import partial
from typing import Final

from statek_sim.agent.asynchronous import AsyncDriver
from statek_sim.agent.effects import Delayed, Invocation, PersonSaid, Question, Receipt, Snapshot
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.virtual_loop import STUCK, Timer, VirtualLoop, all_cancelled, apart
from statek_sim.clock import VirtualClock
from statek_sim.errors import AsyncToolStuck, ProviderFailure
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply, ask, bug_of

Said = Callable[[PersonSaid], bool]
"""Called with the result of a question; returns whether the question was still open."""

Asked = Callable[[Question, Said], None]
"""Gets a question, and answers it by calling the given function, now or later."""

Renewal = tuple[float, Callable[[], None]]
"""An interval in seconds, and a function called after each, which reports that the process is alive."""

_JOB: Final[ContextVar[str | None]] = ContextVar("job", default=None)
"""The job of the run that is executing, None for actions of the world."""


class Simulation:
    """Performs the effects of runs. Actions due at the same second happen in the order in which they were planned.

    `person` answers questions of runs; `committed` gets every snapshot, and `receipted` the outcome of every call and
    question, before the run does. `renewed` is called at an interval of virtual seconds, until a `kill`.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        clock: VirtualClock,
        person: Asked | None = None,
        committed: Callable[[Snapshot], None] | None = None,
        receipted: Callable[[Receipt], None] | None = None,
        renewed: Renewal | None = None,
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._person = person
        self._told_commit = committed
        self._told_receipt = receipted
        self._renewal = renewed
        self._heard = clock.now()
        self.tool_worked: Callable[[AgentRun, str], None] | None = None
        """Called when a tool has finished, before the receipt is written."""
        self.after_tool: Callable[[AgentRun, str], None] | None = None
        self.choose: Callable[[Sequence[str]], int] | None = None
        """Chooses by name which of several continues first: runs that may at the same second, or calls that end.
        Without it, or for choice 0, runs continue as long as they can, and calls end at their declared times.
        """
        self.waiting: dict[str, Question] = {}
        """Open questions by token."""
        self._life = 0
        self._open = 0
        """Number of planned actions and of continuing runs."""
        self._failure: BaseException | None = None
        self._goes_on = False
        self._loop = _Agenda(self, clock)
        self._outside = copy_context()
        self._outside.run(_JOB.set, None)
        self._driver = AsyncDriver(
            self._complete,
            clock=clock.now,
            timeout=None,
            person=None if person is None else self._asked,
            committed=None if committed is None else self._committed,
            receipted=None if receipted is None else self._receipted,
        )
        self._driver.tool_worked = self._tool_worked
        self._driver.after_tool = self._after_tool
        self._driver.in_order = self._in_order

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something at virtual second `seconds`, after everything planned for that second before."""
        self._plan(seconds, act, self._outside.copy())

    def start(self, run: AgentRun) -> None:
        """Start a run, or continue it after a pushed message, after everything else that is due now."""
        context = self._outside.copy()
        context.run(_JOB.set, run.job)
        self._plan(self._clock.now(), partial(self._begin, run, self._life), context)

    def _plan(self, seconds: float, act: Callable[[], None], context: Context) -> None:
        self._open += 1
        self._loop.call_at(seconds, self._do, act, context=context)

    def _do(self, act: Callable[[], None]) -> None:
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
        """Kill the process that executes the runs: they stop. Actions planned with `at` still happen."""
        self._life += 1
        self.waiting.clear()
        self._renewal = None
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def run(self, until: float) -> bool:
        """Do everything due by `until`; return True if no work is left and no run waits for a person."""
        loop = self._loop
        loop.until = until
        with apart():
            if self._open:
                self._goes_on = True
                try:
                    loop.run_forever()
                finally:
                    self._goes_on = False
            left = asyncio.all_tasks(loop)
            if self._failure is not None or not self._open:
                loop.until = math.inf
                if left:
                    loop.run_until_complete(all_cancelled(left))
            else:
                for task in left:
                    # It continues in another `run`, or never.
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if self._open and not self.waiting and not loop.timers:
            raise AsyncToolStuck(STUCK)
        return not self._open

    def advance_to(self, seconds: float) -> None:
        """Let time pass, while the process reports that it is alive."""
        if self._renewal is not None:
            every, renew = self._renewal
            while (next_ := self._heard + every) < seconds:
                self._clock.advance_to(max(next_, self._clock.now()))
                self._heard = next_
                renew()
        self._clock.advance_to(seconds)

    # -- callbacks of the asyncio driver -----------------------------------------------------------------------

    @contextmanager
    def _deadly(self) -> Iterator[None]:
        """End the current run if the code inside lets its process die."""
        life = self._life
        yield
        if life != self._life:
            raise asyncio.CancelledError

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
        elif self.choose is not None:
            # The run continues now, before all others unless another one is chosen.
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

    async def _committed(self, snapshot: Snapshot) -> None:
        assert self._told_commit is not None, "only a run with a listener reports commits"
        with self._deadly():
            self._told_commit(snapshot)

    async def _receipted(self, receipt: Receipt) -> None:
        assert self._told_receipt is not None, "only a run with a listener reports receipts"
        with self._deadly():
            self._told_receipt(receipt)

    def _tool_worked(self, run: AgentRun, tool: str) -> None:
        if self.tool_worked is not None:
            with self._deadly():
                self.tool_worked(run, tool)

    def _after_tool(self, run: AgentRun, tool: str) -> None:
        if self.after_tool is not None:
            with self._deadly():
                self.after_tool(run, tool)

    def _in_order(self, calls: Sequence[Invocation], taking: Mapping[int, Delayed]) -> Mapping[int, Delayed]:
        """Return when each call ends, by its position: a call chosen to end after others ends at their second."""
        seconds = {at: min(one.seconds, calls[at].timeout or math.inf) for at, one in taking.items()}
        last = max(seconds.values())
        # A call with a timeout cannot take longer than that, and a timed-out call takes exactly that long.
        free = [at for at in taking if (calls[at].timeout or last + 1) > last]
        if self.choose is None or len(free) < 2:
            return taking
        names = dict(zip(free, _told_apart([calls[at].call.name for at in free]), strict=True))
        undisturbed = sorted(free, key=lambda at: (seconds[at], at))
        left, chosen = [*undisturbed], list[int]()
        while left:
            chosen.append(left.pop(self.choose([names[at] for at in left]) if len(left) > 1 else 0))
        if chosen == undisturbed:
            return taking
        moved = {
            at: replace(taking[at], seconds=seconds[instead])
            for at, instead in zip(chosen, undisturbed, strict=True)
        }
        fixed = {at: one for at, one in taking.items() if at not in moved}
        return {**moved, **fixed}


class _Agenda(VirtualLoop):
    """The loop of a simulation: runs up to a given second, and chooses which of several runs continues first."""

    def __init__(self, simulation: Simulation, clock: VirtualClock) -> None:
        super().__init__()
        self._simulation = simulation
        self._clock = clock
        self.until = 0.0

    def time(self) -> float:
        """Return the clock's seconds."""
        return self._clock.now()

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        try:
            self._simulation.advance_to(seconds)
        except BaseException as failure:  # noqa: BLE001  # raised by `run`
            self._simulation._fail(failure)

    def next_timer(self) -> None:
        """Advance to the next timer, unless none is due."""
        self.forget_cancelled()
        if self.timers and self.timers[0][0] <= self.until:
            super().next_timer()
        else:
            self.stop()

    def take(self) -> Timer:
        """Return the next timer, chosen among those of several runs at one second."""
        choose = self._simulation.choose
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
    """Return the job of the run that planned a timer, or None for actions of the world."""
    context: Context = timer[2]._context  # type: ignore[attr-defined]  # asyncio keeps it there
    return context.get(_JOB)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return unique names, by numbering duplicates."""
    return [
        f"{name}-{n}" if (n := [*names[: at + 1]].count(name)) > 1 else name for at, name in enumerate(names)
    ]
