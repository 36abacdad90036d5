"""What a job needs from the runtime it lives in, and what the parts of a job and its tools need from the job."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol

from statek_sim.clock import Clock
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.pyenv import Categories, PyEnv
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.semantics import Profile
from statek_sim.trace import Trace


class Host(Protocol):
    """The runtime, as far as a job is concerned."""

    trace: Trace
    profile: Profile
    default_chat_style: ChatStyle | None
    console_tag: str | None
    default_difficulty: str
    categories: Callable[[], Categories]
    why_not: Callable[[object], str | None] | None
    """Why a value cannot be stored, None for one that can; None itself where a runtime has no store."""

    @property
    def runtime(self) -> object:
        """The runtime itself, for module-level functions that agent code calls."""

    @property
    def clock(self) -> Clock:
        """Virtual time."""

    def job_changed(self, job: Any) -> None:
        """Note that `job` may have become runnable, or stopped being so."""

    def tools_of(self, job: Any) -> frozenset[str]:
        """Return the names of everything that can be a tool call of `job`, whether it was called or not."""

    def tool_returned(self, job: Any, name: str) -> None:
        """Note that a tool of `job` has done its work; its result has not been used yet."""

    def finish(self, job: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return what an async tool of `job` comes to, in virtual time."""

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Begin to run what a step of a job awaits."""

    def block(self, seconds: float) -> None:
        """Let virtual seconds pass in which the process does nothing."""

    def timestamp(self) -> datetime:
        """Return the wall time for log items."""


class CurrentJob(Protocol):
    """A job, as far as the tools that it calls and its handlers are concerned; `runtime.jobs.job.Job` is one."""

    host: Host
    id: str
    py_env: PyEnv
    tool_via: str

    def spend(self, seconds: float) -> None:
        """Note virtual seconds that a tool slept."""

    def add_error_handler(self, error_handler: Callable[..., object], context: object) -> None:
        """Register cleanup that runs if the job dies."""
