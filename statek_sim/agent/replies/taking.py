"""Taking one reply: what it says, with calls written in its text, is executed, answered, or corrected (004 §4)."""

from __future__ import annotations

from statek_sim import trace as events
from statek_sim.agent.batch import Batch
from statek_sim.agent.effects import GuardPoint
from statek_sim.agent.guard_points import guarded
from statek_sim.agent.replies.calls import fail_reply, numbered, shown
from statek_sim.agent.replies.nudges import ROLE, Failure
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.agent.run_state import RunState, Steps
from statek_sim.agent.tools.registry import Offer


def take(run: RunState, reply: ModelReply, offer: Offer) -> Steps:
    """Take a reply: execute its calls, or end the run with its text, or correct the model."""
    if reply.truncated:
        fail_reply(run, reply, reply.calls, Failure.TRUNCATED, {})
        return
    calls, text = reply.calls, reply.text
    reader = run.deps.parts.reader
    if not calls and text and reader is not None:
        reading = reader(text, offer.schemas)
        run.tell(
            events.ReplyRead(
                run.now(),
                run.job,
                run.counters.asked,
                text,
                tuple(reading.stages),
                tuple([shown(call) for call in reading.calls]),
                reading.refused,
            )
        )
        if reading.refused is not None and reading.shown is None:
            fail_reply(run, reply, (), Failure.REFUSED, {"reason": reading.refused})
            return
        if reading.refused is not None and not _corrected(run, Failure.NOT_ALONE):
            details = {"called": reading.shown, "reason": reading.refused}
            fail_reply(run, reply, (), Failure.NOT_ALONE, details)
            return
        if reading.calls:
            calls, text = reading.calls, reading.text
    if not calls:
        yield from _take_text(run, reply, offer)
        return
    yield from Batch(run, reply, text, numbered(calls), offer).go()


def _corrected(run: RunState, failure: Failure) -> bool:
    """Whether the reply answers a nudge for this failure: the conversation ends with it."""
    return run.nudged[-1:] == [failure] and run.conversation.messages[-1]["role"] == ROLE


def _take_text(run: RunState, reply: ModelReply, offer: Offer) -> Steps:
    if not reply.text.strip():
        fail_reply(run, reply, (), Failure.EMPTY, {})
        return
    open_ = run.enforcer.final()
    if open_ is not None:
        fail_reply(run, reply, (), open_.failure, open_.details)
        return
    text = reply.text
    if run.deps.parts.guards:
        ruling = yield from guarded(run, GuardPoint.OUTPUT, text)
        if ruling.blocked is not None:
            fail_reply(run, reply, (), Failure.REFUSED, {"reason": ruling.blocked})
            return
        text = ruling.text
    run.conversation.said(reply, (), reply.text)
    run.finish(text)
