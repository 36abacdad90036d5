"""Kills an agent's process at every moment and resumes it: `python -m tools.crashes` prints what survives.

The agent asks a person, pays, sends a letter, fails and is corrected. After each crash, a new process resumes with a
new agent and a new store on what is left of the disk or the database. A run survives if its result, counters, budget
and effects on the world equal those of an uninterrupted run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg

from statek_sim.agent.approvals import Approvals
from statek_sim.agent.budget import Budget
from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore
from statek_sim.agent.effects import Ask, Parts, PersonSaid, Question
from statek_sim.agent.escalation import Judgement, Ladder, Level, Price
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.protection import BreakerSettings
from statek_sim.agent.reliability import BreakerGate, loop_watcher
from statek_sim.agent.tools.tool import Happened, tool_from
from statek_sim.errors import ProviderHTTPError, StatekSimError
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_call, tool_calls
from statek_sim.providers.scripted import FunctionLLM
from statek_sim.store.database import Database, Sqlite
from statek_sim.store.disk import Disk
from statek_sim.store.files import FileStore
from statek_sim.store.postgres import Postgres
from statek_sim.store.sql import SqlStore
from tests.store.simulated_disk import Killed, SimulatedDisk
from tools.dying_database import DyingDatabase
from tools.npm import NotHere
from tools.postgres import server

TASK: Final = "Pay the rent and tell the landlord."
SESSION: Final = "rent"
KEEP: Final = 2
"""The number of checkpoints that the agent's session keeps."""


@dataclass
class World:
    """Records agents' actions, which stay done even if their processes die."""

    done: list[str] = field(default_factory=list)

    def happened(self, what: str) -> Happened | None:
        """Return whether an action happened."""
        return Happened(what) if what in self.done else None


@dataclass(frozen=True, kw_only=True)
class Errand:
    """An agent's task: each model's replies, the plan, and the escalation ladder."""

    replies: Mapping[str, Sequence[Reply]]
    steps: tuple[str, ...] = ("pay", "send")
    ladder: Ladder | None = None

    def reply(self, request: ChatRequest) -> Reply:
        """Return the next reply in the conversation; models that are not part of the errand are too busy."""
        if request.model not in self.replies:
            raise ProviderHTTPError("too many requests", status=429, latency=1.0)
        answers = sum(message["role"] == "assistant" for message in request.messages)
        return self.replies[request.model][answers]


_MODEL: Final = "gpt-4o"
_PAY: Final = tool_calls(
    ScriptedCall("look", {"at": "inbox"}), ScriptedCall("pay", {"to": "Ann", "sum": 700})
)
_SEND: Final = (tool_call("send", letter="Paid."), text("Rent is paid, the landlord knows."))
_FAIL: Final = (tool_call("nowhere"), tool_call("flaky", attempt=1))

BRIEF: Final = Errand(replies={_MODEL: (_PAY, *_SEND)})
WHOLE: Final = Errand(replies={_MODEL: (_PAY, *_FAIL, *_SEND)})
"""An errand whose model also fails and is corrected."""

UP: Final = Errand(
    replies={"small": [text("No idea.")], "large": [_PAY, text("Paid, I think.")]},
    steps=(),
    ladder=Ladder(
        levels=(
            Level(name="fast", model="small", attempts=2, price=Price(per_million=Decimal(1))),
            Level(name="busy", model="full", attempts=2),
            Level(name="strong", model="large", carry="best", price=Price(per_million=Decimal(9))),
            Level(name="person", question="{task}\n{attempts}", seconds=600),
        ),
        checks=(lambda task, answer: Judgement("sure" in answer, "not sure", score=len(answer)),),
    ),
)
"""An errand with escalation: a poor answer twice, a busy model twice, an unsure model, and a person."""


LADDER_EVERY: Final = 10
"""Only one in this many of that errand's moments is tried: there are many, and most resemble the other errands'."""

UP_A_LADDER: Final = f", up a ladder, every {LADDER_EVERY}th moment"


