"""What an application on the stand-ins has besides its runtime, for a store of runs: its stored objects and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.counters import LLM_Usage
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.shim.agents import Metadata
from statek_sim.shim.jobs import AppJob, AppJobDef, AppPyEnv, AppUsage
from statek_sim.shim.memo import stored_names
from statek_sim.shim.queries import Tag
from statek_sim.shim.store import current_store
from statek_sim.shim.tools import registered


class StoredObjects:
    """The objects of the open store; see `Beside`. A singleton stays the object that this process has of it."""

    in_place_of: Mapping[type, type] = {Job: AppJob, JobDef: AppJobDef, PyEnv: AppPyEnv, LLM_Usage: AppUsage}

    def named(self) -> Iterable[tuple[str, object]]:
        """Return stored classes and enumerations."""
        return [("app:Metadata", Metadata), *stored_names()]

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return all registered tools."""
        return registered()

    def saved(self) -> Mapping[str, object]:
        """Return singletons, tags and members."""
        return current_store().saved()

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Have the singletons, tags and members of another process."""
        current_store().resume(saved, Tag)
