"""Post-processors, which inspect a reply before it is stored, and may change or withhold it (behaviour 9).

A withheld reply counts as usage but is never stored; the model receives the processor's text and answers again.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from statek_sim.providers.wire.reply import ParsedReply, ToolCallRequest
from statek_sim.runtime.agents.agent import Processor
from statek_sim.runtime.agents.dialog import count_llm_actions
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.chat_log import PostProcessedItem
from statek_sim.runtime.state.chat_style import ChatStyle, is_empty_code, strip_markup


@dataclass
class CallParams:
    """A tool call as a model requested it."""

    call_id: Any
    name: str
    args: list[Any] | None = None
    kwargs: Mapping[str, Any] | None = None


@dataclass
class LLM_StepData:  # noqa: N801  # STATEK's own name
    """A reply that has not been stored yet: its text and its tool calls."""

    text: str
    call_requests: Sequence[CallParams] | None = field(default_factory=list)
    reasoning_payload: Any = None


class PostProcessor(ABC):
    """Inspects each of a job's replies before it is stored."""

    @abstractmethod
    def process(self, llm_step: LLM_StepData, job: Job) -> Any:
        """Return the reply, a changed reply, a string for the model (then nothing is stored), or a tuple of these."""


@dataclass(eq=False)
class FinalCheck(PostProcessor):
    """Makes the model reconsider its final answer, once per job.

    This applies if the model has taken fewer than `max_llm_actions` actions.
    """

    max_llm_actions: int = 3

    def process(self, llm_step: LLM_StepData, job: Job) -> Any:
        """Return the reply, or the text to send to the model instead of storing the reply."""
        final = is_final(job.chat_style, llm_step.text, calls=bool(llm_step.call_requests))
        if not final or count_llm_actions(job) >= self.max_llm_actions:
            return llm_step
        if any(isinstance(item, PostProcessedItem) and item.post_processor is self for item in job.chat_log):
            return llm_step
        return f"{_FINAL_CHECK}{llm_step.text}"


_FINAL_CHECK: Final = (
    "Final check: reflect on the user's latest request and your draft answer. Make sure it is correct, complete, and "
    "directly answers the user. Revise if needed; otherwise return it unchanged.\n\nDraft answer:\n"
)
"""Sent in requests, byte for byte (1.2.7 and 1.4.2). Do not change it."""


def is_final(style: ChatStyle | None, text: str, *, calls: bool) -> bool:
    """Return whether a reply ends a dialog's unit of work (behaviour 6.3).

    This is the case for text without tool calls and, for MD_DIALOG, without code.
    """
    if calls:
        return False
    if style is ChatStyle.DIRECT:
        return True
    return style is ChatStyle.MD_DIALOG and is_empty_code(strip_markup(text, strict=True))


def processed(job: Job, reply: ParsedReply) -> tuple[ParsedReply | None, bool]:
    """Pass a reply through a job's post-processors.

    Return the resulting reply, or None if a processor withheld it, and whether any processor took effect.
    """
    step: LLM_StepData | None = _step(reply)
    anything = False
    for processor in job.job_def.processors:
        if step is None:
            break
        before = step
        step, active = _processed_by(processor, before, job)
        anything = anything or active
    return (None if step is None else _reply(reply, step)), anything


def _processed_by(processor: Processor, step: LLM_StepData, job: Job) -> tuple[LLM_StepData | None, bool]:
    result = processor.process(step, job)
    parts = result if isinstance(result, tuple) else (result,)
    left: LLM_StepData | None = None
    active = False
    for part in parts:
        if isinstance(part, LLM_StepData):
            if left is not None:
                raise ValueError("Post-processor tuple may contain at most one LLM_StepData")
            left, active = part, active or part is not step
        elif isinstance(part, str):
            job.log(PostProcessedItem(job.console_pos, job.host.timestamp(), processor, part))
            active = True
        else:
            raise TypeError("Unsupported post-processor return value")
    return left, active


def _step(reply: ParsedReply) -> LLM_StepData:
    calls = [CallParams(call.id, call.name, [], dict(call.arguments)) for call in reply.tool_calls]
    return LLM_StepData(reply.text, calls, dict(reply.reasoning) if reply.reasoning else None)


def _reply(reply: ParsedReply, step: LLM_StepData) -> ParsedReply:
    calls = [
        ToolCallRequest(call.call_id, call.name, dict(call.kwargs or {})) for call in step.call_requests or ()
    ]
    return replace(reply, text=step.text, tool_calls=tuple(calls))


# -- metadata -----------------------------------------------------------------------------------------------------


def normalised(given: Any) -> tuple[PostProcessor, ...]:
    """Return one or several post-processors as a tuple; raises TypeError for anything else."""
    several = (given,) if isinstance(given, PostProcessor) else given
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise TypeError("post_processing must contain PostProcessor instances")
    found = tuple(several)
    if not all(isinstance(processor, PostProcessor) for processor in found):
        raise TypeError("post_processing must contain PostProcessor instances")
    return found


def identity(processor: Processor) -> tuple[str, str]:
    """Return the key by which definitions compare post-processors: the class and its attributes."""
    kind = type(processor)
    return (f"{kind.__module__}.{kind.__qualname__}", repr(sorted(vars(processor).items())))


def parse_post_processors(text: str) -> list[CallParams]:
    """Parse POST_PROCESSORS metadata: comma-separated constructor calls with literal keyword arguments.

    Raises ValueError for anything else.
    """
    if not text.strip():
        return []
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(_INVALID) from error
    return [_call(element) for element in (body.elts if isinstance(body, ast.Tuple) else [body])]


_INVALID: Final = "Invalid post-processor metadata definition"


def _call(node: ast.expr) -> CallParams:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError(_INVALID)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in kwargs:
            raise ValueError(_INVALID)
        try:
            kwargs[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError) as error:
            raise ValueError(_INVALID) from error
    return CallParams(node.func.id, node.func.id, [], kwargs)


def post_processors(metadata: Mapping[str, str]) -> tuple[PostProcessor, ...]:
    """Return the post-processors in an agent's POST_PROCESSORS metadata; only FinalCheck is known.

    Raises ValueError for an unknown post-processor.
    """
    found = []
    for call in parse_post_processors(metadata.get("POST_PROCESSORS") or ""):
        if call.name != FinalCheck.__name__:
            raise ValueError(f"Unknown post-processor: {call.name}")
        found.append(FinalCheck(**(call.kwargs or {})))
    return tuple(found)
