"""The model request within a step, from building the request to storing the reply (behaviour 2, 5, 6)."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.errors import FAILS_THE_RUN, ProviderFailure
from statek_sim.providers.protocol import ChatRequest, RawReply, ask, retry_delay
from statek_sim.providers.wire.format import FAKE_URLS, FORMATS
from statek_sim.providers.wire.reply import ParsedReply, ReportedUsage
from statek_sim.providers.wire.request import ClientOptions, WireRequest
from statek_sim.runtime.agents.agent import RecurringReminder
from statek_sim.runtime.agents.dialog import deliver
from statek_sim.runtime.execution.services import Envelope, Services
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.post_processing import is_final, processed
from statek_sim.runtime.state.chat_log import (
    CallSpec,
    CodeBlock,
    LLM_LogItem,
    Reasoning,
    ReminderLogItem,
    stored_call,
)
from statek_sim.runtime.state.chat_style import ChatStyle, extract_dialog, strip_markup
from statek_sim.runtime.state.pyenv import ErrorKind
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.block_end import PREDICTED_RELEASE, Remark, refused_because
from statek_sim.runtime.stored.containers import stored_text
from statek_sim.runtime.stored.ordering import in_store_order
from statek_sim.usage.conversation import MeteredConversation
from statek_sim.usage.messages import REPLY_PRIMING, body_size, completion_tokens
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.values import JSON, Message, in_common

REPLY_OVER: Final = frozenset({"reply stored", "reply held back"})
"""Trace points that end the handling of a reply: the reply was stored, or withheld by a post-processor."""


def ask_model(services: Services, job: Job) -> Generator[float | Running, None, None]:
    """Send a job's conversation to its model and store the reply.

    The generator yields virtual seconds to wait, or an async `send_message`'s tasks that must finish.
    """
    if services.profile.notifications_before_request:
        job.inbox.flush()
    if not services.profile.message_may_end_chat_log:
        # 1.2.5 looks up the provider, checks the newest item, and only then reads the rest of the agent's metadata.
        services.wire_of(job)
        job.job_log.newest_position()
    envelope = services.envelope(job)
    prompt_tokens = job.history.refresh(job).tokens + envelope.tools_tokens + REPLY_PRIMING
    request, raw = yield from _send(services, job, envelope)
    if raw.latency:
        yield raw.latency
    reply = FORMATS[envelope.wire].read_reply(raw.body)
    _meter(services, job, request, raw, reply, prompt_tokens, envelope)
    yield from _take(services, job, reply, envelope.provider)


def _send(
    services: Services, job: Job, envelope: Envelope
) -> Generator[float, None, tuple[ChatRequest, RawReply]]:
    """Send the request until an attempt succeeds; yields the virtual seconds between and during failed attempts.

    Failed attempts do not count as usage. Raises `ProviderFailure` when no further attempt is allowed.
    """
    job.llm_calls += 1
    turn, kept = job.llm_calls, job.history.take_kept()
    messages, size = _as_sent(job.history.current, envelope, services.client_options)
    if envelope.wire != "openai" or kept == 0:
        # The number of unchanged messages is unknown: the format is not OpenAI's, or the history was rebuilt.
        kept = in_common(job.sent, messages)
    job.sent = messages
    attempt = 1
    while True:
        now = services.clock.now()
        request = ChatRequest(
            job_id=job.id,
            role=job.agent.role,
            turn=turn,
            attempt=attempt,
            at=now,
            model=envelope.model,
            messages=messages,
            tools=envelope.tools,
            temperature=envelope.temperature,
            bytes_sent=size,
            chat_style=None if job.chat_style is None else job.chat_style.value,
            provider=envelope.provider,
            wire=envelope.wire,
            options=services.client_options,
        )
        services.trace.add(
            events.LLMRequested(
                now, job.id, turn, attempt, envelope.model, size, kept, tuple(messages[kept:])
            )
        )
        try:
            return request, ask(services.provider, request)
        except ProviderFailure as failure:
            delay = retry_delay(failure, attempt)
            if failure.latency:
                yield failure.latency
            at = services.clock.now()
            services.trace.add(events.RequestFailed(at, job.id, turn, attempt, str(failure), delay))
            if delay is None:
                raise
            yield delay
        attempt, kept = attempt + 1, len(messages)


def _as_sent(
    conversation: MeteredConversation, envelope: Envelope, options: ClientOptions
) -> tuple[Sequence[Message], int]:
    """Return the messages as the provider receives them, and the number of bytes that STATEK counts for the request.

    In formats other than OpenAI's, tool results are merged and notices are dropped, so the messages cannot be
    measured one by one. Such requests are built and measured as a whole.
    """
    messages = conversation.view()
    if envelope.wire == "openai":
        return messages, body_size(envelope.size, conversation.messages_json, len(conversation))
    wire = FORMATS[envelope.wire]
    body = wire.request_body(
        WireRequest(
            model=envelope.model,
            messages=messages[:],
            tools=envelope.tools,
            temperature=envelope.temperature,
        ),
        options,
    )
    url = wire.request_url(FAKE_URLS[envelope.wire], envelope.model)
    return list(wire.read_request(body, url).messages), len(json.dumps(body))


def _meter(
    services: Services,
    job: Job,
    request: ChatRequest,
    raw: RawReply,
    reply: ParsedReply,
    prompt_tokens: int,
    envelope: Envelope,
) -> None:
    measured = completion_tokens(reply.text, _wire_calls(reply), envelope.tokenizer.tokenizer)
    usage = reply.usage
    prompt, completion, cached = _reported(usage)
    job.usage.add(
        TurnUsage(
            request.bytes_sent,
            len(raw.body),
            prompt_tokens,
            measured,
            prompt,
            completion,
            cached,
            usage.cost,
            envelope.tokenizer.label,
        )
    )
    _check_reported(usage)
    services.trace.add(
        events.LLMReplied(
            services.clock.now(),
            job.id,
            request.turn,
            len(raw.body),
            prompt_tokens,
            measured,
            prompt,
            completion,
            reply.text,
            tuple(f"{call.name}({call.arguments!r})" for call in reply.tool_calls),
        )
    )


def _reported(usage: ReportedUsage) -> tuple[int | None, int | None, int | None]:
    """Return the reported prompt, completion and cached tokens; once a count is missing, all later counts are None."""
    if not usage.present or usage.prompt is None:
        return None, None, None
    if usage.completion is None:
        return usage.prompt, None, None
    return usage.prompt, usage.completion, usage.cached


def _check_reported(usage: ReportedUsage) -> None:
    """Raise STATEK's TypeError for a missing token count, which STATEK adds to a total after counting bytes."""
    if usage.prompt is None or usage.completion is None or usage.cached is None:
        raise TypeError("unsupported operand type(s) for +=: 'int' and 'NoneType'")


