"""Small agents, tools and runtimes for the tests of the runtime."""

from __future__ import annotations

from collections.abc import Callable

from statek_sim import Agent, LLM_Harness, Runtime, ScriptedLLM, tool
from statek_sim.jobs import FutureError, FutureResult, temporal
from statek_sim.providers.script import ScriptEntry
from statek_sim.providers.scripted import Script
from statek_sim.runtime.jobs.job import Job
from statek_sim.world.world import ExternalEvents

UNLIMITED = LLM_Harness(None, None, None, None)


def run_one(
    *replies: ScriptEntry, tools: tuple[Callable[..., object], ...] = (), profile: str = "docs"
) -> Job:
    """Run one job of an agent with these tools on these replies, without limits."""
    runtime = Runtime(ScriptedLLM(list(replies)), harness=UNLIMITED, profile=profile)
    job = runtime.create_job(Agent("worker", tools=tools))
    runtime.run()
    return job


def idle_runtime(profile: str = "docs", script: Script = ()) -> Runtime:
    """Return a runtime without limits; unless told otherwise its model says nothing."""
    return Runtime(ScriptedLLM(script), harness=UNLIMITED, profile=profile)


class Gate:
    """A tool `gate()` that waits for one external event, and how often its condition was asked."""

    def __init__(self, name: str = "gate") -> None:
        self.asked = 0
        self.events = ExternalEvents([name])
        self.name = name
        self.tool = self._make_tool()

    def open(self, value: object = "open") -> None:
        """Let the event happen."""
        self.events.resolve(self.name, value)

    def break_(self, message: str) -> None:
        """Make the condition raise from now on."""
        self.events.break_(self.name, message)

    def _make_tool(self) -> Callable[..., object]:
        event = self.events[self.name]

        def ready(_: FutureResult) -> bool:
            self.asked += 1
            return event.is_ready()

        def value(future: FutureResult) -> object:
            if not event.resolved:
                raise FutureError(future)
            return event.value

        @temporal(complement=value, condition=ready)
        @tool
        def gate(**kwargs: object) -> FutureResult:
            """Wait for the gate."""
            return FutureResult(deps=event)

        gate.__name__ = self.name
        return gate
