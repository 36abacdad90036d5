"""The simulated driver: runs in virtual time, one thing after another, in an order that is the same everywhere."""

from __future__ import annotations

import asyncio
import heapq
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from statek_sim.agent.approvals import EXPIRED
from statek_sim.agent.effects import (
    Answer,
    AskModel,
    AskPerson,
    CallTools,
    Commit,
    CommitPoint,
    Delayed,
    Invocation,
    LetTimePass,
    PersonSaid,
    Question,
    Receipt,
    Snapshot,
    ToolOutcome,
    Wait,
    Waited,
    receipt_of,
)
from statek_sim.agent.execution import (
    OWN_FAILURES,
    first_of,
    limited,
    outcome_of,
    part_cancelled,
    raised,
    started,
    timed_out,
    waited,
)
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.run_state import Steps
from statek_sim.agent.tools.tool import code_of
from statek_sim.agent.virtual_loop import VirtualLoop, run_in
from statek_sim.clock import VirtualClock
from statek_sim.errors import ProviderFailure, Unanswered
from statek_sim.providers.protocol import Provider
from statek_sim.providers.retry import ask, bug_of

_Act = Callable[[], None]
_Entry = tuple[float, int, _Act]
"""When something is done, its number, and what."""

Said = Callable[[PersonSaid], bool]
"""Is told what came of a question; returns whether it was still open."""

Asked = Callable[[Question, Said], None]
"""Is asked a question, and says what came of it by calling what it is given, now or later."""


_Ended = tuple[float, int, ToolOutcome]
"""Seconds after which a call ended, its position, and what came of it."""

Renewal = tuple[float, Callable[[], None]]
"""Seconds, and what is called each time they have passed, to say that the process is alive."""


