"""The jobs in STATEK's store, keyed by name, and their values as text and as plain YAML values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import dbzero
import statek
from statek.agents import Agent, DialogAgent
from statek.executors.job import Job
from statek.future import FutureResult as StatekFuture

from statek_sim.backends.facts import live_facts, plain
from statek_sim.values import JSON, IdSource


class JobRegistry:
    """Jobs, keyed by name, in creation order; `names` maps store ids to names.

    The instrumentation reports new jobs to `born`. `met(name, job)` is called for each job before any of its
    events.
    """

    def __init__(self) -> None:
        self._ids = IdSource()
        self._newborn: list[Any] = []
        self._introducing = False
        self.jobs: dict[str, Any] = {}
        self.names: dict[str, str] = {}
        self.met: Callable[[str, Any], None] = lambda _name, _job: None

    def born(self, job: Any) -> None:
        """Record a job that STATEK created; the job is named later."""
        self._newborn.append(job)

    def introduce(self) -> None:
        """Name the jobs created since the last call, in creation order, and call `met` for each."""
        if self._introducing:
            return
        self._introducing = True
        try:
            while self._newborn:
                job = self._newborn.pop(0)
                if dbzero.uuid(job) not in self.names:
                    self.meet(job)
        finally:
            self._introducing = False

    def known(self) -> dict[str, Any]:
        """Return the jobs, keyed by name, oldest first, including jobs that STATEK created itself."""
        self.introduce()
        return self.jobs

    def meet(self, job: Any, name: str | None = None) -> None:
        """Register a new job under a name, or under the next free name."""
        name = self._ids.next("job") if name is None else name
        while name in self.jobs:
            name = self._ids.next("job")
        self.names[dbzero.uuid(job)] = name
        self.jobs[name] = job
        self.met(name, job)

    def name_of(self, job: Any) -> str:
        """Return a job's name, or an empty string for None."""
        if job is None:
            return ""
        if dbzero.uuid(job) not in self.names:
            self.introduce()
        return self.names[dbzero.uuid(job)]


def job_facts(name: str, jobs: dict[str, Any], *, future: str | None = None) -> dict[str, Any]:
    """Return the data of job `name` in the store, keyed by `JobRecord` field; `jobs` are all jobs.

    If `future` is given, it replaces every future among the values.
    """
    job = jobs[name]
    usage = job.usage
    children = {other: child for other, child in jobs.items() if _is(job, child.parent_job)}
    return {
        **live_facts(name, job, children, partial(stored_value, future=future)),
        "usage": {
            "bytes_sent": usage.total_bytes_sent,
            "bytes_received": usage.total_bytes_received,
            "approx_tokens": job.approx_token_usage,
            "reported_tokens": (usage.total_input_tokens or 0) + (usage.total_output_tokens or 0) or None,
        },
    }


def parent_of(job: Any, jobs: dict[str, Any]) -> str | None:
    """Return the name of a job's parent among `jobs`."""
    return next((name for name, found in jobs.items() if _is(found, job.parent_job)), None)


def _is(first: Any, second: Any) -> bool:
    return first is not None and second is not None and bool(dbzero.uuid(first) == dbzero.uuid(second))


def shown(value: Any) -> str:
    """Return the text that an agent would see, or the class and the error if the conversion to text fails.

    Jobs, agents and futures are shown by name, because their text would contain private fields.
    """
    if isinstance(value, Job):
        return "<Object>"
    if isinstance(value, StatekFuture):
        return f"{type(value).__name__}(a future)"
    if isinstance(value, Agent):
        kind = "DialogAgent" if isinstance(value, DialogAgent) else "Agent"
        return f'{kind}(role="{value.role}")'
    try:
        # Agent code may not read everything, and STATEK may be in the middle of running agent code.
        with statek.as_unrestricted():
            return str(statek.format_default_llm_repr(value))
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"


_STORED: Final = {"List": list, "Tuple": tuple, "Dict": dict}
"""The built-in classes for the store's collections, which can only be identified by their class names."""


def stored_value(value: Any, *, future: str | None = None) -> JSON:
    """Return a value as a YAML value, or as the text that an agent would see.

    If `future` is given, it replaces every future. A value that is too large or cyclic becomes text.
    """
    return plain(
        value,
        lambda one: future if future is not None and isinstance(one, StatekFuture) else shown(one),
        shape=lambda one: _STORED.get(type(one).__name__, type(one)),
    )
