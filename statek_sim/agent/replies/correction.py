"""Correcting a model: after a reply that could not be used, and when a watcher of turns says so (004 §6, 002 §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statek_sim import trace as events
from statek_sim.agent.effects import Advice, ToolCall, ToolOutcome, TurnFacts, WrittenCall
from statek_sim.agent.progress import Ended
from statek_sim.agent.replies.calls import numbered
from statek_sim.agent.replies.nudges import PREFIX, ROLE, Failure, nudge_text
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.agent.run_state import RunState


def answer_calls(
    run: RunState, reply: ModelReply, text: str, calls: Sequence[WrittenCall], results: Sequence[str]
) -> None:
    """Append a reply with its calls, and a result for each: a provider refuses a history without."""
    run.conversation.said(reply, calls, text)
    for call, result in zip(calls, results, strict=True):
        run.conversation.add({"role": "tool", "content": result, "tool_call_id": call.id})


def watch(run: RunState, text: str, done: Sequence[tuple[ToolCall, ToolOutcome]], *, progress: bool) -> None:
    """Show a turn to the watchers and do what they say."""
    for watcher in run.deps.parts.watchers:
        facts = TurnFacts(turn=run.counters.asked, at=run.now(), text=text, calls=done, progress=progress)
        advice = watcher(facts)
        if advice is not None:
            _follow(run, advice)


def _follow(run: RunState, advice: Advice) -> None:
    """Do what a watcher says (002 §6.2: a detection triggers a change of strategy)."""
    run.tell(events.HarnessSpoke(run.now(), run.job, "protection", advice.kind, advice.reason))
    match advice.kind:
        case "stop":
            raise Ended("stuck", advice.reason)
        case "fewer_tools":
            # Without the tool of an open step the run could neither go on nor be answered.
            run.hidden |= frozenset(advice.tools) - frozenset(run.enforcer.open)
            run.conversation.add({"role": ROLE, "content": PREFIX + advice.reason})
        case "nudge":
            _nudge(run, Failure.STUCK, {"reason": advice.reason})


def fail_reply(
    run: RunState,
    reply: ModelReply,
    calls: Sequence[WrittenCall],
    failure: Failure,
    details: Mapping[str, object],
) -> None:
    """Keep a reply of which nothing is executed, and nudge."""
    written = numbered(calls)
    answer_calls(run, reply, reply.text, written, ["Error: not executed."] * len(written))
    fail(run, failure, details)


def fail(run: RunState, failure: Failure, details: Mapping[str, object]) -> None:
    """Count a reply that could not be used, and nudge."""
    run.counters.exceptions += 1
    run.counters.turn_ended(failed=True)
    _nudge(run, failure, details)


def _nudge(run: RunState, failure: Failure, details: Mapping[str, object]) -> None:
    number = run.nudges.take()
    if number is None:
        shown_details = ", ".join(f"{key}={value}" for key, value in details.items())
        raise Ended(
            "max_nudges",
            f"Agent failed after {run.nudges.given}. Last failure: {failure.value} — {shown_details or 'no details'}",
        )
    text = nudge_text(failure, details)
    run.nudged.append(failure)
    run.tell(events.Nudged(run.now(), run.job, failure.value, number, run.spec.nudges, text))
    run.conversation.add({"role": ROLE, "content": text})
