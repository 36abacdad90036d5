"""A scenario run that survives its process: it commits at every point where a worker may die."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from statek_sim.backends.deviation_plan import Place
from statek_sim.backends.deviations import Exploring, FirstRun, Watcher
from statek_sim.backends.driver import Driver, world_object
from statek_sim.backends.record import RunRecord
from statek_sim.backends.reference import ReferenceRun
from statek_sim.backends.setup import RunOptions
from statek_sim.durability.kinds import Anchors, anchored
from statek_sim.durability.session import APPLICATION, Session
from statek_sim.errors import BadStore, Damaged, NotOurs
from statek_sim.scenario.part import WorldReference, references_in
from statek_sim.scenario.schema import Scenario
from statek_sim.store.protocol import Lease, Status, Store, Stored
from statek_sim.trace import event_of
from statek_sim.values import JSON


def _died(_place: Place) -> str:
    """Return the text that the trace records for a worker whose process ended."""
    return "its process died"


class DurableRun:
    """A run of one scenario under one profile, with the run's state in a store.

    Without `stored` state, the run starts at the beginning. Otherwise it resumes: the previous process's
    worker counts as dead, and a new worker starts `restart` virtual seconds after the last commit. `reason`
    returns the text that the trace records for that death. `first_run` contains the uninterrupted run's
    replies, if an explorer passes them. `watch` is called at every point where the worker may die, after the
    commit.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        scenario: Scenario,
        profile: str,
        *,
        preset: str | None = None,
        seed: int | None = None,
        stored: Stored | None = None,
        first_run: FirstRun | None = None,
        reason: Callable[[Place], str] = _died,
        restart: float = 0.0,
        watch: Watcher | None = None,
    ) -> None:
        self._restarts: list[float] = []
        self._stored = stored
        self._reason = reason
        self._restart = restart
        self.buried = False
        """Whether the worker was alive when the previous process ended."""
        self.went_on_from: Place | None = None
        """The position of the previous process's last commit; None for a new run."""
        self.run = ReferenceRun(
            scenario,
            profile,
            RunOptions(preset=preset, seed=seed),
            exploring=Exploring(
                first_run=first_run,
                watch=watch,
                commit=self.commit,
                pinned=first_run is not None or bool(scenario.deviations),
            ),
        )
        self.run.go_on, self.run.planned = self._begin, self._begun
        self._session = Session(store, lease, self.run.runtime, _anchors(self.run), self._saved)

    # -- from one process to the next --------------------------------------------------------------------------

    def _begin(self, driver: Driver) -> None:
        """Restore the previous process's state, if there was one."""
        driver.acts = self._session.acts
        stored = self._stored
        if stored is None:
            return
        if not stored.rows:
            # The process died before its first commit, so nothing had been acknowledged.
            return
        self.run.resumed = True
        with self._session.reading():
            saved = self._session.read(stored)
            place, begun = saved["place"], saved["begun"]
            self._resume(saved, driver)
        self.went_on_from = place
        if stored.status == "running" and self.run.runtime.worker_alive:
            self._restarts.append(self.run.runtime.clock.now() + self._restart)
            self.buried = True
            self.run.runtime.crash_worker(self._reason(place))
        if not begun:
            # The order is the same as in a single process: this comes before anything that the application schedules.
            self._begun()

    def _begun(self) -> None:
        """Schedule the new workers after everything that the previous process had scheduled."""
        assert self.run.deviations is not None, "every durable run is explored"
        restarts, self._restarts = self._restarts, []
        for at in restarts:
            self.run.deviations.restart_at(at)

    def _resume(self, saved: Mapping[str, Any], driver: Driver) -> None:
        run = self.run
        assert self._stored is not None, "there is something to resume from"
        run.runtime.resume(saved["runtime"], map(event_of, map(json.loads, self._stored.events)))
        world = saved["world"]
        run.world.queue.items.clear()
        run.world.queue.items.update((item.id, item) for item in world["items"])
        for name, members in world["owners"].items():
            run.world.owner_named(name).become(members)
        run.world.events.resume(world["events"])
        run.world.ledger.lines[:] = world["ledger"]
        run.replies.resume(saved["replies"])
        if run.script is not None:
            run.script.resume(saved["script"])
        assert run.deviations is not None, "every durable run is explored"
        self._restarts += [*run.deviations.resume(saved["deviations"]), *saved["restarts"]]
        driver.remember(saved["driver"])
        driver.subtasks.update(saved["subtasks"])

    # -- commits -----------------------------------------------------------------------------------------------

    @property
    def lease(self) -> Lease:
        """The run's current lease."""
        return self._session.lease

    def commit(self, status: Status = "running") -> None:
        """Commit the current state unless the application is in the middle of an action."""
        self._session.commit(status)

    def _saved(self) -> dict[str, object]:
        run = self.run
        return {
            "runtime": run.runtime.saved(),
            "world": {
                "items": [*run.world.queue.items.values()],
                "owners": {name: dict(vars(owner)) for name, owner in run.world.owners.items()},
                "events": run.world.events.saved(),
                "ledger": [*run.world.ledger.lines],
            },
            "replies": run.replies.saved(),
            "script": None if run.script is None else run.script.saved(),
            "deviations": None if run.deviations is None else run.deviations.saved(),
            "place": None if run.deviations is None else run.deviations.place,
            "restarts": [*self._restarts],
            "begun": run.begun,
            "driver": run.driver.memory(),
            "subtasks": dict(run.driver.subtasks),
        }

    # -- running -----------------------------------------------------------------------------------------------

    def finish(self, *, allow_network: bool = False) -> RunRecord:
        """Run to the end, release the run and return its record; raises the error from a failed commit."""
        try:
            with self._session.at_work(), closing(self.run.runtime):
                outcome, error = self.run.play(allow_network=allow_network)
                # A failed run is finished too: its script would not match the next time either.
                self.commit("ended")
                return self.run.record(outcome, error)
        finally:
            self._session.release()


