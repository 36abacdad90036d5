"""What the jobs of a runtime live in: time, the trace, and somebody to tell (`runtime.state.host.Host`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

from statek_sim.harness.settings import StatekSettings
from statek_sim.runtime.execution.after_calls import AfterCalls
from statek_sim.runtime.execution.scheduler import Scheduler
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.chat_style import ChatStyle, parse_chat_style
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.tools.run_to_end import run_virtual


class JobHost:
    """The side of a runtime that its jobs see. `runtime` is for module-level functions that agent code calls."""

    def __init__(
        self,
        runtime: object,
        settings: StatekSettings,
        services: Services,
        scheduler: Scheduler,
        after_calls: AfterCalls,
    ) -> None:
        self.runtime = runtime
        self.trace = services.trace
        self.profile = services.profile
        self.clock = services.clock
        self.categories = services.categories
        self.default_chat_style = default_style(settings)
        self.console_tag = settings.xml_box_console or None
        self.default_difficulty = str(settings.statek_default_difficulty)
        self.why_not: Callable[[object], str | None] | None = None
        self._services = services
        self._scheduler = scheduler
        self._after_calls = after_calls

    def job_changed(self, job: Job) -> None:
        """Queue a job that became runnable."""
        self._scheduler.offer(job)

    def tools_of(self, job: Job) -> frozenset[str]:
        """Return the names of the tools of an agent, of the application's, and of what a job's variables hold."""
        held = [
            value for value in (*job.py_env.global_state.values(), *job.locals.values()) if callable(value)
        ]
        tools = [*self._services.toolbox(job).tools.values(), *self._services.registered_tools(), *held]
        names = (getattr(tool, "__name__", None) for tool in tools)
        return frozenset(name for name in names if isinstance(name, str))

    def tool_returned(self, job: Job, name: str) -> None:
        """Let happen what was asked to follow this tool call: the worker's death comes last, and within the call."""
        self._after_calls.returned(name, job.id)

    def finish(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return what an async tool of `job` comes to: other jobs' steps and time's passing come before that."""
        if not self._scheduler.running:
            # Called by a test: there is no run whose time could pass.
            return run_virtual(coroutine)
        return self._scheduler.finish(job, coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Begin to run what a step of a job awaits."""
        return self._scheduler.start(coroutine)

    def block(self, seconds: float) -> None:
        """Let the process stand still for so many virtual seconds, while it runs."""
        if self._scheduler.running:
            self._scheduler.block(seconds)

    def timestamp(self) -> datetime:
        """Return the wall time for log items."""
        return self.clock.wall()


def default_style(settings: StatekSettings) -> ChatStyle | None:
    """Return the style of jobs that say none."""
    return None if settings.chat_style is None else parse_chat_style(str(settings.chat_style))
