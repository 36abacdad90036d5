from __future__ import annotations

import asyncio

import pytest

from statek_sim import Agent, DialogAgent, Runtime, ScriptedLLM, code, fault, raw, text, timeout, tool_call
from statek_sim.providers.wire.openai import read_reply
from statek_sim.providers.wire.reply import ParsedReply
from statek_sim.runtime.execution.model_request import stored_response
from statek_sim.runtime.jobs.post_processing import is_final
from statek_sim.runtime.state.chat_log import CodeBlock
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.trace import LLMReplied, LLMRequested, RequestFailed
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, idle_runtime, run_one

PYTHON = "Some words.\n```python\nx = 1\n```"


def reply(content: str | None, *, calls: bool = False) -> ParsedReply:
    call = '{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}'
    said = "null" if content is None else f'"{content}"'.replace("\n", "\\n")
    tools = f', "tool_calls": [{call}]' if calls else ""
    return read_reply(f'{{"choices": [{{"message": {{"content": {said}{tools}}}}}]}}'.encode())


@pytest.mark.parametrize("style", [None, ChatStyle.CONSOLE])
def test_words_without_a_fence_are_code_outside_of_strict_styles(style: ChatStyle | None) -> None:
    assert stored_response(style, reply("x = 1")) == "x = 1"


@pytest.mark.parametrize("style", [ChatStyle.MARKDOWN, ChatStyle.MD_DIALOG])
def test_words_without_a_fence_are_comments_in_strict_styles(style: ChatStyle) -> None:
    assert stored_response(style, reply("x = 1")) == "# x = 1"


def test_a_reply_with_calls_is_kept_as_a_block() -> None:
    stored = stored_response(ChatStyle.MARKDOWN, reply(PYTHON, calls=True))
    assert isinstance(stored, CodeBlock)
    assert [call.func_name for call in stored.tool_calls] == ["f"]
    assert stored.code == "# Some words.\nx = 1"


@table_test(
    ("style", "content", "calls", "final"),
    [
        (ChatStyle.DIRECT, "Done.", False, True),
        (ChatStyle.DIRECT, None, False, True),
        (ChatStyle.DIRECT, "Done.", True, False),
        (ChatStyle.MD_DIALOG, "Done.", False, True),
        (ChatStyle.MD_DIALOG, PYTHON, False, False),
        (ChatStyle.MD_DIALOG, "Done.", True, False),
        (ChatStyle.MARKDOWN, "Done.", False, False),
        (ChatStyle.CONSOLE, "Done.", False, False),
        (None, "Done.", False, False),
    ],
)
def test_only_text_in_a_dialog_style_is_final(
    style: ChatStyle | None, content: str | None, calls: bool, final: bool
) -> None:
    assert is_final(style, content or "", calls=calls) is final


def test_a_reply_takes_its_latency_of_virtual_time() -> None:
    job = run_one(code("x = 1").after(2.5), code("exit(1)").after(1))
    assert [event.at for event in job.trace.requests()] == [0.0, 2.5]
    assert [event.at for event in job.trace.of_type(LLMReplied)] == [2.5, 3.5]


def test_temporary_failures_are_asked_again_after_three_and_fifteen_seconds() -> None:
    job = run_one(fault(503), timeout(), "exit(1)")
    assert [(event.attempt, event.at) for event in job.trace.requests()] == [(1, 0.0), (2, 3.0), (3, 78.0)]
    assert [event.retry_in for event in job.trace.of_type(RequestFailed)] == [3.0, 15.0]
    assert (job.llm_calls, job.num_turns) == (1, 1)


def test_a_third_failure_ends_the_job() -> None:
    job = run_one(fault(500), fault(500), fault(500))
    assert (job.stop_reason, job.trace.of_type(RequestFailed)[-1].retry_in) == ("crash", None)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_permanent_failure_is_not_asked_again(status: int) -> None:
    job = run_one(fault(status))
    assert (job.stop_reason, len(job.trace.requests()), job.usage.total_bytes_sent) == ("crash", 1, 0)


def test_a_body_that_is_no_answer_ends_the_job_and_is_not_metered() -> None:
    job = run_one(raw("nonsense"))
    assert (job.stop_reason, job.usage.total_bytes_received, job.num_turns) == ("crash", 0, 0)


def test_a_null_token_count_ends_the_job_after_its_bytes_are_counted() -> None:
    job = run_one(code("x = 1").reporting(prompt=None))
    assert job.error is not None
    assert job.error.error_message == "unsupported operand type(s) for +=: 'int' and 'NoneType'"
    assert job.usage.total_bytes_sent == job.trace.requests()[0].bytes_sent


def test_a_request_says_what_is_new_since_the_one_before() -> None:
    job = run_one("print('a')", "exit(1)")
    first, second = job.trace.requests()
    assert (first.kept, len(first.new)) == (0, 0)
    assert [message["role"] for message in second.new] == ["assistant", "user"]


def test_a_retry_carries_nothing_new() -> None:
    runtime = Runtime(ScriptedLLM([fault(429), "exit(1)"]), harness=UNLIMITED)
    job = runtime.create_job(Agent("worker", "Prompt."))
    runtime.run()
    assert [(event.kept, len(event.new)) for event in job.trace.of_type(LLMRequested)] == [(0, 1), (1, 0)]


def test_an_async_send_message_takes_its_time() -> None:
    async def send_message(body: str, media: str | None = None) -> None:
        await asyncio.sleep(3)

    runtime = idle_runtime(script=[text("hello")])
    runtime.create_job(DialogAgent(send_message), message="hi")
    assert runtime.run().at == 3.0


def test_a_tool_call_is_told_with_its_arguments() -> None:
    job = run_one(tool_call("f", n=1), "exit(1)")
    assert job.trace.of_type(LLMReplied)[0].tool_calls == ("f({'n': 1})",)