def agent(world: World, errand: Errand = WHOLE) -> AgentHarness:
    """Return the agent for one process."""

    def look(at: str) -> str:
        """Look."""
        return f"nothing new in the {at}"

    def pay(to: str, sum: int) -> str:  # noqa: A002  # the name that the model uses
        """Pay."""
        world.done.append(f"paid {to} {sum}")
        return world.done[-1]

    def send(letter: str) -> str:
        """Send a letter."""
        world.done.append(f"sent {letter}")
        return world.done[-1]

    def flaky(attempt: int) -> str:
        """Fail."""
        raise ValueError(f"no luck at attempt {attempt}")

    def person(question: Question) -> PersonSaid:
        """Approve requests, and answer whether letters were sent."""
        if "process died" not in question.text:
            return PersonSaid("answered", "I am sure." if question.tool == "person" else "yes")
        sent = world.happened("sent Paid.")
        return PersonSaid("answered", "again" if sent is None else str(sent.value))

    tools = [
        tool_from(look, after_crash="again"),
        tool_from(pay, after_crash=lambda to, sum: world.happened(f"paid {to} {sum}")),  # noqa: A006
        tool_from(send),
        tool_from(flaky, after_crash="again"),
    ]
    gates = (BreakerGate(BreakerSettings(failures=2)), Approvals({"pay": Ask(text="Pay {to}?", seconds=60)}))
    return AgentHarness(
        FunctionLLM(errand.reply),
        model=_MODEL,
        tools=tools,
        steps=errand.steps,
        budget=Budget(tokens=100_000, steps=50),
        parts=Parts(gates=gates, watchers=(loop_watcher(),), ladder=errand.ladder),
        person=person,
    )


MakeStore = Callable[[], SessionStore]


def lived(make_store: MakeStore, world: World, errand: Errand = WHOLE) -> dict[str, Any]:
    """Run one process until the agent finishes or is killed; return everything that must survive."""
    harness = agent(world, errand)
    keeper = Keeper(make_store(), SESSION, worker="w", plan=harness.plan(TASK), keep=KEEP)
    run = harness.run(TASK, keeper=keeper)
    return {
        "stop": run.stop,
        "answer": run.answer,
        "messages": [dict(message) for message in run.conversation.messages],
        "steps": run.enforcer.done,
        "counters": run.counters.saved(),
        "budget": run.budget.saved(),
        "nudges": run.nudges.saved(),
        "calls": run.calls,
        "attempts": run.climbed,
        "parts": [part.saved() for part in (*run.deps.parts.gates[:1], *run.deps.parts.watchers)],  # type: ignore[attr-defined]
        "world": sorted(world.done),
    }


@dataclass
class Tally:
    """Results for one store: moments of death, the states they leave, and how many survive."""

    name: str
    points: int = 0
    states: int = 0
    survived: int = 0
    lost: list[str] = field(default_factory=list)

    def count(self, where: str, expected: Mapping[str, Any], resume: Callable[[], dict[str, Any]]) -> bool:
        """Resume once and count the result; return whether it survived."""
        self.states += 1
        try:
            got = resume()
        except (StatekSimError, ValueError, KeyError) as error:
            self.lost.append(f"{where}: {type(error).__name__}: {error}")
            return False
        wrong = [key for key, value in expected.items() if got[key] != value]
        if wrong:
            self.lost.append(f"{where}: other {', '.join(wrong)}")
        else:
            self.survived += 1
        return not wrong


OnDisk = Callable[[Disk], SessionStore]


def kill_on_disk(
    name: str,
    on_disk: OnDisk,
    *,
    every: int = 1,
    errand: Errand = WHOLE,
    made: Callable[..., SimulatedDisk] = SimulatedDisk,
) -> Tally:
    """Kill between any two file operations, with every possible power loss.

    `every` tries only every n-th operation; `made` creates the disk.
    """
    disk = made()
    expected = lived(lambda: on_disk(disk), World(), errand)
    tally, seen = Tally(name), set[tuple[object, ...]]()
    for point in range(0, disk.operations, every):
        tally.points += 1
        dying, world = made(dies_at=point), World()
        _until_killed(lambda dying=dying: on_disk(dying), world, errand)  # type: ignore[misc]
        for left in dying.after_crash():
            key = (*left.files.items(), *world.done)
            if key in seen:
                continue
            seen.add(key)
            after = left.again()
            tally.count(
                f"operation {point}",
                expected,
                lambda after=after: lived(lambda: on_disk(after), World([*world.done]), errand),  # type: ignore[misc]  # noqa: B023
            )
    return tally


def _until_killed(make_store: MakeStore, world: World, errand: Errand = WHOLE) -> bool:
    """Run until the kill; return whether the run finished first."""
    try:
        lived(make_store, world, errand)
    except Killed:
        return False
    return True


Fresh = Callable[[], Database]


