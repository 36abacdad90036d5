"""Agents, and the job definitions from which jobs are created."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from traceback import format_tb
from typing import Any, Protocol

from statek_sim.errors import BadTool
from statek_sim.runtime.agents.warmup_source import WarmupSource
from statek_sim.runtime.state.access import StoredObject
from statek_sim.runtime.state.chat_log import CodeBlock, definition_members
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.context import traced_job
from statek_sim.runtime.stored.storable_types import object_text
from statek_sim.runtime.tools.declaration import record_delivery
from statek_sim.runtime.tools.future_calls import once_per_function


class Agent(StoredObject):
    """Provides a job's prompt, tools and settings.

    `metadata` contains STATEK's prompt metadata (`MODEL`, `PROVIDER`, `TEMPERATURE`, `CHAT_STYLE`,
    `LLM_TOOLS_SCOPE`, `DEFAULT_DIFFICULTY`). `context` holds adapters and additional names for agent code.
    Tools whose name starts with `_` are internal: code can call them, but they are not shown to the model.
    `warmup` runs before the first request of every job, after the job's own warmup code.

    `chat_style` is set on the agent's job definitions, as with `JobDef.set_chat_style` and `update_prompt_config`.
    STATEK's `create_new_job` reads CHAT_STYLE only from dialog agents' metadata; for other agents it has no
    effect (checked with 1.2.7 and 1.4.2).
    """

    chat_style: str | None = None

    def __init__(
        self,
        role: str,
        system_prompt: str = "",
        *,
        tools: Sequence[Callable[..., Any]] = (),
        model: str = "gpt-4o",
        metadata: Mapping[str, str] | None = None,
        context: Mapping[str, object] | None = None,
        warmup: WarmupSource = None,
        chat_style: str | None = None,
    ) -> None:
        self.role = role
        self.prompt = system_prompt
        self.metadata: dict[str, str] = {"MODEL": model, **(metadata or {})}
        self.context: dict[str, object] = dict(context or {})
        self.warmup = warmup
        self.chat_style = chat_style
        given: object = tools
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise BadTool(f"agent {role!r}: expected tools to be a list of functions, got {given!r}")
        for function in tools:
            if not callable(function):
                raise BadTool(f"agent {role!r}: tool {function!r} is not callable")
        # STATEK puts internal tools after the others; before 1.3.0, models are offered both, in this order.
        self.all_tools: tuple[Callable[..., Any], ...] = tuple(sorted(tools, key=_is_internal))

    def __short_text__(self) -> str:
        return f'{"DialogAgent" if isinstance(self, DialogAgent) else "Agent"}(role="{self.role}")'

    @property
    def tools(self) -> tuple[Callable[..., Any], ...]:
        """The tools that may be offered to the model."""
        return tuple(function for function in self.all_tools if not _is_internal(function))

    def system_prompt(self, task_difficulty: object, job_params: Mapping[str, object] | None = None) -> str:
        """Return the prompt, with `{name}` placeholders filled from `job_params` if given."""
        return self.prompt.format_map(job_params) if job_params else self.prompt

    def get_adapter(self, name: str) -> Any:
        """Return the adapter `name`, `_name` or `__name` from the context, or None."""
        for candidate in (name, f"_{name}", f"__{name}"):
            adapter = self.context.get(candidate)
            if adapter is not None:
                return adapter
        return None


def _is_internal(function: Callable[..., Any]) -> bool:
    return function.__name__.startswith("_")


class InDialog(Protocol):
    """The part of a job that reminders use."""

    def dialog_length(self) -> int:
        """Return the number of messages exchanged between the user and the agent."""


class RecurringReminder:
    """Fires on every final text once the dialog has `min_dialog_len` messages (at least 1).

    If that is None, it always fires.
    """

    def __init__(self, text: str, min_dialog_len: int | None = None) -> None:
        self.text = text
        self.min_dialog_len = min_dialog_len

    def fire_ready(self, job: InDialog) -> bool:
        """Return whether the reminder is due for `job`."""
        return self.min_dialog_len is None or job.dialog_length() >= max(self.min_dialog_len, 1)


class DialogAgent(Agent):
    """An agent that talks to one user through `send_message(body, media=None)`.

    Its jobs use MD_DIALOG unless the metadata specify another `CHAT_STYLE`. The tool `answer(body)` sends a
    message and exits; `add_answer_tool=False` omits it.
    """

    def __init__(
        self,
        send_message: Callable[..., Any],
        role: str = "dialog_agent",
        system_prompt: str = "",
        *,
        tools: Sequence[Callable[..., Any]] = (),
        add_answer_tool: bool = True,
        reminder: RecurringReminder | None = None,
        model: str = "gpt-4o",
        metadata: Mapping[str, str] | None = None,
        context: Mapping[str, object] | None = None,
        warmup: WarmupSource = None,
    ) -> None:
        _check_send_message(send_message)
        self.send_message = _traced(send_message)
        self.reminder = reminder
        # No hint on `media`: its schema type is part of the tools payload. Internal tools come last, as in STATEK.
        own = [_answer(self.send_message)] if add_answer_tool else []
        own.append(_internal_send(self.send_message))
        super().__init__(
            role,
            system_prompt,
            tools=(*tools, *own),
            model=model,
            metadata=metadata,
            context=context,
            warmup=warmup,
        )


def _check_send_message(send_message: Any) -> None:
    if not callable(send_message):
        raise TypeError("send_message must be callable")
    if getattr(send_message, "__is_temporal__", False):
        raise ValueError("send_message must not be a temporal function")
    if not _takes_a_body(send_message):
        raise ValueError("send_message must accept a 'body' parameter")


@once_per_function
def _takes_a_body(send_message: Callable[..., Any]) -> bool:
    return "body" in inspect.signature(send_message).parameters


def _traced(send_message: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `send_message` to record each delivery in the current job's trace."""

    def send(body: str, **media: Any) -> Any:
        result = send_message(body=body, **media)
        job = traced_job()
        if job is not None:
            record_delivery(job, body, media.get("media"))
        return result

    send.__doc__ = send_message.__doc__
    return send


