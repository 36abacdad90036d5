"""One run of a store in one process: its last commit, and the additions of the next one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.durability.graph import Graph
from statek_sim.durability.kinds import ITEMS, PLACE, Anchors
from statek_sim.durability.writing import ROOT, Rows
from statek_sim.errors import BadStore, Damaged
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.state.access import FULL, access
from statek_sim.runtime.state.status import RunLost
from statek_sim.store.codec import TAG
from statek_sim.store.protocol import Changes, Lease, Status, Store, Stored
from statek_sim.store.worker import Heartbeat
from statek_sim.trace import as_dict
from statek_sim.values import JSON


class Session:
    """Commits the result of `saved` and the trace of a runtime, whose jobs from now on keep only storable values.

    `lease` is the newest one. Inside of `acts`, whose changes must be saved as a whole, nothing is committed.
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
        """Report every error caused by the store, while a run is restored, as `Damaged`."""
        try:
            yield
        except Exception as error:
            what = str(error) if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
            raise Damaged(
                f"{self._store.address}: run {self.lease.run!r}: what is stored cannot be resumed: {what}; put a "
                "copy of the store back, or begin the run anew"
            ) from error

    def read(self, stored: Stored) -> dict[str, Any]:
        """Return what was saved at the last commit; inside `reading` it raises `Damaged`."""
        saved = self._graph.read(stored.rows)
        self._rows, self._events = dict(stored.rows), len(stored.events)
        return saved

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep the lease, and raise the error of a failed commit inside, even if it was caught on its way."""
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
        """Commit the changes made inside at the end: all of them, or nothing."""
        self._acting += 1
        try:
            yield
        finally:
            self._acting -= 1
        self.commit()

    def commit(self, status: Status = "running") -> None:
        """Save the current state durably, unless a block of `acts` is active.

        Raises `RunLost` if it fails, and at every call after that: the run in this process has continued, and the store
        must not follow it.
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
        # In the middle of an agent's code everything is read too.
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
        """Release the run; a store that has failed may fail here too: then its lease expires."""
        with suppress(BadStore) if self._lost is not None else nullcontext():
            self._store.release(self.lease)


def _event_text(event: Any) -> str:
    return json.dumps(as_dict(event), default=dict, separators=(",", ":"))


_DEEPEST: Final = 6
_BACK: Final = frozenset({"_job", "job", "host", "parent_job"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job for display. Values are JSON; a value without JSON equivalent is shown by its kind."""

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
    """The rows of one run, by contents."""

    def __init__(self, stored: Stored) -> None:
        self._run = stored.run
        self._rows = stored.rows

    def row(self, name: str) -> Any:
        """Return a row; `Damaged` for one that is missing or not JSON."""
        try:
            return json.loads(self._rows[name])
        except (KeyError, ValueError) as error:
            raise Damaged(
                f"run {self._run!r}: row {name!r} cannot be read ({error}); put a copy of the store back"
            ) from None

    def fields(self, reference: Any) -> Any:
        """Return the attributes of an object, or the items of a collection."""
        return self.row(reference["v"])["v"]

    def plain(self, encoded: Any, depth: int = 0) -> JSON:
        """Return a value for display."""
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
    """Return the jobs of a run, in order of creation; none before its first commit."""
    if not stored.rows:
        return []
    rows = StoredRows(stored)
    try:
        root = rows.row(ROOT)["v"]["runtime"]
        return [_job(rows, stored.run, root["now"], one) for one in root["book"]["jobs"]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise Damaged(
            f"run {stored.run!r}: a row does not say what it holds: {type(error).__name__}: {error}; put a copy of the "
            "store back"
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
