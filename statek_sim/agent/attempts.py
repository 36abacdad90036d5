"""Escalation in the loop: a run's attempts at a ladder's levels (harness document §5)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from statek_sim import trace as events
from statek_sim.agent.approvals import Suspended, ask_people, suspended, wait_for, why_not
from statek_sim.agent.effects import Answer, Ask, CommitPoint, Effect, LetTimePass
from statek_sim.agent.escalation import (
    REACTIONS,
    Attempt,
    Cause,
    Climb,
    Climbing,
    Decision,
    Ladder,
    Level,
    after,
    cause_of_stop,
    question_text,
    task_text,
)
from statek_sim.agent.run_state import Pending, RunState, Steps
from statek_sim.values import Message

Attempting = Callable[[Pending | None], Steps]
"""Yields the effects of one attempt at a task, from the start or from a saved position."""


def climb(run: RunState, ladder: Ladder, attempt: Attempting, saved: Pending | None = None) -> Steps:
    """Work on a run's next message, level by level, until it is solved or no levels are left.

    Every attempt but the first starts with the conversation as it was before the message; the budget is not reset.
    `attempt` works on the message at one level. The run's stop reason is `final`, `unsolved`, or the reason for a
    failure that would also occur at other levels. `saved` resumes a run that was committed between levels.
    """
    before = run.conversation.messages if run.climbing is None else run.climbing.before
    if run.climbing is None:
        state = Climb(task=run.inbox.pop(0) if run.inbox else "", task_type=run.spec.choice.task)
    else:
        state = run.climbing.climb
    if saved is not None and saved.point is CommitPoint.ATTEMPTED:
        run.tell(events.RunResumed(run.now(), run.job, saved.point.value, run.iteration, saved.committed))
        yield from _wait(max(0.0, saved.state["until"] - run.now()))
        saved = None
    while True:
        level = ladder.levels[state.level]
        if saved is None:
            _begin(run, state, level, ladder, before)
        assert run.climbing is not None, "an attempt began, here or before a crash"
        hand = run.climbing
        ended = (
            yield from _ask(run, hand, level, saved)
            if level.model is None
            else _try(run, hand, level, ladder, attempt(saved))
        )
        saved = None
        state, decision = after(state, ended, ladder)
        _tell(run, state, ended, decision, level, ladder)
        if decision.kind in ("done", "stop"):
            break
        run.climbing = replace(hand, climb=state, level=ladder.levels[state.level].name)
        yield from run.commit(CommitPoint.ATTEMPTED, pending={"until": run.now() + decision.wait})
        yield from _wait(decision.wait)
    run.climbing, run.climbed = None, state
    run.end_attempt()
    if decision.kind == "stop":
        _give_up(run, state, ended)


def _wait(seconds: float) -> Steps:
    if seconds:
        yield LetTimePass(seconds)


def _begin(run: RunState, state: Climb, level: Level, ladder: Ladder, before: Sequence[Message]) -> None:
    if level.model is not None:
        run.begin_attempt(level.model, task_text(state, ladder), before if state.attempts else None)
    run.climbing = Climbing(
        climb=state,
        before=before,
        level=level.name,
        model=run.spec.model,
        began=run.now(),
        tokens=run.budget.tokens,
    )


def _try(
    run: RunState, hand: Climbing, level: Level, ladder: Ladder, work: Steps
) -> Generator[Effect, Answer, Attempt]:
    state = hand.climb
    yield from work
    cause = cause_of_stop(run.stop or "", run.failure)
    detail, score = run.detail or "", 0.0
    if cause is Cause.SOLVED:
        judged = ladder.judged(state.task, run.answer or "")
        score = judged.score
        if not judged.good:
            cause, detail = Cause.POOR_QUALITY, judged.reason
            run.completions = (run.completions or 1) - 1 or None
    used = run.budget.tokens - hand.tokens
    return Attempt(
        level=level.name,
        number=state.number,
        model=level.model,
        cause=cause,
        detail=detail,
        tokens=used,
        cost=None if level.price is None else level.price.cost(used),
        seconds=run.now() - hand.began,
        answer=run.answer,
        score=score,
    )


def _ask(
    run: RunState, hand: Climbing, level: Level, saved: Pending | None
) -> Generator[Effect, Answer, Attempt]:
    """Ask a person: commit the state, then suspend the run with a token and a deadline."""
    state = hand.climb
    ask = Ask(text=question_text(state, level), seconds=level.seconds)
    waiting = None if saved is None else _was_asked(run, saved)
    if waiting is None:
        (person_answer,) = yield from ask_people(run, [(level.name, ask)], lambda: {"stage": "ladder"})
    else:
        (person_answer,) = yield from wait_for(run, waiting)
    if person_answer.kind == "answered":
        run.stop, run.detail, run.answer = "final", None, person_answer.text
        run.completions = (run.completions or 0) + 1
        cause, detail = Cause.SOLVED, ""
    else:
        cause = Cause.REFUSED if person_answer.kind == "refused" else Cause.EXPIRED
        detail = why_not(person_answer, ask)
    return Attempt(
        level=level.name,
        number=state.number,
        model=None,
        cause=cause,
        detail=detail,
        seconds=run.now() - hand.began,
        answer=person_answer.text if person_answer.kind == "answered" else None,
    )


def _was_asked(run: RunState, saved: Pending) -> Suspended:
    """Return the question that was open when a run was committed, with its token and remaining seconds."""
    run.tell(events.RunResumed(run.now(), run.job, saved.point.value, run.iteration, saved.committed))
    return suspended(saved.state, saved.receipts, committed=saved.committed, now=run.now())


def _tell(
    run: RunState, state: Climb, attempt: Attempt, decision: Decision, level: Level, ladder: Ladder
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
    if up is not None or out:
        run.tell(
            events.Escalated(
                run.now(),
                run.job,
                level.name,
                None if up is None else up.name,
                attempt.cause.value,
                attempt.detail,
                state.task_type,
            )
        )


def _give_up(run: RunState, state: Climb, last: Attempt) -> None:
    """End the run because no levels are left, giving the reason and the best answer so far."""
    best = state.best
    run.answer = None if best is None else best.answer
    if REACTIONS[last.cause] == "stop":
        return
    levels = len({attempt.level for attempt in state.attempts})
    why = f": {last.detail}" if last.detail else ""
    run.stop = "unsolved"
    run.detail = (
        f"{len(state.attempts)} attempts at {levels} levels; the last one ended with {last.cause.value}{why}"
    )
