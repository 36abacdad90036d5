"""The loop's part of making a history shorter (004 §5): asked before every request, summaries are asked of a model."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from statek_sim import trace as events
from statek_sim.agent.asking import charge, exchange
from statek_sim.agent.conversation import turn_usage
from statek_sim.agent.effects import Answer, Compaction, Effect, SummaryWanted
from statek_sim.agent.ending import Ended
from statek_sim.agent.reading import ModelReply, read_model_reply
from statek_sim.errors import CompactionFailed, ContextOverflow, ProviderFailure
from statek_sim.metering.messages import REPLY_PRIMING
from statek_sim.metering.wire import body_size, envelope_size, message_size
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.values import in_common

if TYPE_CHECKING:
    from statek_sim.agent.loop import AgentRun

_PART: Final = "context"


def compact(run: AgentRun) -> Generator[Effect, Answer, None]:
    """Ask the run's compactor whether its history should be shorter, and put what it gives in its place.

    Ends the run, before the provider is asked, with `context_overflow` where it cannot be made to fit.
    """
    compactor = run.around.parts.compactor
    if compactor is None or not run.spec.variant.compacts:
        return
    before, tokens = run.conversation.messages, run.conversation.prompt_tokens
    try:
        told = compactor(before, tokens=tokens)
        made = (yield from _with_summaries(run, told)) if isinstance(told, Generator) else told
    except ContextOverflow as over:
        raise Ended("context_overflow", str(over)) from over
    except CompactionFailed as failed:
        raise Ended("crash", str(failed)) from failed
    if made is None:
        return
    run.conversation.replace(made.messages)
    kept = in_common(before, made.messages)
    run.tell(
        events.Compacted(
            run.now(),
            run.job,
            made.strategy,
            len(before),
            len(made.messages),
            tokens,
            run.conversation.prompt_tokens,
            made.cleared,
            made.summarised,
            made.dropped,
            made.cut,
            kept,
            run.conversation.tokens_of(kept),
        )
    )


def _with_summaries(
    run: AgentRun, steps: Generator[SummaryWanted, str | None, Compaction | None]
) -> Generator[Effect, Answer, Compaction | None]:
    try:
        wanted = next(steps)
        while True:
            text = yield from _summary(run, wanted)
            wanted = steps.send(text)
    except StopIteration as end:
        made: Compaction | None = end.value
        return made
    finally:
        steps.close()


def _summary(run: AgentRun, wanted: SummaryWanted) -> Generator[Effect, Answer, str | None]:
    """Return a model's summary, None where it fails or the budget has no room for asking it.

    It is a request of the run like any other: in its trace, its usage and its budget, but no turn.
    """
    meter = run.around.envelopes.meter(wanted.by.model)
    prompt = sum(meter.measure(message)[1] for message in wanted.messages) + REPLY_PRIMING
    over = None
    if not run.budget.unlimited:
        both = prompt + run.conversation.prompt_tokens
        over = run.budget.before_request(both, at=run.now(), requests=2)
    if over is not None:
        run.tell(events.HarnessSpoke(run.now(), run.job, _PART, "no summary", f"{over.name.value}: {over}"))
        return None
    run.counters.asked += 1

    def request(attempt: int) -> tuple[ChatRequest, int]:
        run.conversation.interrupted()
        return _request(run, wanted, attempt), 0

    asked, answer = yield from exchange(run, request)
    if isinstance(answer, ProviderFailure):
        return None
    reply = read_model_reply(answer.body, wanted.by.wire)
    if reply.unreadable is not None:
        run.tell(
            events.HarnessSpoke(run.now(), run.job, _PART, "no summary", f"unreadable: {reply.unreadable}")
        )
        return None
    _meter(run, asked, answer, reply, prompt)
    if reply.truncated or reply.calls:
        why = "it was cut off" if reply.truncated else "it calls tools"
        run.tell(events.HarnessSpoke(run.now(), run.job, _PART, "no summary", why))
        return None
    return reply.text


def _request(run: AgentRun, wanted: SummaryWanted, attempt: int) -> ChatRequest:
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
        bytes_sent=_size(wanted),
        provider=by.provider or run.spec.provider,
        wire=by.wire,
        options=run.around.envelopes.options,
        ends_by="text",
    )
    return request if by.wire == "openai" else _measured(request)


def _size(wanted: SummaryWanted) -> int:
    envelope = envelope_size(wanted.by.model, (), wanted.by.temperature)
    return body_size(envelope, sum(map(message_size, wanted.messages)), len(wanted.messages))


def _measured(request: ChatRequest) -> ChatRequest:
    return replace(request, bytes_sent=len(json.dumps(request.body())))


def _meter(run: AgentRun, request: ChatRequest, raw: RawReply, reply: ModelReply, prompt: int) -> None:
    tokenizer = run.around.envelopes.meter(request.model).model_tokenizer
    usage = turn_usage(request, raw, reply, prompt, tokenizer)
    run.counters.metered(usage)
    charge(run, request, usage, reply.text, ())