def _wire_calls(reply: ParsedReply) -> list[JSON]:
    """Return a reply's tool calls in OpenAI's format, for the tokenizer to measure."""
    return [
        {"function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)}}
        for call in reply.tool_calls
    ]


def _take(services: Services, job: Job, reply: ParsedReply, provider: str) -> Generator[Running, None, None]:
    """Store the reply, deliver dialog text to the user, and finish the unit of work after a final reply."""
    touched = False
    if job.job_def.processors:
        left, touched = processed(job, reply)
        if left is None:
            # A reply withheld by a post-processor counts as usage, but is never stored.
            services.trace.passed("reply held back", job.id)
            services.harness.check_after_step(job)
            return
        reply = left
    stored = _as_stored(job, stored_response(job.chat_style, reply))
    job.log(
        LLM_LogItem(
            job.console_pos,
            job.host.timestamp(),
            stored,
            cumulative_token_usage=job.approx_token_usage,
            llm_reasoning_payload=_reasoning(job, reply, provider),
            request_difficulty=job.raised_difficulty,
        )
    )
    services.trace.passed("reply stored", job.id)
    delivered = True
    if job.chat_style in (ChatStyle.MD_DIALOG, ChatStyle.DIRECT):
        try:
            yield from deliver(job, reply.text)
        except FAILS_THE_RUN:
            raise
        except Exception as error:  # noqa: BLE001  # the user's send_message
            job.console_append(f"{type(error).__name__}: {error}", ErrorKind.EXECUTION)
            delivered = False
    if delivered and not touched and is_final(job.chat_style, reply.text, calls=bool(reply.tool_calls)):
        _finish_final(services, job)
    else:
        services.harness.check_after_step(job)


def _finish_final(services: Services, job: Job) -> None:
    """Finish the unit of work after a final text, unless a reminder is due or a notification is pending."""
    reminder = getattr(job.agent, "reminder", None)
    if reminder is not None and _reminded(job, reminder):
        services.harness.check_after_step(job)
        return
    if job.inbox.flush():
        job.py_env.exit_status = None
        services.harness.check_after_step(job)
        return
    services.harness.check_after_step(job)
    job.py_env.exit_status = None
    job.life.finish("final")
    job.job_log.newest_position()


def _reminded(job: Job, reminder: RecurringReminder) -> bool:
    """If a reminder is due, log it so that the dialog continues. Return whether a reminder was due."""
    if not reminder.fire_ready(job):
        return False
    job.log(ReminderLogItem(job.console_pos, job.host.timestamp(), reminder))
    job.console_append(reminder.text)
    return True


def _reasoning(job: Job, reply: ParsedReply, provider: str) -> Reasoning | None:
    if not reply.reasoning:
        return None
    fields = reply.reasoning
    return Reasoning(provider.casefold(), _in_key_order(fields) if job.py_env.stores else fields)


def _in_key_order(value: Any) -> Any:
    """Return a JSON value with the keys of all objects in the store's order."""
    if isinstance(value, Mapping):
        return {key: _in_key_order(value[key]) for key in in_store_order(value)}
    return [_in_key_order(item) for item in value] if isinstance(value, list) else value


def _as_stored(job: Job, response: str | CodeBlock | None) -> str | CodeBlock | None:
    """Return a response in stored form; raises the store's error if it rejects a call's arguments."""
    if not isinstance(response, CodeBlock):
        return response if response is None or not job.py_env.stores else stored_text(response)
    calls = []
    for call in response.tool_calls:
        try:
            calls.append(stored_call(call))
        except Exception as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            remark = Remark(f"arguments of {call.func_name}", "lost", refused_because(cause))
            job.keeping.remark([remark], None if job.py_env.stores else PREDICTED_RELEASE)
            if job.py_env.stores:
                raise
    return replace(response, tool_calls=tuple(calls)) if job.py_env.stores else response


def stored_response(style: ChatStyle | None, reply: ParsedReply) -> str | CodeBlock | None:
    """Return the response for the chat log: code or text, with any tool calls (behaviour 6.2)."""
    strict = style in (ChatStyle.MARKDOWN, ChatStyle.MD_DIALOG)
    if not reply.tool_calls:
        if style is ChatStyle.DIRECT:
            return extract_dialog(reply.text)
        return strip_markup(reply.text, strict=strict)
    if style is ChatStyle.DIRECT:
        code = extract_dialog(reply.text)
    else:
        code = strip_markup(reply.text, strict=True) if strict else reply.text
    calls = tuple(CallSpec(call.id, call.name, [], call.arguments) for call in reply.tool_calls)
    return CodeBlock(code or None, calls)
