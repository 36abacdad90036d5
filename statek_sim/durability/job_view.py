"""What a store says of a run's jobs, read from its rows alone: no agent, no tool and no scenario is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.durability.kinds import ITEMS, PLACE
from statek_sim.durability.session import whole_rows
from statek_sim.durability.writing import ROOT
from statek_sim.errors import Damaged
from statek_sim.store.codec import TAG
from statek_sim.store.protocol import Stored
from statek_sim.values import JSON

_DEEPEST: Final = 6
_BACK: Final = frozenset({"_job", "job", "host", "parent_job"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job as people read it. Values are JSON; what has no word there is told by its kind."""

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


class Rows:
    """The rows of one run, by what they hold; `Damaged` where a piece of one is missing."""

    def __init__(self, stored: Stored) -> None:
        self._run = stored.run
        self._rows = whole_rows(stored.rows)

    def row(self, name: str) -> Any:
        """Return a row; `Damaged` for one that is missing or no JSON."""
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
        """Return a value as people read it."""
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
    """Return the jobs of a run, in the order of their creation; none before its first commit."""
    if not stored.rows:
        return []
    rows = Rows(stored)
    try:
        root = rows.row(ROOT)["v"]["runtime"]
        return [_job(rows, stored.run, root["now"], one) for one in root["book"]["jobs"]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise Damaged(
            f"run {stored.run!r}: a row does not say what it holds: {type(error).__name__}: {error}; put a copy of the "
            "store back"
        ) from error


def _job(rows: Rows, run: str, now: float, reference: Any) -> JobView:
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
        console=[str(rows.plain(one)) for one in rows.fields(env["console"])],
        chat=[rows.plain(one) for one in chat],
        handlers=list(_handlers(rows, job)),
        inbox=len(rows.fields(rows.fields(job["inbox"])["pending"])),
    )


def _turns(rows: Rows, chat: Sequence[Any]) -> int:
    objects = (rows.row(one["v"])["k"] for one in chat if isinstance(one, dict) and one[TAG] == "e")
    return sum(kind == "LLM_LogItem" for kind in objects)


def _handlers(rows: Rows, job: Mapping[str, Any]) -> Iterator[JSON]:
    for one in rows.fields(rows.fields(job["error_handlers"])["_handlers"]):
        handler = rows.fields(one)
        yield {"handler": rows.plain(handler["error_handler"]), "context": rows.plain(handler["context"])}
