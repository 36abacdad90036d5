"""What a job needs from the runtime it lives in."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import datetime
from typing import Any, Protocol

from statek_sim.clock import Clock
from statek_sim.runtime.dialogs.chat_style import ChatStyle
from statek_sim.runtime.execution.tool_loop import Running
from statek_sim.semantics import Profile
from statek_sim.trace import Trace


class Host(Protocol):
    """The runtime, as far as a job is concerned."""

    trace: Trace
    profile: Profile
    default_chat_style: ChatStyle | None
    console_tag: str | None
    default_difficulty: str

    @property
    def clock(self) -> Clock:
        """Virtual time."""

    def job_changed(self, job: Any) -> None:
        """Note that `job` may have become runnable, or stopped being so."""

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
