"""Sends a run's requests, retrying after temporary failures, and meters them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Final

from statek_sim import trace as events
from statek_sim.agent.budget import Ended
from statek_sim.agent.conversation import turn_usage
from statek_sim.agent.effects import Answer, AskModel, Effect, LetTimePass, TextWanted
from statek_sim.agent.replies.model_reply import ModelReply, read_model_reply
from statek_sim.agent.run_state import RunState
from statek_sim.errors import ProviderFailure, ProviderHTTPError
from statek_sim.providers.protocol import ChatRequest, RawReply, retry_delay
from statek_sim.usage.messages import REPLY_PRIMING
from statek_sim.usage.token_usage import TurnUsage

LONGEST: Final = 60.0
"""The maximum number of seconds to wait if a provider specifies when to retry."""


def ask_model(run: RunState) -> Generator[Effect, Answer, ModelReply]:
    """Send the run's conversation to its model, retrying after temporary failures; return the metered answer."""
    run.counters.asked += 1
    sent: int | None = None

    def request(attempt: int) -> tuple[ChatRequest, int]:
        nonlocal sent
        made = run.conversation.request(run.job, turn=run.counters.asked, attempt=attempt, at=run.now())
        # A retry shares all messages with the previous request.
        kept = run.conversation.kept if sent is None else sent
        sent = len(made.messages)
        return made, kept

    request_sent, answer = yield from exchange(run, request)
    if isinstance(answer, ProviderFailure):
        raise Ended("crash", f"{type(answer).__name__}: {answer}".removesuffix(": ")) from answer
    return _metered(run, request_sent, answer)


def exchange(
    run: RunState, request: Callable[[int], tuple[ChatRequest, int]]
) -> Generator[Effect, Answer, tuple[ChatRequest, RawReply | ProviderFailure]]:
    """Send a request, retrying after temporary failures; return the last request and its result.

    `request` takes the attempt number, from 1, and returns its request and how many of its messages were already sent.
    All of a run's model requests go through this function, so that they are traced and retried alike.
    """
    attempt = 1
    while True:
        made, kept = request(attempt)
        run.tell(
            events.LLMRequested(
                made.at,
                run.job,
                made.turn,
                made.attempt,
                made.model,
                made.bytes_sent,
                kept,
                tuple(made.messages[kept:]),
            )
        )
        answer = yield AskModel(made)
        if isinstance(answer, RawReply):
            return made, answer
        if not isinstance(answer, ProviderFailure):
            raise TypeError(f"a driver answered AskModel with {answer!r}, expected a RawReply or a failure")
        delay = _delay(run, answer, attempt)
        run.tell(events.RequestFailed(run.now(), run.job, made.turn, attempt, str(answer), delay))
        if delay is None:
            return made, answer
        yield LetTimePass(delay)
        attempt += 1


def _delay(run: RunState, failure: ProviderFailure, attempt: int) -> float | None:
    """Return the seconds until the next retry, or None to give up."""
    delay = retry_delay(failure, attempt) if run.spec.retry_provider else None
    wanted = failure.retry_after if isinstance(failure, ProviderHTTPError) else None
    if delay is None or wanted is None:
        return delay
    return min(wanted, LONGEST)


def _metered(run: RunState, request: ChatRequest, raw: RawReply) -> ModelReply:
    reply = read_model_reply(raw.body, request.wire)
    if reply.unreadable is not None:
        raise Ended("crash", f"the provider's answer cannot be read: {reply.unreadable}")
    usage = run.conversation.metered(request, raw, reply)
    run.counters.replied(usage)
    calls = tuple([f"{call.name}({call.arguments})" for call in reply.calls])
    over = charge(run, request, usage, reply.text, calls)
    if over and not run.budget.unlimited:
        run.tell(
            events.HarnessSpoke(
                run.now(), run.job, "budget", "overshoot", f"{over} tokens more than were reserved"
            )
        )
    return reply


def charge(run: RunState, request: ChatRequest, usage: TurnUsage, text: str, calls: tuple[str, ...]) -> int:
    """Record an answer and charge it to the budget; return the tokens over budget.

    Reported usage takes precedence over measured usage.
    """
    prompt = usage.reported_prompt if usage.reported_prompt is not None else usage.measured_prompt
    reported = usage.reported_completion
    over = run.budget.replied(
        prompt, reported if reported is not None else usage.measured_completion, model=request.model
    )
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
            text,
            calls,
        )
    )
    return over


# -- additional models -------------------------------------------------------------------------------------------


def ask_side_model(
    run: RunState, wanted: TextWanted, *, part: str, missing: str, then_asks: bool = True
) -> Generator[Effect, Answer, str | None]:
    """Return an additional model's text, or None if the request fails or exceeds the budget.

    Like any other request in the run, it is part of the trace, the usage and the budget, but it is not a turn. If there
    is no text, the trace contains `part`, `missing` and the reason. With `then_asks`, the budget must also have room
    for the agent's own next request.
    """
    meter = run.deps.envelopes.meter(wanted.by.model)
    prompt = sum(meter.measure(message)[1] for message in wanted.messages) + REPLY_PRIMING
    over = None
    if not run.budget.unlimited:
        room = prompt + (run.conversation.prompt_tokens if then_asks else 0)
        over = run.budget.before_request(room, at=run.now(), requests=1 + then_asks, model=wanted.by.model)
    if over is not None:
        run.tell(events.HarnessSpoke(run.now(), run.job, part, missing, f"{over.name.value}: {over}"))
        return None
    run.counters.asked += 1

    def request(attempt: int) -> tuple[ChatRequest, int]:
        run.conversation.interrupted()
        return _side_request(run, wanted, attempt), 0

    request_sent, answer = yield from exchange(run, request)
    if isinstance(answer, ProviderFailure):
        return None
    reply = read_model_reply(answer.body, wanted.by.wire)
    _meter_side_reply(run, request_sent, answer, reply, prompt)
    if reply.unreadable is not None:
        run.tell(events.HarnessSpoke(run.now(), run.job, part, missing, f"unreadable: {reply.unreadable}"))
        return None
    if reply.truncated or reply.calls:
        why = "it was cut off" if reply.truncated else "it calls tools"
        run.tell(events.HarnessSpoke(run.now(), run.job, part, missing, why))
        return None
    return reply.text


def _side_request(run: RunState, wanted: TextWanted, attempt: int) -> ChatRequest:
    by = wanted.by
    request = ChatRequest(
        job_id=run.job,
        role=by.role,
        turn=run.counters.asked,
        attempt=attempt,
        at=run.now(),
        model=by.model,
        messages=wanted.messages,
        tools=(),
        temperature=by.temperature,
        bytes_sent=0,
        provider=by.provider or run.spec.provider,
        wire=by.wire,
        options=replace(run.deps.envelopes.options, max_tokens=wanted.max_tokens),
        ends_by="text",
    )
    return replace(request, bytes_sent=len(json.dumps(request.body())))


def _meter_side_reply(
    run: RunState, request: ChatRequest, raw: RawReply, reply: ModelReply, prompt: int
) -> None:
    """Meter an answer. If unreadable, its whole body is counted, because it was generated and must be paid for."""
    if reply.unreadable is not None:
        reply = replace(reply, text=raw.body.decode("utf-8", "replace"))
    tokenizer = run.deps.envelopes.meter(request.model).model_tokenizer
    usage = turn_usage(request, raw, reply, prompt, tokenizer)
    run.counters.metered(usage)
    charge(run, request, usage, reply.text, ())
