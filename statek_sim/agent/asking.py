"""One request of a run: sent, tried again after temporary failures, metered."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from statek_sim import trace as events
from statek_sim.agent.effects import Answer, AskModel, Effect, LetTimePass
from statek_sim.agent.ending import Ended
from statek_sim.agent.reading import ModelReply, read_model_reply
from statek_sim.errors import ProviderFailure, ProviderHTTPError
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.retry import retry_delay

LONGEST: Final = 60.0
"""Seconds that are waited at most for a provider that says when to ask again."""

if TYPE_CHECKING:
    from statek_sim.agent.loop import AgentRun


def ask_model(run: AgentRun) -> Generator[Effect, Answer, ModelReply]:
    """Send the run's conversation to its model, again after temporary failures; return the answer, metered."""
    run.counters.asked += 1
    request = run.conversation.request(run.job, turn=run.counters.asked, attempt=1, at=run.now())
    kept = run.conversation.kept
    while True:
        messages = request.messages
        run.tell(
            events.LLMRequested(
                request.at,
                run.job,
                request.turn,
                request.attempt,
                request.model,
                request.bytes_sent,
                kept,
                tuple(messages[kept:]),
            )
        )
        answer = yield AskModel(request)
        if isinstance(answer, RawReply):
            return _metered(run, request, answer)
        if not isinstance(answer, ProviderFailure):
            raise TypeError(f"a driver answered AskModel with {answer!r}, expected a RawReply or a failure")
        delay = _delay(run, answer, request.attempt)
        run.tell(events.RequestFailed(run.now(), run.job, request.turn, request.attempt, str(answer), delay))
        if delay is None:
            said = f"{type(answer).__name__}: {answer}"
            raise Ended("crash", said.removesuffix(": "))
        yield LetTimePass(delay)
        kept = len(messages)
        request = run.conversation.request(
            run.job, turn=run.counters.asked, attempt=request.attempt + 1, at=run.now()
        )


def _delay(run: AgentRun, failure: ProviderFailure, attempt: int) -> float | None:
    """Return after how many seconds to ask again, None for never."""
    variant = run.spec.variant
    delay = retry_delay(failure, attempt) if variant.retries_provider else None
    said = failure.retry_after if isinstance(failure, ProviderHTTPError) else None
    if delay is None or said is None or variant.retry_after == "ignored":
        return delay
    return min(said, LONGEST)


def _metered(run: AgentRun, request: ChatRequest, raw: RawReply) -> ModelReply:
    reply = read_model_reply(raw.body, request.wire)
    if reply.unreadable is not None:
        raise Ended("crash", f"the provider's answer cannot be read: {reply.unreadable}")
    usage = run.conversation.metered(request, raw, reply)
    run.counters.replied(usage)
    prompt = usage.reported_prompt if usage.reported_prompt is not None else usage.measured_prompt
    told = usage.reported_completion
    completion = told if told is not None else usage.measured_completion
    over = run.budget.replied(prompt, completion)
    run.tell(
        events.LLMReplied(
            run.now(),
            run.job,
            request.turn,
            usage.bytes_received,
            usage.measured_prompt,
            usage.measured_completion,
            usage.reported_prompt,
            usage.reported_completion,
            reply.text,
            tuple([f"{call.name}({call.arguments})" for call in reply.calls]),
        )
    )
    if over and not run.budget.unlimited:
        run.tell(
            events.HarnessSpoke(
                run.now(), run.job, "budget", "overshoot", f"{over} tokens more than were reserved"
            )
        )
    return reply