def _internal_send(send_message: Callable[..., Any]) -> Callable[..., Any]:
    def _send_message(body: str, media: Any = None) -> Any:
        return send_message(body=body, media=media)

    # Before 1.3.0, models are offered this tool with the application's own description.
    _send_message.__doc__ = send_message.__doc__
    return _send_message


def _answer(send_message: Callable[..., Any]) -> Callable[..., Any]:
    def answer(body: str, media: Any = None) -> None:
        """Deliver the final message to the user and end the dialog.

        Args:
            body (required): The final message text to send to the user.
            media: Optional media attachment forwarded to send_message.
        """
        print(f"log: answer(body={body!r}, media={media!r})")
        send_message(body=body, media=media)
        exit("Success")  # noqa: PLR1722  # STATEK's exit, which ends the job

    return answer


@dataclass(slots=True, init=False, repr=False)
class JobDefError:
    """An error recorded on a job or its definition, with its source location if known."""

    error_message: str
    traceback: list[str] | None

    __str__ = object_text

    def __repr__(self) -> str:
        return "<statek.executors.job.JobDefError object at 0x...>"

    def __init__(self, error: BaseException, collect_traceback: bool = True) -> None:
        self.error_message = str(error)
        raised_in = error.__traceback__ if collect_traceback else None
        self.traceback = None if raised_in is None else format_tb(raised_in)


class Processor(Protocol):
    """The interface of post-processors; see `runtime.jobs.post_processing`."""

    def process(self, llm_step: Any, job: Any) -> Any:
        """Return the reply, a changed reply, a string for the model (then nothing is stored), or a tuple of these."""


@dataclass(slots=True, eq=False)
class JobDef(StoredObject):
    """A shared definition from which jobs are created ("Jobs", JobDef and Job).

    It consists of agent, model settings, warmup and chat style.
    """

    agent: Agent
    metadata: Mapping[str, str]
    blocks: tuple[CodeBlock, ...] = ()
    job_params: Mapping[str, object] = field(default_factory=dict)
    chat_style: ChatStyle | None = None
    locale: str | None = None
    processors: tuple[Processor, ...] = ()
    errors: list[JobDefError] = field(default_factory=list)

    __store_members__ = definition_members

    @property
    def warmup_code(self) -> list[str | CodeBlock] | str | CodeBlock | None:
        """The warmup as STATEK stores it: a code-only block as a string, a single block without a list."""
        stored = [block if block.tool_calls or block.metadata else block.code or "" for block in self.blocks]
        return stored if len(stored) > 1 else next(iter(stored), None)

    @property
    def post_processing(self) -> list[Processor] | None:
        """The post-processors, or None if there are none."""
        return [*self.processors] or None

    def set_error(self, error: BaseException) -> None:
        """Record a startup failure; agent loops then stop starting jobs from this definition."""
        self.errors.append(JobDefError(error, collect_traceback=False))

    def get_errors(self) -> list[JobDefError]:
        """Return the recorded startup failures, newest first, in the store's order."""
        return self.errors[::-1]

    def has_errors(self) -> bool:
        """Return whether a startup failure is recorded."""
        return bool(self.errors)

    def clear_errors(self) -> None:
        """Remove the recorded startup failures, as happens when the process restarts."""
        self.errors.clear()
