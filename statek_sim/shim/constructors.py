"""STATEK's stored classes that an application calls itself. Their objects are of the runtime's classes.

`isinstance` and queries accept the runtime's objects for these classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from statek_sim.runtime.agents import agent as definitions
from statek_sim.runtime.agents.warmup_source import WarmupSource, unparsed_blocks
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs import job as jobs
from statek_sim.runtime.jobs.post_processing import normalised
from statek_sim.runtime.state import chat_log
from statek_sim.runtime.state.access import attribute
from statek_sim.runtime.stored.storable_types import NamedAsInC
from statek_sim.shim.agents import Metadata
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.jobs import AppJobDef

_NOW: Final[Any] = object()
"""Placeholder for the present time."""


class _Constructor(NamedAsInC):
    """Metaclass of a class whose `build` returns an object of its base class."""

    def __call__(self: Any, *args: Any, **options: Any) -> Any:
        return self.build(*args, **options)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.__bases__)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self.__bases__)


class UserLogItem(chat_log.UserLogItem, metaclass=_Constructor):
    """A user message in the dialog styles."""

    @staticmethod
    def build(message: str, timestamp: datetime | None = _NOW) -> chat_log.UserLogItem:
        """Return a message with the present time by default."""
        at: Any = current_runtime().host.timestamp() if timestamp is _NOW else timestamp
        return chat_log.UserLogItem(message, at)


class JobDef(definitions.JobDef, metaclass=_Constructor):
    """A definition from which jobs are created."""

    @staticmethod
    def build(
        agent: definitions.Agent,
        metadata: Mapping[str, str] | None = None,
        job_params: Mapping[str, Any] | None = None,
        warmup_code: WarmupSource = None,
        _chat_style: Any = None,
        locale: Any = None,
        post_processing: Any = None,
        provider_config: Any = None,
        extra_resources: Any = None,
    ) -> AppJobDef:
        """Return a definition, which `create_new_job` finds again. Text in `warmup_code` is not parsed."""
        if provider_config is not None or extra_resources is not None:
            raise NotCovered("JobDef with a provider_config or extra_resources")
        given = agent.metadata if metadata is None else Metadata(agent.role, metadata)
        if not given.get("MODEL"):
            raise ValueError(f"JobDef for agent '{agent.role}' requires metadata field 'MODEL'")
        definition = AppJobDef(
            agent,
            given,
            tuple(unparsed_blocks(warmup_code)),
            attribute(dict(job_params)).value if job_params else {},
            _chat_style,
            locale,
            () if post_processing is None else normalised(post_processing),
        )
        current_runtime().book.know(definition, _chat_style)
        return definition


class Job(jobs.Job, metaclass=_Constructor):
    """A unit of work."""

    @staticmethod
    def build(job_def: JobDef, *others: Any, parent_job: jobs.Job | None = None, **more: Any) -> jobs.Job:
        """Return a READY job, without the parent's error handlers; other members raise `NotCovered`."""
        if others or more:
            raise NotCovered(f"Job({', '.join(more) or repr(others[0])}) with members other than its parent")
        return current_runtime().start(job_def, parent_job)


Job.__name__ = jobs.Job.__name__
