"""A ladder in somebody's own code, under asyncio: what an attempt does is a coroutine of theirs.

When nothing but a person is left the task is suspended, not waited for: `resume` goes on with the answer, in this
process or another one.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.agent.escalation.causes import Cause, cause_of_failure
from statek_sim.agent.escalation.climbing import Attempt, Climb, after, begun, question_text, task_text
from statek_sim.agent.escalation.ladder import Ladder, Level
from statek_sim.agent.escalation.tickets import Notify, Ticket, Tickets, Word, asked_for, taken
from statek_sim.errors import BadInput

Sleep = Callable[[float], Awaitable[object]]
Now = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """What an attempt is to do: which model, at which level, with which text."""

    level: str
    number: int
    model: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of it: an answer, or a cause; and the tokens it took. Neither of them is an answer not good enough."""

    answer: str | None = None
    cause: Cause = Cause.SOLVED
    detail: str = ""
    tokens: int = 0


Work = Callable[[Try], Awaitable[Tried]]
"""Makes one attempt. What it raises is told apart: failures of providers by their kind, anything else is a bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """How a task stands: `solved` with an answer, `unsolved` with the best one, or `suspended` with a ticket.

    `untold` are the errors of notifications that failed: the ticket is there all the same.
    """

    kind: Literal["solved", "unsolved", "suspended"]
    answer: str | None
    climb: Climb
    ticket: Ticket | None = None
    untold: tuple[str, ...] = ()


async def escalate(
    ladder: Ladder,
    task: str,
    work: Work,
    *,
    token: str,
    tickets: Tickets,
    now: Now,
    sleep: Sleep,
    notify: Sequence[Notify] = (),
) -> Escalation:
    """Work on a task, level by level. Cancellation goes through, at once.

    `token` names the task's ticket where a person has to be asked; `now` and `sleep` are seconds of one clock.
    Checks and notifications may be coroutine functions. A check or strategy that raises is a bug: the attempt ends by
    it, with what it said. `BadInput` for a token that a ticket has already, before anybody is asked.
    """
    if ladder.levels[-1].model is None and tickets.load(token) is not None:
        raise taken(token)
    state = begun(task)
    while True:
        level = ladder.levels[state.level]
        if level.model is None:
            return await _suspended(state, level, token, tickets, now, notify)
        attempt = await _attempt(state, level, level.model, ladder, work, now)
        state, decision = after(state, attempt, ladder)
        if decision.kind == "done":
            return Escalation(kind="solved", answer=attempt.answer, climb=state)
        if decision.kind == "stop":
            return _unsolved(state)
        if decision.wait:
            await sleep(decision.wait)


def resume(ladder: Ladder, token: str, word: Word, tickets: Tickets) -> Escalation:
    """Go on with what a person said of a ticket; the first word counts, and one after the deadline is none.

    `BadInput` when there is no such ticket.
    """
    ticket = asked_for(tickets, token)
    if ticket.level != ladder.levels[-1].name or ladder.levels[-1].model is not None:
        raise BadInput(f"token {token!r} asks {ticket.level!r}, who is not at the end of this ladder")
    kept = tickets.settle(token, word)
    late = ticket.deadline is not None and kept.at > ticket.deadline
    cause = Cause.EXPIRED if late else _CAUSES[kept.kind]
    attempt = Attempt(
        level=ticket.level,
        number=1,
        model=None,
        cause=cause,
        detail="" if cause is Cause.SOLVED else kept.text or cause.value,
        seconds=kept.at - ticket.asked,
        answer=kept.text if cause is Cause.SOLVED else None,
    )
    state, _ = after(ticket.climb, attempt, ladder)
    if cause is Cause.SOLVED:
        return Escalation(kind="solved", answer=kept.text, climb=state, ticket=ticket)
    return _unsolved(state)


_CAUSES: Final = {"answered": Cause.SOLVED, "refused": Cause.REFUSED, "expired": Cause.EXPIRED}


async def _tried(work: Work, wanted: Try) -> Tried:
    try:
        tried = await work(wanted)
    except Exception as error:  # noqa: BLE001  # a user's attempt
        return Tried(cause=cause_of_failure(error), detail=_said(error))
    if not isinstance(tried, Tried):
        return Tried(cause=Cause.BUG, detail=f"the attempt returned {type(tried).__name__}, expected Tried")
    return tried


async def _judged(ladder: Ladder, task: str, tried: Tried) -> tuple[Cause, str, float]:
    if tried.answer is None:
        return Cause.POOR_QUALITY, "there is no answer", 0.0
    try:
        judged = await ladder.judged_by_all(task, tried.answer)
    except Exception as error:  # noqa: BLE001  # a user's check
        return Cause.BUG, _said(error), 0.0
    if not judged.good:
        return Cause.POOR_QUALITY, judged.reason, judged.score
    return Cause.SOLVED, tried.detail, judged.score


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


async def _attempt(state: Climb, level: Level, model: str, ladder: Ladder, work: Work, now: Now) -> Attempt:
    began = now()
    try:
        wanted = Try(level=level.name, number=state.number, model=model, task=task_text(state, ladder))
    except Exception as error:  # noqa: BLE001  # a user's strategy
        tried = Tried(cause=Cause.BUG, detail=_said(error))
    else:
        tried = await _tried(work, wanted)
    cause, detail, score = tried.cause, tried.detail, 0.0
    if cause is Cause.SOLVED:
        cause, detail, score = await _judged(ladder, state.task, tried)
    return Attempt(
        level=level.name,
        number=state.number,
        model=model,
        cause=cause,
        detail=detail,
        tokens=tried.tokens,
        cost=None if level.price is None else level.price.cost(tried.tokens),
        seconds=now() - began,
        answer=tried.answer,
        score=score,
    )


async def _suspended(
    state: Climb, level: Level, token: str, tickets: Tickets, now: Now, notify: Sequence[Notify]
) -> Escalation:
    at = now()
    ticket = Ticket(
        token=token,
        level=level.name,
        question=question_text(state, level),
        asked=at,
        deadline=None if level.seconds is None else at + level.seconds,
        climb=state,
    )
    tickets.save(ticket)
    untold: list[str] = []
    for tell in notify:
        try:
            sent = tell(ticket)
            if inspect.isawaitable(sent):
                await sent
        except Exception as error:  # noqa: BLE001  # a user's notification
            untold.append(_said(error))
    return Escalation(kind="suspended", answer=None, climb=state, ticket=ticket, untold=tuple(untold))


def _unsolved(state: Climb) -> Escalation:
    best = state.best
    answer = None if best is None else best.answer
    return Escalation(kind="unsolved", answer=answer, climb=state)
