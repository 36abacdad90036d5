"""Commits a runtime to a store while it runs, and resumes a runtime from a store.

`Session` commits a run. `KeptRuntime` keeps an application's runtime in a store, including its jobs, clock,
script and named objects. `job_views` shows stored jobs without the application.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from statek_sim.durability.graph import Graph
from statek_sim.durability.kinds import ITEMS, PLACE, Anchors, anchored
from statek_sim.durability.writing import ROOT, Rows
from statek_sim.errors import BadStore, Damaged
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.model_request import REPLY_OVER
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.state.access import FULL, access
from statek_sim.runtime.state.status import RunLost
from statek_sim.scriptable import script_position
from statek_sim.store.codec import TAG
from statek_sim.store.protocol import Changes, Lease, Status, Store, Stored
from statek_sim.store.worker import Heartbeat
from statek_sim.trace import Event, as_dict, event_of
from statek_sim.values import JSON
from statek_sim.world.queue import WorkQueue


class Session:
    """Commits the state returned by `saved`, and the trace, for a runtime whose jobs keep only storable values.

    `lease` is the lease with the newest revision. Inside an `acts` block, nothing is committed, because the
    block's changes must be saved together.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        runtime: Runtime,
        anchors: Anchors,
        saved: Callable[[], Mapping[str, object]],
    ) -> None:
        self.lease = lease
        self._store = store
        self._runtime = runtime
        self._saved = saved
        self._rows: Rows = {}
        self._events = 0
        self._acting = 0
        self._lost: Exception | None = None
        self._heartbeat = Heartbeat(store, lease)
        self._graph = Graph(anchors, runtime.services.meter("gpt-4o"))
        runtime.host.why_not = self._graph.why_not

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Convert every error inside the block to `Damaged`; the block restores a run."""
        try:
            yield
        except Exception as error:
            what = str(error) if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
            raise Damaged(
                f"{self._store.address}: run {self.lease.run!r}: the stored state cannot be resumed: "
                f"{what}; restore the store from a backup, or start the run again"
            ) from error

    def read(self, stored: Stored) -> dict[str, Any]:
        """Return the mapping saved by the last commit. Call it in a `reading` block."""
        saved = self._graph.read(stored.rows)
        self._rows, self._events = dict(stored.rows), len(stored.events)
        return saved

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Renew the lease during the block, and raise the error from a failed commit even if the block caught it."""
        try:
            with self._heartbeat.beating():
                yield
        except RunLost as lost:
            raise lost.error from None
        except Exception:
            if self._lost is not None:
                raise self._lost from None
            raise

    @contextmanager
    def acts(self) -> Iterator[None]:
        """Commit the changes made inside the block together, when the block ends."""
        self._acting += 1
        try:
            yield
        finally:
            self._acting -= 1
        self.commit()

    def commit(self, status: Status = "running") -> None:
        """Save the current state durably, unless an `acts` block is active.

        Raises `RunLost` if the commit fails, and on every later call: this process has continued without the
        store, so its later state must not be saved.
        """
        self._lost = self._lost or self._heartbeat.taken
        if self._lost is not None:
            raise RunLost(self._lost) from self._lost
        if self._acting:
            return
        try:
            self._commit(status)
        except Exception as error:
            self._lost = error
            raise RunLost(error) from error

    def _commit(self, status: Status) -> None:
        # With full access, because a commit may happen while agent code is running.
        with access(FULL):
            rows, trace = self._graph.rows(self._saved()), self._runtime.trace.events
        lost = [name for name in self._rows if name not in rows]
        changes = Changes(
            rows={name: row for name, row in rows.items() if self._rows.get(name) != row},
            gone=lost,
            events=[_event_text(event) for event in trace[self._events :]],
            status=status,
        )
        if changes or status != "running":
            self.lease = self._store.commit(self.lease, changes)
        self._graph.forget(lost)
        self._rows, self._events = rows, len(trace)

    def release(self) -> None:
        """Release the run. If the store fails again after a failed commit, the lease is left to expire."""
        with suppress(BadStore) if self._lost is not None else nullcontext():
            self._store.release(self.lease)


