"""Test support for STATEK agents in any test framework: a runtime with its LLM, clock and work queue.

The pytest fixtures use this module, which does not depend on pytest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final

from statek_sim import trace as events
from statek_sim.clock import FOREVER, VirtualClock
from statek_sim.errors import BadInput
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import ExtensionRule, HarnessLimits
from statek_sim.harness.preset import load_preset
from statek_sim.harness.settings import StatekSettings
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.agenda import MOST_IDLE_POLLS
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.execution.services import NOTHING_BROUGHT, Brought
from statek_sim.runtime.state.context import traced_job
from statek_sim.scriptable import ScriptableLLM, at_the_caller
from statek_sim.semantics import profile_named
from statek_sim.store.protocol import LEASE, Store
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.world.queue import WorkItem, WorkQueue

if TYPE_CHECKING:
    from statek_sim.durability.session import Beside, KeptRuntime


class LabRuntime(Runtime):
    """A runtime whose errors about the test itself point to the line in the test, not into this package."""

    create_job = at_the_caller(Runtime.create_job)
    _kept: KeptRuntime | None = None
    _store: Store | None = None

    @at_the_caller
    def run(self, until: float = FOREVER) -> RunOutcome:
        """Run until every job is DONE or waiting; see `Runtime.run`.

        After `keep_in`, changes are committed as they happen.
        """
        if self._kept is None:
            return super().run(until)
        with self._kept.running():
            return super().run(until)

    @at_the_caller
    def keep_in(
        self,
        address: str,
        *,
        agents: Sequence[Agent],
        run: str = "main",
        kept: Mapping[str, object] | None = None,
        restart: float = 0.0,
        lease: float = LEASE,
        beside: Beside | None = None,
    ) -> KeptRuntime:
        """Keep everything in a store: `sqlite:PATH`, `files:FOLDER` or `postgresql://...`. Call before the first job.

        If the store contains the run, it is resumed: its jobs are restored, and work in progress is repeated. `kept`
        maps names to further objects to store. `lease` is the number of real seconds after which another process may
        take over the run from a process that no longer responds. `beside` contains other parts of the application.
        """
        from statek_sim.durability.session import KeptRuntime  # noqa: PLC0415  # not needed by most tests
        from statek_sim.store.open import open_store  # noqa: PLC0415
        from statek_sim.store.worker import real_seconds, worker_name  # noqa: PLC0415

        if self._kept is not None:
            raise BadInput(f"keep_in({address!r}): this runtime is already kept in a store")
        self._store = open_store(address, clock=real_seconds, lease=lease)
        try:
            self._kept = KeptRuntime(
                self,
                self._store,
                run,
                worker=worker_name(),
                agents=agents,
                kept=kept,
                restart=restart,
                beside=beside,
            )
        except BaseException:
            self._store.close()
            raise
        return self._kept

    def close(self) -> None:
        """Cancel work in progress and close the store."""
        super().close()
        if self._kept is not None and self._store is not None:
            self._kept.close()
            self._store.close()


LIMITS: Final = tuple(limit.name for limit in fields(HarnessLimits))
"""The limits that a test may set, keyed by setting name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSettings:
    """A lab's settings. `limits` override the preset's limits one by one; None means unlimited.

    For `idle_polls`, see `Runtime`.
    """

    profile: str = "docs"
    preset: str = "default"
    limits: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    items: tuple[WorkItem, ...] = ()
    idle_polls: int = MOST_IDLE_POLLS


def configured_settings(settings: LabSettings) -> StatekSettings:
    """Return the preset's settings."""
    return StatekSettings.from_env(load_preset(settings.preset).values)


def configured_limits(settings: LabSettings) -> LLM_Harness:
    """Return the harness with the preset's limits, overridden by the test's limits."""
    # HarnessLimits validates its values, with readable messages.
    limits = replace(configured_settings(settings).harness_limits(), **settings.limits)  # type: ignore[arg-type]
    return LLM_Harness.from_limits(
        limits, rule=ExtensionRule(profile_named(settings.profile).limit_extension)
    )


class Lab:
    """A runtime connected to its LLM, clock and work queue. Changes to the queue are recorded in the trace."""

    def __init__(
        self,
        settings: LabSettings,
        *,
        tokenizers: TokenizerRegistry | None = None,
        brought: Brought = NOTHING_BROUGHT,
    ) -> None:
        self.llm = ScriptableLLM()
        self.clock = VirtualClock()
        configured = configured_settings(settings)
        behaviour = profile_named(settings.profile)
        self.harness = configured_limits(settings)
        self.runtime = LabRuntime(
            self.llm,
            profile=behaviour,
            settings=configured,
            harness=self.harness,
            clock=self.clock,
            seed=settings.seed,
            tokenizers=tokenizers,
            idle_polls=settings.idle_polls,
            brought=brought,
        )
        self.queue = WorkQueue([item.copy() for item in settings.items], changed=self._queue_changed)

    def _queue_changed(self, item: str, change: str) -> None:
        job = traced_job()
        self.runtime.trace.add(
            events.WorldChanged(self.clock.now(), "" if job is None else job.id, item, change)
        )


__all__ = ["LIMITS", "Lab", "LabRuntime", "LabSettings"]