def _anchors(run: ReferenceRun) -> Anchors:
    runtime, world = run.runtime, run.world
    named: list[tuple[str, object]] = [
        ("host", runtime.host),
        ("profile", runtime.profile),
        ("owner", world.owner),
        ("queue", world.queue),
        ("queue/signal", world.queue.signal),
    ]
    for text in run.scenario.jobs.values():
        owners = [
            reference
            for _, reference in references_in(dict(text.locals))
            if isinstance(reference, WorldReference)
        ]
        named += [
            (f"owner:{reference.name}", world_object(world, reference))
            for reference in owners
            if reference.kind == "owner"
        ]
    for event in world.events.all():
        named += [(f"event:{event.name}", event), (f"event:{event.name}/signal", event.signal)]
    return anchored(run.agents.values(), named)


def about(scenario: Scenario, profile: str, *, preset: str | None, seed: int | None) -> dict[str, JSON]:
    """Describe a run for the store, so that `resumed_run` can resume it."""
    return {
        "scenario": {
            **scenario.model_dump(mode="json", exclude_unset=True),
            # The file may define no jobs; the scenario then has one job, `main`.
            "jobs": {
                name: job.model_dump(mode="json", exclude_unset=True) for name, job in scenario.jobs.items()
            },
        },
        "profile": profile,
        "preset": preset,
        "seed": seed,
    }


def run_name(scenario: Scenario, profile: str) -> str:
    """Return the name of a scenario's run in a store."""
    return f"{scenario.suite}/{scenario.id}[{profile}]"


def opened_run(
    store: Store,
    scenario: Scenario,
    profile: str,
    *,
    worker: str,
    preset: str | None = None,
    seed: int | None = None,
    restart: float = 0.0,
) -> DurableRun:
    """Start a run in a store, or resume it if it is stored; raises `BadStore` if the stored description differs."""
    name, facts = run_name(scenario, profile), about(scenario, profile, preset=preset, seed=seed)
    lease = store.claim(name, worker=worker, about=facts)
    stored = store.load(name)
    if _without_place(stored.about) != _without_place(facts):
        store.release(lease)
        raise BadStore(
            f"{store.address}: run {name!r} was started with a different scenario, preset or seed; "
            "use the original values, or a different store"
        )
    return DurableRun(
        store, lease, scenario, profile, preset=preset, seed=seed, stored=stored, restart=restart
    )


def resumed_run(store: Store, lease: Lease, *, restart: float = 0.0) -> DurableRun:
    """Resume a claimed run using only the data in the store."""
    stored = store.load(lease.run)
    facts: Mapping[str, Any] = stored.about
    if APPLICATION in facts:
        raise NotOurs(
            f"{store.address}: run {lease.run!r}: the run belongs to an application; start the "
            "application again to continue it"
        )
    try:
        scenario = Scenario.model_validate({**facts["scenario"], "path": Path(facts["scenario"]["path"])})
        profile, preset, seed = facts["profile"], facts["preset"], facts["seed"]
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(
            f"{store.address}: run {lease.run!r}: its description cannot be read: {error}"
        ) from error
    return DurableRun(
        store, lease, scenario, profile, preset=preset, seed=seed, stored=stored, restart=restart
    )


def _without_place(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description without the file location and the expectations, which do not affect a run."""
    scenario = {
        key: value
        for key, value in facts["scenario"].items()
        if key not in ("path", "line", "file_digest", "expect", "expect_in", "title", "proves", "tags")
    }
    return {**facts, "scenario": scenario}