class Simulation:
    """Carries out the effects of runs. Entries of the agenda are taken by time, and in the order they were made.

    `person` is asked what runs want to know; `committed` is given every snapshot, and `receipted` what came of every
    call and question, before the run hears of it. `renewed` is called every so many virtual seconds, until a `kill`.
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
        self.committed = committed
        self.receipted = receipted
        self._renewal = renewed
        self._heard = clock.now()
        self.passed_over: Callable[[str, CommitPoint], bool] | None = None
        """Is asked before the snapshot of a job's commit is made whether nobody needs it."""
        self.tool_worked: Callable[[AgentRun, str], None] | None = None
        """Is told of a tool that has done its work, before there is a receipt."""
        self.choose: Callable[[Sequence[str]], int] | None = None
        """Is asked which of several goes on first, by names: runs that may at the same second, calls that end. Without
        it, or at place 0, runs go on as long as they can, and calls end when they say.
        """
        self._own: dict[int, str] = {}
        self._agenda: list[tuple[float, int, _Act]] = []
        self._seq = 0
        self._life = 0
        self._loop: VirtualLoop | None = None
        self._void: set[int] = set()
        self._ready: list[_Act] = []
        self.waiting: dict[str, Question] = {}
        """Questions that are open, by their tokens."""
        self.after_tool: Callable[[AgentRun, str], None] | None = None

    def at(self, seconds: float, act: _Act) -> None:
        """Do something at virtual second `seconds`, after what was planned for it before."""
        self._seq += 1
        heapq.heappush(self._agenda, (seconds, self._seq, act))

    def start(self, run: AgentRun) -> None:
        """Let a run begin, or go on after it was pushed a message, once everything else that is due now is done."""
        self._for_runs(run.job, self._clock.now(), lambda: self._go_on(run, run.go(), None))

    def _for_runs(self, job: str, seconds: float, act: _Act) -> None:
        """Plan what dies with the process that runs the runs."""
        self.at(seconds, act)
        self._own[self._seq] = job

    def kill(self) -> None:
        """Let the process die that runs the runs: they do nothing any more. What `at` planned still happens."""
        self._void |= self._own.keys() & {seq for _, seq, _ in self._agenda}
        self._own.clear()
        self._ready.clear()
        self.waiting.clear()
        self._renewal = None
        self._loop = None
        self._life += 1

    def run(self, until: float) -> bool:
        """Do everything that is due by `until`; return whether nothing is left and nobody is waited for."""
        agenda, clock = self._agenda, self._clock
        while agenda and (agenda[0][0] <= until or agenda[0][1] in self._void):
            due, seq, act = self._next()
            self._own.pop(seq, None)
            if seq in self._void:
                self._void.remove(seq)
                continue
            self._advance_to(max(due, clock.now()))
            act()
            while self._ready:
                self._ready.pop(0)()
        return not agenda and not self.waiting

    def _next(self) -> _Entry:
        """Take the entry that is next: of those of several runs at one second, one that is chosen."""
        first = heapq.heappop(self._agenda)
        if self.choose is None or not self._may_swap(first):
            return first
        others = [first]
        while self._agenda and self._agenda[0][0] == first[0] and self._may_swap(self._agenda[0]):
            others.append(heapq.heappop(self._agenda))
        # Of one run its first: what comes of it comes in this order.
        runs: dict[str, _Entry] = {}
        for entry in others:
            runs.setdefault(self._own[entry[1]], entry)
        chosen = [*runs.values()][self.choose([*runs]) if len(runs) > 1 else 0]
        for entry in others:
            if entry is not chosen:
                heapq.heappush(self._agenda, entry)
        return chosen

    def _may_swap(self, entry: _Entry) -> bool:
        """Return whether an entry is of a run that lives; what the world does has its own time."""
        return entry[1] in self._own and entry[1] not in self._void

    def _advance_to(self, seconds: float) -> None:
        """Let time pass, in which the process says that it is alive."""
        if self._renewal is not None:
            every, renew = self._renewal
            while (next_ := self._heard + every) < seconds:
                self._clock.advance_to(max(next_, self._clock.now()))
                self._heard = next_
                renew()
        self._clock.advance_to(seconds)

    # -- effects -----------------------------------------------------------------------------------------------

    def _go_on(self, run: AgentRun, steps: Steps, answer: Answer) -> None:
        """Carry out effects until one takes time, or the process dies; what ends the run is told to its gates."""
        try:
            self._effects(run, steps, answer)
        except Exception:
            if run.batch is not None:
                run.batch.dropped()
            raise

    def _effects(self, run: AgentRun, steps: Steps, answer: Answer) -> None:
        life = self._life
        while life == self._life:
            try:
                effect = steps.send(answer)
            except StopIteration:
                return
            except asyncio.CancelledError as error:
                raise part_cancelled(error) from error
            match effect:
                case AskModel():
                    latency, answer = self._ask(effect)
                    if not latency and self.choose is not None:
                        self._first(run, steps, answer)
                        return
                case CallTools():
                    outcomes = self._call(run, steps, effect)
                    if outcomes is None:
                        return
                    answer = outcomes
                    continue
                case LetTimePass():
                    latency, answer = effect.seconds, None
                case AskPerson():
                    self._ask_person(run, steps, effect)
                    return
                case Wait():
                    latency, answer = self._wait(effect)
                case Commit():
                    self._commit(effect)
                    answer = None
                    continue
            if latency:
                self._later(latency, run, steps, answer)
                return

    def _commit(self, effect: Commit) -> None:
        if self.passed_over is not None and self.passed_over(effect.job, effect.point):
            return
        if self.committed is not None:
            self.committed(effect.snapshot())

    def _later(self, seconds: float, run: AgentRun, steps: Steps, answer: Answer) -> None:
        self._for_runs(run.job, self._clock.now() + seconds, lambda: self._go_on(run, steps, answer))

    def _first(self, run: AgentRun, steps: Steps, answer: Answer) -> None:
        """Let a run go on now, before all others unless one of these is chosen."""
        self._seq += 1
        heapq.heappush(self._agenda, (self._clock.now(), -self._seq, lambda: self._go_on(run, steps, answer)))
        self._own[-self._seq] = run.job

    def _ask(self, effect: AskModel) -> tuple[float, Answer]:
        try:
            reply = ask(self._provider, effect.request)
        except ProviderFailure as failure:
            return failure.latency, failure
        except (SystemExit, asyncio.CancelledError) as error:
            raise bug_of(type(self._provider).__name__, error) from error
        return reply.latency, reply

    def _wait(self, effect: Wait) -> tuple[float, Waited]:
        """Wait in time of its own, from now on; return how long it took."""
        began = self._clock.now()
        loop = self._loop_at(began)
        done = run_in(loop, waited(effect), close=False)
        return loop.time() - began, done

    def _loop_at(self, seconds: float) -> VirtualLoop:
        """Return the process's one loop at this second: what tools share, a semaphore or a client, is bound to it."""
        if self._loop is None or self._loop.is_running():
            self._loop = VirtualLoop()
        self._loop.begin_at(seconds)
        return self._loop

    # -- people ------------------------------------------------------------------------------------------------

    def _ask_person(self, run: AgentRun, steps: Steps, effect: AskPerson) -> None:
        """Ask everything at once; the run goes on, after whatever happens now, when the last question is settled."""
        person = self._person or _nobody
        if self._person is None:
            for question in effect.questions:
                if question.seconds is None:
                    raise Unanswered(f"{question.text!r}: nobody is there to ask; give the driver a person")
        by_position: dict[int, PersonSaid] = {}
        life = self._life

        def tell(position: int, deadline: int | None, answer: PersonSaid) -> bool:
            if position in by_position or life != self._life:
                return False
            by_position[position] = answer
            token = effect.questions[position].token
            del self.waiting[token]
            if deadline is not None and answer is not EXPIRED:
                self._void.add(deadline)
            self._note(run, token, answer)
            if life != self._life:
                return True
            effect.said(position, answer)
            if len(by_position) == len(effect.questions):
                answers = [by_position[at] for at in range(len(by_position))]
                self._ready.append(lambda: self._go_on(run, steps, answers))
            return True

        for position, question in enumerate(effect.questions):
            self.waiting[question.token] = question
            deadline = None
            if question.seconds is not None:
                deadline = self._seq + 1
                expires = self._clock.now() + question.seconds
                self._for_runs(run.job, expires, partial(_expire, partial(tell, position, deadline)))
            person(question, partial(tell, position, deadline))

    # -- tools -------------------------------------------------------------------------------------------------

    def _call(self, run: AgentRun, steps: Steps, effect: CallTools) -> Sequence[ToolOutcome] | None:
        """Call tools; return their outcomes, or None when the run has to wait for one of them.

        As under asyncio: plain functions at once, in their order, then what is awaited, side by side.
        """
        outcomes: list[ToolOutcome | None] = [None] * len(effect.calls)
        waiting: list[tuple[int, Callable[[], Any]]] = []
        life = self._life
        context = _Time(self._clock.now())
        for position, invocation in enumerate(effect.calls):
            now = _at_once(invocation, context)
            if isinstance(now, ToolOutcome):
                outcomes[position] = now
                self._ended(run, effect, position, now)
                if life != self._life:
                    return None
            else:
                waiting.append((position, now))
        if waiting:
            later = []
            for ended in self._awaited(effect.calls, waiting, context):
                seconds, position, outcome = ended
                outcomes[position] = outcome
                if seconds:
                    later.append(ended)
                    continue
                self._ended(run, effect, position, outcome)
                if life != self._life:
                    return None
            if later:
                self._wait_for(run, steps, effect, outcomes, later)
                return None
        return [outcome for outcome in outcomes if outcome is not None]

    def _wait_for(
        self,
        run: AgentRun,
        steps: Steps,
        effect: CallTools,
        outcomes: Sequence[ToolOutcome | None],
        later: Sequence[_Ended],
    ) -> None:
        """Let the run go on when the last of its calls has ended."""
        left, life = len(later), self._life

        def end(position: int, outcome: ToolOutcome) -> None:
            nonlocal left
            left -= 1
            self._ended(run, effect, position, outcome)
            if not left and life == self._life:
                self._go_on(run, steps, [outcome for outcome in outcomes if outcome is not None])

        now = self._clock.now()
        outcome_at = {position: outcome for _, position, outcome in later}
        for seconds, position in self._in_order(effect, [ended[:2] for ended in later]):
            self._for_runs(run.job, now + seconds, partial(end, position, outcome_at[position]))

    def _awaited(
        self, calls: Sequence[Invocation], waiting: Sequence[tuple[int, Callable[[], Any]]], context: _Time
    ) -> Sequence[_Ended]:
        """Return how calls ended that are awaited, in the order in which they did; their code runs now."""
        ended: list[_Ended] = []
        if all(isinstance(start, _After) for _, start in waiting):
            for position, start in waiting:
                seconds, outcome = outcome_of(start())
                limit = calls[position].timeout
                if limit is not None and seconds >= limit:
                    seconds, outcome = limit, timed_out(calls[position])
                ended.append((seconds, position, outcome))
            return ended

        loop = context.loop = self._loop_at(context.began)

        async def end(position: int, start: Callable[[], Any]) -> None:
            outcome = await limited(calls[position], start)
            ended.append((loop.time() - context.began, position, outcome))

        async def side_by_side() -> None:
            async with asyncio.TaskGroup() as group:
                for position, start in waiting:
                    group.create_task(end(position, start))

        try:
            run_in(loop, end(*waiting[0]) if len(waiting) == 1 else side_by_side(), close=False)
        except BaseExceptionGroup as failures:
            raise first_of(failures) from None
        return ended

    def _in_order(self, effect: CallTools, taking: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """Return when each call ends, by its position: where others are chosen first, these end at its second."""
        last = max((seconds for seconds, _ in taking), default=0.0)
        # One with a timeout cannot take as long as any other, and one that ended by it takes just that long.
        free = [(s, at) for s, at in taking if (effect.calls[at].timeout or last + 1) > last]
        if self.choose is None or len(free) < 2:
            return taking
        names = dict(
            zip(
                (at for _, at in free),
                _told_apart([effect.calls[at].call.name for _, at in free]),
                strict=True,
            )
        )
        left = [at for _, at in sorted(free)]
        found: list[tuple[float, int]] = []
        for second, _ in sorted(free):
            at = left.pop(self.choose([names[one] for one in left]) if len(left) > 1 else 0)
            found.append((second, at))
        if found == sorted(free):
            return taking
        return sorted([*found, *(one for one in taking if one not in free)], key=lambda one: one[0])

    def _note(self, run: AgentRun, key: str, came: ToolOutcome | PersonSaid) -> None:
        if self.receipted is not None:
            self.receipted(receipt_of(run.job, key, came, at=self._clock.now()))

    def _ended(self, run: AgentRun, effect: CallTools, position: int, outcome: ToolOutcome) -> None:
        name, life = effect.calls[position].call.name, self._life
        if self.tool_worked is not None and not effect.calls[position].checks:
            self.tool_worked(run, name)
            if life != self._life:
                return
        self._note(run, effect.calls[position].key, outcome)
        if life != self._life:
            return
        effect.done(position, outcome)
        if self.after_tool is not None:
            self.after_tool(run, name)


def _nobody(question: Question, answered: Said) -> None:
    """Answer nothing: the question's deadline ends it."""


class _Time:
    """The `ToolContext` of calls that begin together: the time of the loop that they are awaited in."""

    __slots__ = ("began", "loop")

    def __init__(self, began: float) -> None:
        self.began = began
        self.loop: VirtualLoop | None = None

    def now(self) -> float:
        """Return seconds since the run began."""
        return self.began if self.loop is None else self.loop.time()

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)


