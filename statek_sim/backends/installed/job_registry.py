"""The jobs of a run on STATEK, and the names that scenarios know them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dbzero
from statek.chat_style import ChatStyle

from statek_sim import trace as events
from statek_sim.backends.installed.event_recorder import Witness
from statek_sim.backends.scenario_values import metadata_of, style_of_definitions
from statek_sim.scenario.schema import AgentText
from statek_sim.values import IdSource


class Cast:
    """Jobs by name, in order of creation; `names` by the ids that the store gave them.

    `style` is that of the setting, if all agents have one. `witness` is told of jobs that are met.
    """

    witness: Witness

    def __init__(self, agents: Mapping[str, AgentText], style: str | None) -> None:
        self._agents = agents
        self._ids = IdSource()
        self._style = style
        self.jobs: dict[str, Any] = {}
        self.names: dict[str, str] = {}

    def known(self) -> dict[str, Any]:
        """Return the jobs by name, in order of creation, those that STATEK created by itself included."""
        self.witness.introduce()
        return self.jobs

    def newcomer(self, job: Any) -> None:
        """Meet a job that may be new."""
        if dbzero.uuid(job) not in self.names:
            self.meet(job, self._free_name())

    def _free_name(self) -> str:
        """Return the next name that no job has."""
        while (name := self._ids.next("job")) in self.jobs:
            pass
        return name

    def meet(self, job: Any, name: str) -> None:
        """Take in a new job under a name."""
        self.names[dbzero.uuid(job)] = name
        self.jobs[name] = job
        text = self._agents[job.agent.role]
        style = style_of_definitions(text, self._style)
        if style is not None:
            job.job_def.set_chat_style(ChatStyle[style])
        parent = None if job.parent_job is None else self.name_of(job.parent_job)
        self.witness.tell(events.JobCreated, name, job.agent.role, metadata_of(text)["MODEL"], parent)

    def name_of(self, job: Any) -> str:
        """Return a job's name."""
        if job is None:
            return ""
        if dbzero.uuid(job) not in self.names:
            self.witness.introduce()
        return self.names[dbzero.uuid(job)]
