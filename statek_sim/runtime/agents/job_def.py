"""JobDef: the prepared definition of work that jobs are created from (001, JobDef and Job)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.warmup_source import WarmupBlock
from statek_sim.runtime.state.access import missing
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.own_members import definition_members


@dataclass(frozen=True, slots=True)
class JobDefError:
    """Why a job or its definition failed."""

    error_message: str
    error_type: str


class Processor(Protocol):
    """Looks at each reply of a job before it is stored; `runtime.jobs.post_processing` says how."""

    def process(self, llm_step: Any, job: Any) -> Any:
        """Return the reply, another one, a text for the model in its place, or a tuple of these."""


@dataclass(slots=True, eq=False)
class JobDef:
    """The prepared, shared definition of work: agent, model settings, warmup, chat style (001, JobDef and Job)."""

    agent: Agent
    metadata: Mapping[str, str]
    warmup_code: tuple[WarmupBlock, ...] = ()
    job_params: Mapping[str, object] = field(default_factory=dict)
    chat_style: ChatStyle | None = None
    locale: str | None = None
    post_processing: tuple[Processor, ...] = ()
    errors: list[JobDefError] = field(default_factory=list)

    __store_members__ = definition_members

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Refuse an attribute that there is not, in the words of the store."""
            raise missing(self, name)

    def set_error(self, error: BaseException) -> None:
        """Record a startup failure; jobs of this definition are not started by an agent loop any more."""
        self.errors.append(JobDefError(str(error), type(error).__name__))

    def get_errors(self) -> list[JobDefError]:
        """Return the recorded startup failures, newest first, as the store finds them."""
        return self.errors[::-1]

    def has_errors(self) -> bool:
        """Return whether a startup failure is recorded."""
        return bool(self.errors)

    def clear_errors(self) -> None:
        """Forget startup failures, as a restarted process does."""
        self.errors.clear()