class _After:
    """Begins what is left of a plain function that says how long it takes: its result, after that."""

    __slots__ = ("_value",)

    def __init__(self, value: Delayed) -> None:
        self._value = value

    def __call__(self) -> Delayed:
        """Return what the function returned."""
        return self._value


def _at_once(invocation: Invocation, context: _Time) -> ToolOutcome | Callable[[], Any]:
    """Call a plain function; return its outcome, or what begins what is left to be waited for."""
    code = code_of(invocation.run)
    if code.waits:
        return partial(started, invocation, context)
    try:
        call = code if code.conversions else code.function
        if code.context is not None:
            value = call(**invocation.call.arguments, **{code.context: context})
        else:
            value = call(**invocation.call.arguments)
        # A text is no awaitable; asking `inspect` costs more than all else here.
        if not isinstance(value, str):
            if inspect.isawaitable(value):
                return partial(_same, value)
            if isinstance(value, Delayed) and value.seconds:
                return _After(value)
        return outcome_of(value)[1]
    except OWN_FAILURES as error:
        return raised(error)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return names, a second one of its kind with its number."""
    return [
        f"{name}-{n}" if (n := [*names[: at + 1]].count(name)) > 1 else name for at, name in enumerate(names)
    ]


def _expire(tell: Said) -> None:
    tell(EXPIRED)


def _same(value: Any) -> Any:
    return value
