"""Keeps an application's runtime in a store: its jobs, its clock, its script, and the objects that it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from statek_sim.durability.kinds import anchored
from statek_sim.durability.session import Session
from statek_sim.errors import BadStore
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.model_request import REPLY_OVER
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.scriptable import script_position
from statek_sim.store.protocol import Store, Stored
from statek_sim.trace import Event, event_of
from statek_sim.values import JSON
from statek_sim.world.queue import WorkQueue

APPLICATION: Final = "application"
"""Marks a run in a store that only an application can continue."""

DIED: Final = "its process died"
"""The trace's text about a worker that a new process did not find alive."""


class Beside(Protocol):
    """Parts of an application besides its runtime: objects in memory, and its own classes."""

    in_place_of: Mapping[type, type]
    """Its replacements of the runtime's classes."""

    def named(self) -> Iterable[tuple[str, object]]:
        """Return the objects that every process of it has, by name."""

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return its tools, from which functions in its objects are reachable."""

    def saved(self) -> Mapping[str, object]:
        """Return the state that a new process needs besides the runtime."""

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore what another process `saved`."""


class KeptRuntime:
    """A runtime on a store. For a run that is in the store, it resumes from the previous process's last commit.

    `agents` are all agents that jobs use, in the same order in every process. `kept` are the application's own objects
    by name: work queues, and lists, dicts, sets and objects of `@stored` classes; afterwards `kept` has them as stored.
    The application plans its own events (`Runtime.at`) again. Commits are made while the runtime runs, at every point
    where a worker may die, and after each run.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        run: str,
        *,
        worker: str,
        agents: Sequence[Agent],
        kept: Mapping[str, object] | None = None,
        restart: float = 0.0,
        beside: Beside | None = None,
    ) -> None:
        if runtime.jobs:
            raise BadStore(
                f"{store.address}: run {run!r}: keep a runtime before it has jobs; it has {len(runtime.jobs)}"
            )
        self._runtime = runtime
        self._store = store
        self._running = False
        self._beside = beside
        self.kept: dict[str, object] = dict(kept or {})
        self._script = runtime.services.provider
        self._undelivered = UndeliveredReplies(self._script)
        runtime.services.provider = self._undelivered
        about: dict[str, JSON] = {APPLICATION: [agent.role for agent in agents]}
        lease = store.claim(run, worker=worker, about=about)
        named: list[tuple[str, object]] = [("host", runtime.host), ("profile", runtime.profile)]
        for name, value in self.kept.items():
            if isinstance(value, WorkQueue):
                named += [(f"kept:{name}", value), (f"kept:{name}/signal", value.signal)]
        if beside is None:
            anchors = anchored(agents, named)
        else:
            anchors = anchored(agents, [*named, *beside.named()], beside.tools(), beside.in_place_of)
        self._session = Session(store, lease, runtime, anchors, self._saved)
        self.resumed = False
        """Whether the store had a commit to resume from."""
        try:
            self._go_on(store.load(run), restart)
        except BaseException:
            self._session.release()
            raise
        self._listen()

    def _go_on(self, stored: Stored, restart: float) -> None:
        if not stored.rows:
            # The run is new, or its process died before the first commit.
            return
        self.resumed = True
        runtime = self._runtime
        with self._session.reading():
            self._resume(stored)
        if stored.status == "running":
            # Also if the worker was already dead: its application died with it, and restarts.
            if runtime.worker_alive:
                runtime.crash_worker(DIED)
            runtime.at(runtime.clock.now() + restart, runtime.restart_worker)

    def _resume(self, stored: Stored) -> None:
        runtime, saved = self._runtime, self._session.read(stored)
        if self._beside is not None:
            self._beside.resume(saved["beside"])
        runtime.resume(saved["runtime"], map(event_of, map(json.loads, stored.events)))
        for name, value in saved["kept"]:
            known = self.kept.get(name)
            if isinstance(known, WorkQueue):
                known.items.clear()
                known.items.update((item.id, item) for item in value)
            else:
                self.kept[name] = value
        self._undelivered.resume(saved["undelivered"])
        resume = getattr(self._script, "resume", None)
        if saved["script"] is not None and callable(resume):
            resume(saved["script"])

    def _saved(self) -> dict[str, object]:
        return {
            "runtime": self._runtime.saved(),
            "kept": [
                (name, tuple(value.items.values()) if isinstance(value, WorkQueue) else value)
                for name, value in self.kept.items()
            ],
            "undelivered": self._undelivered.saved(),
            "script": script_position(self._script),
            "beside": None if self._beside is None else self._beside.saved(),
        }

    def _listen(self) -> None:
        trace = self._runtime.trace
        add, passed = trace.add, trace.passed

        def event(event: Event) -> None:
            add(event)
            self._commit()

        def silent(what: str, job: str) -> None:
            passed(what, job)
            if what in REPLY_OVER:
                self._undelivered.stored(job)
            self._commit()

        trace.add, trace.passed = event, silent

    def _commit(self) -> None:
        if self._running:
            self._session.commit()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Commit the runtime's progress inside the block, starting from the application's current state."""
        with self._session.at_work():
            self._session.commit()
            self._running = True
            try:
                yield
            finally:
                self._running = False
            self._session.commit("ended")

    def close(self) -> None:
        """Release the run."""
        self._session.release()


class UndeliveredReplies:
    """A provider that passes requests on, except for jobs with an undelivered reply.

    Such a reply is the last answer of a job that another process received but did not store.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._pending: dict[str, RawReply] = {}
        self._undelivered: dict[str, RawReply] = {}

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request."""
        undelivered = self._undelivered.pop(request.job_id, None)
        reply = self._provider.complete(request) if undelivered is None else undelivered
        self._pending[request.job_id] = reply
        return reply

    def stored(self, job: str) -> None:
        """Record that the last answer of a job is durable."""
        self._pending.pop(job, None)
        self._undelivered.pop(job, None)

    def saved(self) -> list[tuple[str, bytes, float]]:
        """Return the answers that are not stored yet."""
        return [(job, reply.body, reply.latency) for job, reply in self._pending.items()]

    def resume(self, saved: list[tuple[str, bytes, float]]) -> None:
        """Restore the undelivered answers that another process `saved`."""
        self._undelivered = {job: RawReply(body, latency) for job, body, latency in saved}
        self._pending = dict(self._undelivered)
