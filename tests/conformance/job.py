"""What one conformance job is: who answers what, what happens around it, and under which limits.

Nothing here knows either runtime, and only the standard library is imported, so that the interpreter of the real
package can read the same data.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Style = Literal["CONSOLE", "MARKDOWN", "MD_DIALOG", "DIRECT"]

MAIN = "main"
"""The role of the agent whose job starts the case; its first job has the same name."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """The external event `name` happens and brings `value`."""

    name: str
    value: object = None


@dataclass(frozen=True, slots=True)
class Say:
    """The user writes to a job."""

    text: str
    job: str = MAIN


@dataclass(frozen=True, slots=True)
class Notify:
    """The application sends a plain notification to a job (exists from 1.4.0)."""

    text: str
    job: str = MAIN


@dataclass(frozen=True, slots=True)
class Complete:
    """The application completes the subtask that `job` works on."""

    job: str
    result: str | None = None
    error: str | None = None


Happening = Resolve | Say | Notify | Complete


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a reply. `arguments` is an object, or the raw text of a provider that misbehaves."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the model. `meanwhile` happens after the request was built and before the answer is there.

    `usage` is the provider's report, left out of the body when None. `body` replaces the whole body.
    """

    text: str | None = None
    calls: tuple[Call, ...] = ()
    usage: Mapping[str, object] | None = None
    meanwhile: tuple[Happening, ...] = ()
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The provider answers with an HTTP status that is not a success, or not at all (status None: a timeout)."""

    status: int | None


Turn = str | Reply | Refusal
"""A bare str is the text of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The four limits and their extension; far away unless a job is about them."""

    turns: int = 50
    exceptions: int = 50
    streak: int = 50
    tokens: int = 10_000_000
    extension: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """One agent and the model behind it.

    `tools` are names from `tools.py`. A dialog agent has a `message` when its job starts the case. `reminder` is the
    text and the dialog length of a recurring reminder. `warns` gives it a `critical_error_handler`.
    """

    replies: tuple[Turn, ...] = ()
    tools: tuple[str, ...] = ()
    prompt: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    dialog: bool = False
    answer_tool: bool = True
    reminder: tuple[str, int | None] | None = None
    warns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceJob:
    """One case: a first job, what happens when nothing can run any more, and the other agents it may start."""

    name: str
    about: str
    agent: AgentPlan
    style: Style | None = None
    message: str | None = None
    warmup: str | tuple[str, ...] | None = None
    shared: Mapping[str, object] = field(default_factory=dict)
    happens: tuple[Happening, ...] = ()
    others: Mapping[str, AgentPlan] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    settings: Mapping[str, str] = field(default_factory=dict)

    def plan(self, role: str) -> AgentPlan:
        """Return the agent called `role`."""
        return self.agent if role == MAIN else self.others[role]

    def roles(self) -> tuple[str, ...]:
        """Return every role, the main one first."""
        return (MAIN, *self.others)


def code(text: str) -> str:
    """Return an indented block of code as the model would write it."""
    return textwrap.dedent(text).strip("\n")


def call(name: str, /, **arguments: object) -> Call:
    """Return a tool call."""
    return Call(name, arguments)


def calls(*requested: Call, text: str | None = None) -> Reply:
    """Return a reply that asks for tool calls."""
    return Reply(text=text, calls=requested)


def cli(source: str) -> Call:
    """Return a `python_cli` call."""
    return Call("python_cli", {"code": code(source)})


PLAIN_TOOLS = ("wait_for", "wait_for_pair", "note", "refuse", "fail", "slow")
"""What most agents can do."""

END = "exit('end')"


def console(
    name: str,
    about: str,
    *replies: Turn,
    style: Style | None = None,
    warmup: str | tuple[str, ...] | None = None,
    happens: tuple[Happening, ...] = (),
    tools: tuple[str, ...] = PLAIN_TOOLS,
    prompt: str = "",
    metadata: Mapping[str, str] | None = None,
    shared: Mapping[str, object] | None = None,
    others: Mapping[str, AgentPlan] | None = None,
    limits: Limits | None = None,
    settings: Mapping[str, str] | None = None,
    warns: bool = False,
) -> ConformanceJob:
    """Return a job whose model answers with code."""
    return ConformanceJob(
        name=name,
        about=about,
        agent=AgentPlan(replies=replies, tools=tools, prompt=prompt, metadata=metadata or {}, warns=warns),
        style=style,
        warmup=warmup,
        shared=shared or {},
        happens=happens,
        others=others or {},
        limits=limits or Limits(),
        settings=settings or {},
    )


def dialog(
    name: str,
    about: str,
    *replies: Turn,
    style: Style = "DIRECT",
    message: str = "hello",
    scope: str | None = None,
    warmup: str | tuple[str, ...] | None = None,
    happens: tuple[Happening, ...] = (),
    tools: tuple[str, ...] = PLAIN_TOOLS,
    prompt: str = "",
    metadata: Mapping[str, str] | None = None,
    answer_tool: bool = True,
    reminder: tuple[str, int | None] | None = None,
    shared: Mapping[str, object] | None = None,
    others: Mapping[str, AgentPlan] | None = None,
    limits: Limits | None = None,
    settings: Mapping[str, str] | None = None,
) -> ConformanceJob:
    """Return a job that talks to a user. `scope` is the tools scope."""
    scoped = {} if scope is None else {"LLM_TOOLS_SCOPE": scope}
    return ConformanceJob(
        name=name,
        about=about,
        agent=AgentPlan(
            replies=replies,
            tools=tools,
            prompt=prompt,
            metadata={**scoped, "CHAT_STYLE": style, **(metadata or {})},
            dialog=True,
            answer_tool=answer_tool,
            reminder=reminder,
        ),
        message=message,
        warmup=warmup,
        shared=shared or {},
        happens=happens,
        others=others or {},
        limits=limits or Limits(),
        settings=settings or {},
    )
