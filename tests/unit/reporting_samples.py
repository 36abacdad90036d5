"""Finished scenarios made by hand, with real sizes: what the reporting tests report on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from statek_sim.backends.call_log import AnsweredCall
from statek_sim.backends.record import JobRecord, RunRecord, UsageRecord
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.result import Mismatch, ScenarioResult
from statek_sim.trace import Event, LLMReplied, LLMRequested
from statek_sim.usage.messages import (
    REPLY_PRIMING,
    body_size,
    completion_tokens,
    envelope_size,
    message_size,
    message_tokens,
    tools_tokens,
)
from statek_sim.usage.token_usage import TurnUsage, UsageTotals
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON, Message, ToolSpec

ONE_CALL: Final = Expect(llm_calls=1)
"""What a scenario expects; nothing holds it against what came."""


@dataclass
class Talk:
    """One job's conversation with a scripted provider, as the runtime would trace and meter it."""

    job: str = "main"
    model: str = "gpt-4o"
    tools: tuple[ToolSpec, ...] = ()
    reported: bool = True
    messages: list[Message] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    calls: list[AnsweredCall] = field(default_factory=list)
    totals: UsageTotals = field(default_factory=UsageTotals)

    def ask(self, *new: Message, kept: int | None = None) -> LLMRequested:
        """Send a request that keeps the first `kept` messages (all by default) and adds `new`."""
        kept = len(self.messages) if kept is None else kept
        self.messages[kept:] = new
        sizes = sum(message_size(message) for message in self.messages)
        size = body_size(envelope_size(self.model, self.tools), sizes, len(self.messages))
        turn = self.totals.turns + 1
        request = LLMRequested(0.0, self.job, turn, 1, self.model, size, kept, new)
        self.events.append(request)
        return request

    def turn(self, *new: Message, reply: str = "pass", kept: int | None = None) -> Talk:
        """Send a request and get `reply` in a body of 200 bytes more."""
        request = self.ask(*new, kept=kept)
        model = tokenizer_for_model(self.model)
        prompt = sum(message_tokens(message, model.tokenizer) for message in self.messages)
        prompt += tools_tokens(self.tools, model.tokenizer) + REPLY_PRIMING
        completion = completion_tokens(reply, None, model.tokenizer)
        told_prompt, told_completion = (prompt, completion) if self.reported else (None, None)
        received = len(reply.encode()) + 200
        usage = TurnUsage(
            request.bytes_sent,
            received,
            prompt,
            completion,
            told_prompt,
            told_completion,
            None,
            None,
            model.label,
        )
        self.totals.add(usage)
        answer = {"choices": [{"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}]}
        self.calls.append(
            AnsweredCall(
                job=self.job,
                turn=request.turn,
                model=self.model,
                provider="OPENAI",
                wire="openai",
                tools=self.tools,
                body=json.dumps(answer).encode(),
                usage=usage,
            )
        )
        self.events.append(
            LLMReplied(
                0.0,
                self.job,
                request.turn,
                received,
                prompt,
                completion,
                told_prompt,
                told_completion,
                reply,
                (),
            )
        )
        return self


def said(role: str, text: str) -> Message:
    """Return one plain message."""
    return {"role": role, "content": text}


def tool_spec(name: str) -> ToolSpec:
    """Return a tool with one argument."""
    schema: JSON = {"type": "object", "properties": {"owner": {"type": "string"}}, "required": ["owner"]}
    function: JSON = {"name": name, "description": f"Do {name} for the owner.", "parameters": schema}
    return {"type": "function", "function": function}


def job(talk: Talk, *, exit_value: JSON = None, status: str = "DONE", error: str | None = None) -> JobRecord:
    """Return the job that held `talk`."""
    return JobRecord(
        name=talk.job,
        agent="worker",
        status=status,
        stop="exit" if status == "DONE" else None,
        exit=exit_value,
        error=error,
        definition_errors=(),
        llm_calls=sum(isinstance(event, LLMRequested) for event in talk.events),
        turns=talk.totals.turns,
        exceptions=0,
        streak=0,
        completions=None,
        steps=talk.totals.turns,
        console=(),
        locals={},
        history=tuple(talk.messages),
        tool_log=(),
        tool_calls=(),
        handlers=(),
        delivered=(),
        subtasks={},
        usage=UsageRecord(**talk.totals.as_dict()),  # type: ignore[arg-type]  # the same fields
    )


def result(
    name: str,
    *talks: Talk,
    profile: str = "docs",
    mismatches: Sequence[Mismatch] = (),
    exit_value: JSON = None,
    seconds: float = 0.25,
    expects: Expect = ONE_CALL,
) -> ScenarioResult:
    """Return `suite/id` run under `profile` with one job for each of `talks`."""
    suite, _, scenario_id = name.partition("/")
    totals = UsageTotals()
    for talk in talks:
        totals.merge(talk.totals)
    place = {"suite": suite, "path": Path(f"scenarios/{suite}/all.yaml"), "line": 3, "file_digest": "0" * 64}
    record = RunRecord(
        scenario=scenario_id,
        profile=profile,
        seed=0,
        backend="reference",
        jobs={talk.job: job(talk, exit_value=exit_value) for talk in talks},
        handlers=(),
        items={},
        leaked_claims=(),
        ledger=(),
        llm_calls=sum(isinstance(event, LLMRequested) for talk in talks for event in talk.events),
        idle=False,
        settled=True,
        worker=None,
        usage=UsageRecord(**totals.as_dict()),  # type: ignore[arg-type]  # the same fields
        digest=hashlib.sha256(f"{name} {profile}".encode()).hexdigest(),
        events=[event for talk in talks for event in talk.events],
        calls=tuple(call for talk in talks for call in talk.calls),
    )
    return ScenarioResult(
        scenario=Scenario.model_construct(
            id=scenario_id,
            title="What it shows.",
            expect=expects,
            **place,  # type: ignore[arg-type]
        ),
        profile=profile,
        record=record,
        mismatches=tuple(mismatches),
        seconds=seconds,
    )


def with_usage(sample: ScenarioResult, usage: UsageRecord) -> ScenarioResult:
    """Return `sample` with other totals, which its events do not explain."""
    return replace(sample, record=replace(sample.record, usage=usage))


def english(turns: int = 3, job_name: str = "main") -> Talk:
    """Return a conversation in English that sends its history again each turn."""
    talk = Talk(job_name)
    talk.turn(said("system", "You work through the queue, one item after another."))
    for number in range(1, turns):
        talk.turn(said("assistant", "item = fetch_next_item(owner)"), said("user", f"step {number} is done"))
    return talk


def chinese() -> Talk:
    """Return a conversation whose text the estimate counts at six bytes a character."""
    return Talk().turn(said("user", "请把下一个工作项分配给我并在完成后报告结果" * 12))


def digits() -> Talk:
    """Return a conversation of short tokens."""
    rows = ",".join(f"[{n * 7919 % 1000},{n * 104729 % 997},{n}]" for n in range(200))
    return Talk().turn(said("tool", rows))


def tooled() -> Talk:
    """Return a short conversation under many tools."""
    specs = tuple(tool_spec(f"tool_number_{number}") for number in range(16))
    return Talk(tools=specs).turn(said("user", "go on"))