def _event_text(event: Any) -> str:
    return json.dumps(as_dict(event), default=dict, separators=(",", ":"))


_DEEPEST: Final = 6
_BACK: Final = frozenset({"_job", "job", "host", "parent_job"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A stored job, for display. Values are JSON; a value that JSON cannot represent is shown as its kind."""

    run: str
    id: str
    role: str
    parent: str | None
    status: str
    stop: str | None
    turns: int
    at: float
    exit: JSON
    waits: bool
    locals: Mapping[str, JSON]
    console: Sequence[str]
    chat: Sequence[JSON]
    handlers: Sequence[JSON]
    inbox: int


class StoredRows:
    """Reads a run's rows for display, without creating objects."""

    def __init__(self, stored: Stored) -> None:
        self._run = stored.run
        self._rows = stored.rows

    def row(self, name: str) -> Any:
        """Return a row; raises `Damaged` if the row is missing or not JSON."""
        try:
            return json.loads(self._rows[name])
        except (KeyError, ValueError) as error:
            raise Damaged(
                f"run {self._run!r}: row {name!r} cannot be read ({error}); restore the store from a backup"
            ) from None

    def fields(self, reference: Any) -> Any:
        """Return an object's attributes, or a collection's items."""
        return self.row(reference["v"])["v"]

    def plain(self, encoded: Any, depth: int = 0) -> JSON:
        """Convert an encoded value to a readable form, for display."""
        if not isinstance(encoded, dict):
            return encoded  # type: ignore[no-any-return]  # JSON
        kind, content = encoded[TAG], encoded["v"]
        if depth > _DEEPEST:
            return "..."
        match kind:
            case "e":
                return self._object(content, depth)
            case "tuple" | "frozenset" | "ordered frozenset":
                return [self.plain(one, depth + 1) for one in content]
            case "enum":
                return str(content[1])
            case "a" | "g":
                return f"<{content}>"
            case "lost":
                return f"<lost: {content}>"
            case "messages" | "record":
                return f"<{kind}: {len(content)}>"
            case _:
                return f"<{kind} {content}>"

    def _object(self, name: str, depth: int) -> JSON:
        row = self.row(name)
        kind, content = row["k"], row["v"]
        match kind:
            case "list" | "set" | "ordered set":
                return [self.plain(one, depth + 1) for one in content]
            case "dict":
                return {str(self.plain(key)): self.plain(one, depth + 1) for key, one in content}
            case "Job":
                return f"<job {content['id']}>"
            case "history":
                return "<history>"
        fields = {
            name: self.plain(one, depth + 1)
            for name, one in content.items()
            if name not in _BACK and name not in ("local_state", PLACE, ITEMS)
        }
        return {"kind": str(kind).rpartition("/")[2], **fields}


def job_views(stored: Stored) -> list[JobView]:
    """Return a run's jobs in creation order; none before the run's first commit."""
    if not stored.rows:
        return []
    rows = StoredRows(stored)
    try:
        root = rows.row(ROOT)["v"]["runtime"]
        return [_job(rows, stored.run, root["now"], one) for one in root["book"]["jobs"]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise Damaged(
            f"run {stored.run!r}: a row cannot be read: {type(error).__name__}: {error}; "
            "restore the store from a backup"
        ) from error


def _job(rows: StoredRows, run: str, now: float, reference: Any) -> JobView:
    job = rows.fields(reference)
    life, env, log = (rows.fields(job[name]) for name in ("life", "py_env", "job_log"))
    chat = rows.fields(log["items"])
    parent = job["parent_job"]
    definition = rows.fields(job["job_def"])
    return JobView(
        run=run,
        id=job["id"],
        role=str(rows.plain(definition["agent"])).strip("<>").removeprefix("agent:"),
        parent=None if parent is None else rows.fields(parent)["id"],
        status=str(rows.plain(life["status"])),
        stop=life["stop_reason"],
        turns=_turns(rows, chat),
        at=now,
        exit=rows.plain(env["exit_status"]),
        waits=job["awaited_result"] is not None and rows.plain(life["status"]) != "DONE",
        locals={name: rows.plain(one) for name, one in env["local_state"]},
        console=[str(rows.plain(one)) for one in rows.fields(env["lines"])],
        chat=[rows.plain(one) for one in chat],
        handlers=list(_handlers(rows, job)),
        inbox=len(rows.fields(rows.fields(job["inbox"])["pending"])),
    )


def _turns(rows: StoredRows, chat: Sequence[Any]) -> int:
    objects = (rows.row(one["v"])["k"] for one in chat if isinstance(one, dict) and one[TAG] == "e")
    return sum(kind == "LLM_LogItem" for kind in objects)


def _handlers(rows: StoredRows, job: Mapping[str, Any]) -> Iterator[JSON]:
    for one in rows.fields(rows.fields(job["error_handlers"])["_handlers"]):
        handler = rows.fields(one)
        yield {"handler": rows.plain(handler["error_handler"]), "context": rows.plain(handler["context"])}


APPLICATION: Final = "application"
"""The key in a run's description that marks a run which only its application can resume."""

DIED: Final = "its process died"
"""The reason recorded in the trace when the previous process's worker died."""


class Beside(Protocol):
    """An application's state outside its runtime: objects in memory, and the application's own classes."""

    in_place_of: Mapping[type, type]
    """The application's classes, keyed by the runtime class that each replaces."""

    def named(self) -> Iterable[tuple[str, object]]:
        """Return `(name, object)` pairs for the objects that exist in every process of the application."""

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return the application's tools; functions reachable from them can be stored by name."""

    def saved(self) -> Mapping[str, object]:
        """Return the state that a new process needs in addition to the runtime."""

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the state saved by another process."""


class KeptRuntime:
    """A runtime kept in a store.

    If the run exists in the store, it resumes from its last commit. `agents` are all agents used by jobs, in
    the same order in every process. `kept` maps names to the application's own objects: work queues, lists,
    dicts, sets and instances of `@stored` classes. Afterwards, the attribute `kept` holds the stored objects.
    The application must schedule its own events (`Runtime.at`) again. The runtime commits while it runs, at
    every point where a worker may die, and after each run.
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
                f"{store.address}: run {run!r}: call keep_in before creating the first job; "
                f"the runtime already has {len(runtime.jobs)}"
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
        """Whether the store contained a commit to resume from."""
        try:
            self._go_on(store.load(run), restart)
        except BaseException:
            self._session.release()
            raise
        self._listen()

    def _go_on(self, stored: Stored, restart: float) -> None:
        if not stored.rows:
            # The run is new, or the previous process died before the first commit.
            return
        self.resumed = True
        runtime = self._runtime
        with self._session.reading():
            self._resume(stored)
        if stored.status == "running":
            # Even if the worker was already dead: the application died too, and is now restarting.
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
    """A provider that passes requests on, but answers a job's next request with its undelivered reply, if any.

    A reply is undelivered if the previous process received it, but died before the job stored it.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._pending: dict[str, RawReply] = {}
        self._undelivered: dict[str, RawReply] = {}

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the undelivered reply for the job that makes the request, or else the provider's answer."""
        undelivered = self._undelivered.pop(request.job_id, None)
        reply = self._provider.complete(request) if undelivered is None else undelivered
        self._pending[request.job_id] = reply
        return reply

    def stored(self, job: str) -> None:
        """Record that a job's last answer is durable."""
        self._pending.pop(job, None)
        self._undelivered.pop(job, None)

    def saved(self) -> list[tuple[str, bytes, float]]:
        """Return the answers not yet stored."""
        return [(job, reply.body, reply.latency) for job, reply in self._pending.items()]

    def resume(self, saved: list[tuple[str, bytes, float]]) -> None:
        """Restore the answers saved by the previous process."""
        self._undelivered = {job: RawReply(body, latency) for job, body, latency in saved}
        self._pending = dict(self._undelivered)