def kill_in_database(
    name: str,
    fresh: Callable[[], tuple[Database, Fresh]],
    *,
    every: int = 1,
    errand: Errand = WHOLE,
    again: bool = False,
) -> Tally:
    """Kill before every statement; `fresh` creates an empty database and a function that reconnects to it.

    With `again`, the resuming process is also killed before each of its statements.
    """
    first, _ = fresh()
    counting = DyingDatabase(first)
    expected = lived(lambda: in_database(counting), World(), errand)
    counting.close()
    tally = Tally(name)
    for point in range(0, counting.statements, every):
        for second in range(0, counting.statements, every) if again else (None,):
            world, (database, connect) = World(), fresh()
            _statements(database, point, world, errand)
            if second is not None and _statements(connect(), second, world, errand):
                break
            tally.points += 1
            after = connect()
            tally.count(
                f"statement {point}" + ("" if second is None else f", then {second}"),
                expected,
                lambda after=after, world=world: _in_database(after, world, errand),  # type: ignore[misc]
            )
            after.close()
    return tally


def _statements(database: Database, most: int, world: World, errand: Errand) -> bool:
    """Run an agent for this many statements; return whether it finished."""
    dying = DyingDatabase(database, dies_at=most)
    ended = _until_killed(lambda: in_database(dying), world, errand)
    dying.close()
    return ended


def _in_database(database: Database, world: World, errand: Errand) -> dict[str, Any]:
    return lived(lambda: in_database(database), world, errand)


@contextmanager
def sqlite_files() -> Iterator[Callable[[], tuple[Database, Fresh]]]:
    """Provide a function that creates empty SQLite databases."""
    with tempfile.TemporaryDirectory(prefix="statek-crashes-") as folder:
        made = 0

        def fresh() -> tuple[Database, Fresh]:
            nonlocal made
            made += 1
            path = Path(folder) / f"{made}.db"
            return Sqlite(path), lambda: Sqlite(path)

        yield fresh


class NoSync(SimulatedDisk):
    """A disk without syncing: rename without fsync."""

    def sync(self, path: str) -> None:
        """Do not wait."""

    def sync_folder(self, folder: str) -> None:
        """Do not wait."""


UNSYNCED_EVERY: Final = 40
"""Only one in this many moments is tried for unsynced files, because a power loss leaves too many states."""


def unsynced(every: int = UNSYNCED_EVERY) -> Tally:
    """Return the results for unsynced files."""
    return kill_on_disk(f"unsynced files, every {every}th moment", files, every=every, made=NoSync)


def files(disk: Disk) -> SessionStore:
    """Return sessions in a file store."""
    return SessionStore(FileStore(disk, clock=lambda: 0.0))


def in_database(database: Database) -> SessionStore:
    """Return sessions in a database."""
    return SessionStore(SqlStore(database, clock=lambda: 0.0))


def table(tallies: list[Tally]) -> str:
    """Return the tallies as a Markdown table."""
    lines = ["| store | points | states | survived |", "|---|---|---|---|"]
    return "\n".join([*lines, *map(row, tallies)])


def row(tally: Tally) -> str:
    """Return a tally as a table row."""
    return f"| {tally.name} | {tally.points} | {tally.states} | {tally.survived} |"


def tallies() -> Iterator[Tally]:
    """Yield the results for every store, this project's first."""
    yield kill_on_disk("files", files)
    yield kill_on_disk(f"files{UP_A_LADDER}", files, errand=UP, every=LADDER_EVERY)
    with sqlite_files() as fresh:
        yield kill_in_database("SQLite", fresh)
        yield kill_in_database(f"SQLite{UP_A_LADDER}", fresh, errand=UP, every=LADDER_EVERY)
    try:
        with server() as conninfo:
            fresh_one = partial(fresh_postgres, conninfo)
            yield kill_in_database("PostgreSQL", fresh_one)
            yield kill_in_database(f"PostgreSQL{UP_A_LADDER}", fresh_one, errand=UP, every=LADDER_EVERY)
    except NotHere as why:
        print(f"NOT TESTED WITH POSTGRESQL: {why}", file=sys.stderr)
    yield unsynced()


def fresh_postgres(conninfo: str) -> tuple[Database, Fresh]:
    """Return an empty database on a server and a function that reconnects to it."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return Postgres(conninfo, address="PostgreSQL"), lambda: Postgres(conninfo, address="PostgreSQL")


def main() -> int:
    """Print the table; return 1 if one of this project's stores lost something."""
    found = list(tallies())
    print(table(found))
    ours = [tally for tally in found if tally.name.split(",")[0] in ("files", "SQLite", "PostgreSQL")]
    for tally in ours:
        for lost in tally.lost[:10]:
            print(f"{tally.name}: {lost}", file=sys.stderr)
    return int(any(tally.lost for tally in ours))


if __name__ == "__main__":
    sys.exit(main())
