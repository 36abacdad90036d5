"""The simulated driver: runs in virtual time, one thing after another, in an order that is the same everywhere."""

from __future__ import annotations

import asyncio
import heapq
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from statek_sim.agent.effects import (
    Answer,
    AskModel,
    AskPerson,
    CallTools,
    Commit,
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
    Context,
    limited,
    outcome_of,
    raised,
    started,
    timed_out,
    waited,
)
from statek_sim.agent.loop import AgentRun, Steps
from statek_sim.agent.people import EXPIRED
from statek_sim.agent.tools.tool import code_of
from statek_sim.agent.virtual_loop import VirtualLoop, run_in
from statek_sim.clock import VirtualClock
from statek_sim.errors import ProviderFailure, Unanswered
from statek_sim.providers.protocol import Provider
from statek_sim.providers.retry import ask

_Act = Callable[[], None]

Said = Callable[[PersonSaid], bool]
"""Is told what came of a question; returns whether it was still open."""

Asked = Callable[[Question, Said], None]
"""Is asked a question, and says what came of it by calling what it is given, now or later."""


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
        self.tool_worked: Callable[[AgentRun, str], None] | None = None
        """Is told of a tool that has done its work, before there is a receipt."""
        self._own: set[int] = set()
        self._agenda: list[tuple[float, int, _Act]] = []
        self._seq = 0
        self._life = 0
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
        self._for_runs(self._clock.now(), lambda: self._go_on(run, run.go(), None))

    def _for_runs(self, seconds: float, act: _Act) -> None:
        """Plan what dies with the process that runs the runs."""
        self.at(seconds, act)
        self._own.add(self._seq)

    def kill(self) -> None:
        """Let the process die that runs the runs: they do nothing any more. What `at` planned still happens."""
        self._void |= self._own & {seq for _, seq, _ in self._agenda}
        self._own.clear()
        self._ready.clear()
        self.waiting.clear()
        self._renewal = None
        self._life += 1

    def run(self, until: float) -> bool:
        """Do everything that is due by `until`; return whether nothing is left and nobody is waited for."""
        agenda, clock = self._agenda, self._clock
        while agenda and (agenda[0][0] <= until or agenda[0][1] in self._void):
            due, seq, act = heapq.heappop(agenda)
            self._own.discard(seq)
            if seq in self._void:
                self._void.remove(seq)
                continue
            self._advance_to(max(due, clock.now()))
            act()
            while self._ready:
                self._ready.pop(0)()
        return not agenda and not self.waiting

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
        """Carry out effects until one takes time, or the process dies."""
        life = self._life
        while life == self._life:
            try:
                effect = steps.send(answer)
            except StopIteration:
                return
            match effect:
                case AskModel():
                    latency, answer = self._ask(effect)
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
                    if self.committed is not None:
                        self.committed(effect.snapshot)
                    answer = None
                    continue
            if latency:
                self._later(latency, run, steps, answer)
                return

    def _later(self, seconds: float, run: AgentRun, steps: Steps, answer: Answer) -> None:
        self._for_runs(self._clock.now() + seconds, lambda: self._go_on(run, steps, answer))

    def _ask(self, effect: AskModel) -> tuple[float, Answer]:
        try:
            reply = ask(self._provider, effect.request)
        except ProviderFailure as failure:
            return failure.latency, failure
        return reply.latency, reply

    def _wait(self, effect: Wait) -> tuple[float, Waited]:
        """Wait in time of its own, from now on; return how long it took."""
        began = self._clock.now()
        loop = VirtualLoop(start=began)
        done = run_in(loop, waited(effect))
        return loop.time() - began, done

    # -- people ------------------------------------------------------------------------------------------------

    def _ask_person(self, run: AgentRun, steps: Steps, effect: AskPerson) -> None:
        """Ask everything at once; the run goes on, after whatever happens now, when the last question is settled."""
        if self._person is None:
            raise Unanswered(
                f"{effect.questions[0].text!r}: nobody is there to ask; give the driver a person"
            )
        said: dict[int, PersonSaid] = {}
        life = self._life

        def tell(position: int, deadline: int | None, answer: PersonSaid) -> bool:
            if position in said or life != self._life:
                return False
            said[position] = answer
            token = effect.questions[position].token
            del self.waiting[token]
            if deadline is not None and answer is not EXPIRED:
                self._void.add(deadline)
            self._note(run, token, answer)
            effect.said(position, answer)
            if len(said) == len(effect.questions):
                told = [said[at] for at in range(len(said))]
                self._ready.append(lambda: self._go_on(run, steps, told))
            return True

        for position, question in enumerate(effect.questions):
            self.waiting[question.token] = question
            deadline = None
            if question.seconds is not None:
                deadline = self._seq + 1
                self._for_runs(
                    self._clock.now() + question.seconds, partial(_expire, partial(tell, position, deadline))
                )
            self._person(question, partial(tell, position, deadline))

    # -- tools -------------------------------------------------------------------------------------------------

    def _call(self, run: AgentRun, steps: Steps, effect: CallTools) -> Sequence[ToolOutcome] | None:
        """Call tools; return their outcomes, or None when the run has to wait for one of them."""
        began: dict[int, tuple[float, ToolOutcome]] = {}
        left, life = 0, self._life
        # As under asyncio: plain functions at once, in their order, then what is awaited.
        order: Iterable[int] = range(len(effect.calls))
        if len(effect.calls) > 1:
            order = sorted(order, key=lambda at: code_of(effect.calls[at].run).waits)
        for position in order:
            seconds, outcome = began[position] = self._begin(effect.calls[position])
            if seconds:
                left += 1
            else:
                self._ended(run, effect, position, outcome)
            if life != self._life:
                return None
        outcomes = [began[position][1] for position in range(len(began))]
        if not left:
            return outcomes

        def end(position: int, outcome: ToolOutcome) -> None:
            nonlocal left
            left -= 1
            self._ended(run, effect, position, outcome)
            if not left and life == self._life:
                self._go_on(run, steps, outcomes)

        now = self._clock.now()
        for position, (seconds, outcome) in sorted(began.items()):
            if seconds:
                self._for_runs(now + seconds, partial(end, position, outcome))
        return None

    def _note(self, run: AgentRun, key: str, came: ToolOutcome | PersonSaid) -> None:
        if self.receipted is not None:
            self.receipted(receipt_of(run.job, key, came, at=self._clock.now()))

    def _ended(self, run: AgentRun, effect: CallTools, position: int, outcome: ToolOutcome) -> None:
        name, life = effect.calls[position].call.name, self._life
        if self.tool_worked is not None:
            self.tool_worked(run, name)
            if life != self._life:
                return
        self._note(run, effect.calls[position].key, outcome)
        effect.done(position, outcome)
        if self.after_tool is not None:
            self.after_tool(run, name)

    def _begin(self, one: Invocation) -> tuple[float, ToolOutcome]:
        """Return how many seconds a call takes and what comes of it; its code runs now, at its beginning."""
        seconds, outcome = self._run(one)
        # A coroutine was cancelled at its timeout already; this is about a function that says how long it takes.
        if one.timeout is not None and seconds >= one.timeout:
            return one.timeout, timed_out(one)
        return seconds, outcome

    def _run(self, one: Invocation) -> tuple[float, ToolOutcome]:
        code = code_of(one.run)
        if code.waits or code.wants_context:
            return self._run_with_time(one)
        try:
            value = code.function(**one.call.arguments)
            # A text is no awaitable; asking `inspect` costs more than all else here.
            if isinstance(value, str) or not inspect.isawaitable(value):
                return outcome_of(value)
        except Exception as error:  # noqa: BLE001  # a user's tool
            return 0.0, raised(error)
        began = self._clock.now()
        loop = VirtualLoop(start=began)
        outcome = run_in(loop, limited(one, partial(_same, value)))
        return loop.time() - began, outcome

    def _run_with_time(self, one: Invocation) -> tuple[float, ToolOutcome]:
        """Run code that waits, or asks for the time."""
        began = self._clock.now()
        loop: VirtualLoop | None = None

        def now() -> float:
            return began if loop is None else loop.time()

        start = partial(started, one, Context(now, asyncio.sleep))
        if not code_of(one.run).waits:
            try:
                value = start()
                if not inspect.isawaitable(value):
                    return outcome_of(value)
            except Exception as error:  # noqa: BLE001  # a user's tool
                return 0.0, raised(error)
            start = partial(_same, value)
        loop = VirtualLoop(start=began)
        outcome = run_in(loop, limited(one, start))
        return loop.time() - began, outcome


def _expire(tell: Said) -> None:
    tell(EXPIRED)


def _same(value: Any) -> Any:
    return value
