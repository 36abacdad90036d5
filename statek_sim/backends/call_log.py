"""The log of a run's LLM calls, for analysing bytes, tokens and prices."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from statek_sim.errors import InvalidFormat, StatekSimError
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.request import FormatName
from statek_sim.runtime.execution.services import upstream
from statek_sim.runtime.jobs.job import Job
from statek_sim.usage.messages import model_text
from statek_sim.usage.pricing import PriceList, Tokens, provider_cost
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.values import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """An answered and metered LLM call: the request, the raw answer and STATEK's counts.

    The messages are in the trace: a call contains all messages that its `LLMRequested` event kept and added.
    `provider` determines the prices. STATEK takes the provider from the model string, else from the agent's
    PROVIDER, else from the default (behaviour 11). `turn` is one-based and counts all of the job's calls,
    answered or not.
    """

    job: str
    turn: int
    model: str
    provider: str
    wire: FormatName
    tools: tuple[ToolSpec, ...]
    body: bytes
    usage: TurnUsage


class CallLog:
    """A provider that forwards every request to another provider and records the answers."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._seen: defaultdict[str, list[tuple[ChatRequest, bytes]]] = defaultdict(list)

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the provider's answer and record it with its request; failed requests are not recorded."""
        reply = self._provider.complete(request)
        self._seen[request.job_id].append((request, reply.body))
        return reply

    def answered(self, jobs: Iterable[Job], *, default_provider: str) -> tuple[AnsweredCall, ...]:
        """Return the metered calls, in the order of `jobs`, then in the order in which they were made.

        `default_provider` is used if neither the model nor the agent names a provider. Answers that STATEK
        could not read are left out, because they were never metered (behaviour 5).
        """
        return tuple(
            call
            for job in jobs
            if job.usage.turns
            for call in self.answered_of(job.id, job.usage.turns, _provider_of(job, default_provider))
        )

    def answered_of(self, job: str, turns: Iterable[TurnUsage], provider: str) -> Iterator[AnsweredCall]:
        """Yield a job's calls, one for each of its `turns`, with the prices for `provider`."""
        seen = iter(self._seen[job])
        for usage in turns:
            request, body = next(pair for pair in seen if _fits(usage, *pair))
            yield AnsweredCall(
                job=job,
                turn=request.turn,
                model=request.model,
                provider=provider,
                wire=request.wire,
                tools=request.tools,
                body=body,
                usage=usage,
            )


def reply_texts(call: AnsweredCall) -> tuple[str, ...]:
    """Return an answer's measured strings: the model's text, then each tool call's name and arguments."""
    try:
        reply = FORMATS[call.wire].read_reply(call.body)
    except InvalidFormat:
        # A call that STATEK cannot read ends its job; the tool-calling agent continues, and has metered it.
        from statek_sim.agent.replies.model_reply import read_model_reply  # noqa: PLC0415  # brings engine two

        model_reply = read_model_reply(call.body, call.wire)
        return (
            model_reply.text,
            *(part for tool_call in model_reply.calls for part in (tool_call.name, tool_call.arguments)),
        )
    calls = (
        # A provider may omit the name, or send something else instead.
        part
        for tool_call in reply.tool_calls
        for part in (model_text(tool_call.name), json.dumps(tool_call.arguments, ensure_ascii=False))
    )
    return (reply.text, *calls)


def billed(call: AnsweredCall, prices: PriceList) -> Decimal | None:
    """Return a call's price in US dollars, or None for a model without a price.

    Uses the provider's reported tokens if there are any, otherwise the measured tokens.
    """
    usage = call.usage
    found = prices.find(call.provider, call.model)
    if not found:
        return None
    if usage.reported_tokens:
        tokens = Tokens(
            prompt=usage.reported_prompt or 0,
            completion=usage.reported_completion or 0,
            cached=usage.reported_cached or 0,
        )
    else:
        tokens = Tokens(prompt=usage.measured_prompt, completion=usage.measured_completion, cached=0)
    return provider_cost(found[0], tokens, call.provider)


def _fits(usage: TurnUsage, request: ChatRequest, body: bytes) -> bool:
    return usage.bytes_sent == request.bytes_sent and usage.bytes_received == len(body)


def _provider_of(job: Job, default: str) -> str:
    """Return the name of a job's provider, in upper case."""
    try:
        return upstream(job, default)[0].upper()
    except StatekSimError:
        # The job's model was changed to an unknown model after the answer.
        return default.upper()
