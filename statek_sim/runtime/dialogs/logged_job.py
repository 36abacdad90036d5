"""What a conversation is read from."""

from __future__ import annotations

from typing import Protocol

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.state.chat_log import ChatItem
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.host import Host
from statek_sim.runtime.state.pyenv import PyEnv


class LoggedJob(Protocol):
    """A job, as far as its conversation is concerned; `runtime.jobs.job.Job` is one."""

    chat_log: list[ChatItem]
    chat_style: ChatStyle | None
    host: Host
    job_def: JobDef
    py_env: PyEnv

    @property
    def agent(self) -> Agent:
        """The agent that does the work."""

    @property
    def raised_at(self) -> list[int]:
        """Lengths of the chat log at rises of the difficulty."""

    @property
    def console_pos(self) -> int:
        """The length of the console."""

    def spend(self, seconds: float) -> None:
        """Note virtual seconds that a tool slept."""
