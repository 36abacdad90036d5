"""The loop's part of a ladder (002 §5): attempts of one run at one level after another, a person last."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from statek_sim import trace as events
from statek_sim.agent.effects import Answer, Ask, Effect, LetTimePass
from statek_sim.agent.escalation.causes import REACTIONS, Cause, cause_of_stop
from statek_sim.agent.escalation.climbing import (
    Attempt,
    Climb,
    Decision,
    after,
    begun,
    question_text,
    task_text,
)
from statek_sim.agent.escalation.ladder import Ladder, Level
from statek_sim.agent.people import ask_people, why_not

if TYPE_CHECKING:
    from statek_sim.agent.loop import AgentRun, Steps


def climb(run: AgentRun, ladder: Ladder) -> Steps:
    """Work on the next message of a run, level by level, until it is solved or nothing is left to try.

    Every attempt but the first begins with the conversation as it was before the message; the budget is not given
    again. The run's stop reason is `final`, that of what no other level could help with, or `unsolved`.
    """
    before = run.conversation.messages
    state = begun(ladder, run.inbox.pop(0) if run.inbox else "")
    first = True
    while True:
        level = ladder.levels[state.level]
        if level.model is None:
            attempt = yield from _ask(run, state, level)
        else:
            run.begin_attempt(level.model, task_text(state, ladder), None if first else before)
            attempt = yield from _try(run, state, level, ladder)
        first = False
        state, decision = after(state, attempt, ladder)
        _tell(run, state, attempt, decision, level, ladder)
        if decision.kind in ("done", "stop"):
            break
        if decision.wait:
            yield LetTimePass(decision.wait)
    run.end_attempt()
    if decision.kind == "stop":
        _give_up(run, state, attempt, ladder)


def _try(run: AgentRun, state: Climb, level: Level, ladder: Ladder) -> Generator[Effect, Answer, Attempt]:
    began, tokens = run.now(), run.budget.tokens
    yield from run.attempt()
    cause = cause_of_stop(run.stop or "", run.failure)
    detail, score = run.detail or "", 0.0
    if cause is Cause.SOLVED:
        judged = ladder.judged(state.task, run.answer or "")
        score = judged.score
        if not judged.good:
            cause, detail = Cause.POOR_QUALITY, judged.reason
            run.completions = (run.completions or 1) - 1 or None
    used = run.budget.tokens - tokens
    return Attempt(
        level=level.name,
        number=state.number,
        model=level.model,
        cause=cause,
        detail=detail,
        tokens=used,
        cost=None if level.price is None else level.price.cost(used),
        seconds=run.now() - began,
        answer=run.answer,
        score=score,
    )


def _ask(run: AgentRun, state: Climb, level: Level) -> Generator[Effect, Answer, Attempt]:
    """Ask a person: the state is committed first, the run is suspended with a token and a deadline."""
    began = run.now()
    ask = Ask(text=question_text(state, level), seconds=level.seconds)
    (said,) = yield from ask_people(
        run, [(level.name, ask)], lambda position, answer: None, lambda: {"stage": "ladder"}
    )
    if said.kind == "answered":
        run.stop, run.detail, run.answer = "final", None, said.text
        run.completions = (run.completions or 0) + 1
        cause, detail = Cause.SOLVED, ""
    else:
        cause = Cause.REFUSED if said.kind == "refused" else Cause.EXPIRED
        detail = why_not(said, ask)
    return Attempt(
        level=level.name,
        number=state.number,
        model=None,
        cause=cause,
        detail=detail,
        seconds=run.now() - began,
        answer=said.text if said.kind == "answered" else None,
    )


def _tell(
    run: AgentRun, state: Climb, attempt: Attempt, decision: Decision, level: Level, ladder: Ladder
) -> None:
    run.tell(
        events.AttemptEnded(
            run.now(),
            run.job,
            attempt.level,
            attempt.number,
            attempt.model,
            attempt.cause.value,
            attempt.detail,
            attempt.tokens,
            None if attempt.cost is None else str(attempt.cost),
            attempt.seconds,
        )
    )
    up = ladder.levels[state.level] if decision.kind == "climb" else None
    out = decision.kind == "stop" and REACTIONS[attempt.cause] != "stop"
    to_a_model = up is not None and up.model is not None
    if to_a_model or (ladder.rules.last_recorded and (up is not None or out)):
        run.tell(
            events.Escalated(
                run.now(),
                run.job,
                level.name,
                None if up is None else up.name,
                attempt.cause.value,
                attempt.detail,
            )
        )


def _give_up(run: AgentRun, state: Climb, last: Attempt, ladder: Ladder) -> None:
    """Leave the run with why nothing is left to try, and with the best answer, where one was."""
    best = state.best
    run.answer = best.answer if best is not None and ladder.rules.best == "kept" else None
    if REACTIONS[last.cause] == "stop" and ladder.rules.climbs == "by cause":
        return
    levels = len({one.level for one in state.attempts})
    why = f": {last.detail}" if last.detail else ""
    run.stop = "unsolved"
    run.detail = (
        f"{len(state.attempts)} attempts at {levels} levels; the last ended by {last.cause.value}{why}"
    )
