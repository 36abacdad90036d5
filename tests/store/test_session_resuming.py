"""A run goes on from a store: under asyncio too, in another process, and what cannot go on says why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statek_sim.agent.async_driver import AsyncDriver, LoopClock, model_of
from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore
from statek_sim.agent.effects import Advice, CallGate, Parts, ToolContext, TurnFacts
from statek_sim.agent.escalation import Ladder, Level
from statek_sim.agent.guards.pipeline import GuardSet, in_loop
from statek_sim.agent.guards.shipped import secrets
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.simulation import Simulation
from statek_sim.agent.tools.tool import tool_from
from statek_sim.errors import BadInput, Damaged, OtherPlan, Unanswered
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Reply, text, tool_call
from statek_sim.providers.scripted import FunctionLLM, ScriptedLLM
from statek_sim.store.codec import canonical, encoded
from statek_sim.store.database import Sqlite
from statek_sim.store.disk import RealDisk
from statek_sim.store.files import FileStore
from statek_sim.store.sql import SqlStore
from statek_sim.trace import JobCreated, RunResumed
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.says import line_with
from tests.store.simulated_disk import Killed, SimulatedDisk
from tests.tables import table_test


def replies(request: ChatRequest) -> Reply:
    said = sum(message["role"] == "tool" for message in request.messages)
    return tool_call("look", at=said) if said < 3 else text("Done.")


def look(at: int) -> str:
    """Look."""
    return f"saw {at}"


@pytest.fixture
def database() -> Iterator[Sqlite]:
    made = Sqlite(":memory:")
    yield made
    made.close()


def agent(**changes: Any) -> AgentHarness:
    return AgentHarness(FunctionLLM(replies), tools=[look], steps=["look"], **changes)


def facts(run: AgentRun) -> tuple[object, ...]:
    return (run.answer, list(run.conversation.messages), run.counters.saved(), run.budget.saved(), run.calls)


async def under_asyncio(harness: AgentHarness, keeper: Keeper) -> AgentRun:
    clock = LoopClock()
    assert harness.provider is not None
    driver = AsyncDriver(
        model_of(harness.provider), clock=clock.now, committed=keeper.save, receipted=keeper.note
    )
    run = harness.begin("Go", clock=clock, keeper=keeper)
    await driver.run(run)
    return run


@table_test("point", range(5, 160, 31))
def test_a_run_that_died_under_asyncio_goes_on_in_virtual_time_and_the_other_way_round(point: int) -> None:
    expected = facts(agent().run("Go"))
    for first, second in ((True, False), (False, True)):
        dying = SimulatedDisk(dies_at=point)
        with pytest.raises(Killed):
            _live(dying, asynchronous=first)
        run = _live(dying.again(), asynchronous=second)
        assert facts(run) == expected


def _live(disk: SimulatedDisk, *, asynchronous: bool) -> AgentRun:
    harness = agent()
    keeper = Keeper(
        SessionStore(FileStore(disk, clock=lambda: 0.0)), "s", worker="w", plan=harness.plan("Go")
    )
    if asynchronous:
        return run_in(VirtualLoop(), under_asyncio(harness, keeper))
    return harness.run("Go", keeper=keeper)


def test_a_session_that_goes_on_has_its_seconds_behind_it_under_asyncio() -> None:
    store = SessionStore(FileStore(SimulatedDisk(), clock=lambda: 0.0))
    harness = AgentHarness(ScriptedLLM([tool_call("nap"), text("Done.")]), tools=[nap])
    harness.run("Go", keeper=Keeper(store, "s", worker="w", plan=harness.plan("Go")))
    keeper = Keeper(store, "s", worker="w", plan=harness.plan("Go"))
    assert keeper.kept is not None
    assert keeper.kept.checkpoint.entry.at == 20

    async def begins(clock: LoopClock, *, read: bool = False) -> float:
        if read:
            clock.now()
        return harness.begin("Go", clock=clock, keeper=keeper).now()

    assert run_in(VirtualLoop(start=7.0), begins(LoopClock())) == 20
    assert run_in(VirtualLoop(start=7.0), begins(LoopClock(since=25))) == 25
    refusal = (
        r"^a session saved at 20 s cannot continue on a clock that is at 0 s; expected a separate LoopClock"
    )
    with pytest.raises(BadInput, match=refusal):
        run_in(VirtualLoop(), begins(LoopClock(), read=True))


async def nap(context: ToolContext) -> str:
    """Sleep."""
    await context.sleep(20)
    return "slept"


def test_a_run_under_asyncio_in_real_time_is_saved(tmp_path: Path) -> None:
    store = SessionStore(SqlStore(Sqlite(tmp_path / "x.db"), clock=lambda: 0.0))
    harness = agent()
    asyncio.run(under_asyncio(harness, Keeper(store, "s", worker="w", plan="p")))
    kept = store.latest("s")
    assert kept is not None
    assert kept.checkpoint.entry.status == "completed"
    store.close()


def test_the_trace_of_a_new_process_says_whose_run_goes_on() -> None:
    dying = SimulatedDisk(dies_at=60)
    with pytest.raises(Killed):
        _live(dying, asynchronous=True)
    harness = agent()
    store = SessionStore(FileStore(dying.again(), clock=lambda: 0.0))
    harness.run("Go", keeper=Keeper(store, "s", worker="w", plan=harness.plan("Go")))
    told = [event for event in harness.trace.events if isinstance(event, JobCreated | RunResumed)]
    assert [type(event) for event in told] == [JobCreated, RunResumed]
    assert [(event.job, event.role) for event in told if isinstance(event, JobCreated)] == [
        ("main", harness.spec.role)
    ]


def test_a_run_goes_on_from_an_earlier_checkpoint() -> None:
    store = SessionStore(FileStore(SimulatedDisk(), clock=lambda: 0.0))

    def requests(resume: int | None) -> int:
        llm = FunctionLLM(replies)
        harness = AgentHarness(llm, tools=[look], steps=["look"])
        keeper = Keeper(store, "s", worker="w", plan=harness.plan("Go"), keep=99, resume=resume)
        points.append(keeper.kept.checkpoint.entry.point if keeper.kept else "new")
        assert harness.run("Go", keeper=keeper).answer == "Done."
        return len(llm.requests)

    points: list[str] = []
    assert [requests(number) for number in (None, None, 1, 4)] == [4, 0, 4, 3]
    assert points == ["new", "ended", "began", "tools_returned"]
    with pytest.raises(BadInput, match=line_with("session 's'", "no checkpoint 99", "1 to")):
        requests(99)


def test_a_session_of_another_task_is_not_resumed() -> None:
    store = SessionStore(FileStore(SimulatedDisk(), clock=lambda: 0.0))
    harness = agent()
    harness.run("Go", keeper=Keeper(store, "s", worker="w", plan=harness.plan("Go")))
    with pytest.raises(OtherPlan):
        Keeper(store, "s", worker="w", plan=harness.plan("Come"))
    assert agent(model="gpt-4").plan("Go") == harness.plan("Go")


def watcher_that_hides_what_it_knows() -> Any:
    seen: list[int] = []

    def watch(turn: TurnFacts) -> Advice | None:
        seen.append(turn.turn)
        return None

    return watch


def test_a_part_that_may_know_something_and_does_not_say_it_is_refused() -> None:
    harness = agent(parts=Parts(watchers=(watcher_that_hides_what_it_knows(),)))
    keeper = Keeper(SessionStore(FileStore(SimulatedDisk(), clock=lambda: 0.0)), "s", worker="w", plan="p")
    with pytest.raises(BadInput, match=r"^watchers: a .* may have state that a checkpoint would lose"):
        harness.run("Go", keeper=keeper)


class Counting(CallGate):
    """A gate that knows how many calls it let through."""

    def __init__(self) -> None:
        self.calls = 0

    def admit(self, call: Any, *, at: float) -> str | None:
        self.calls += 1
        return None

    def ended(self, call: Any, outcome: Any, *, at: float) -> None:
        pass

    def withdrawn(self, call: Any, *, at: float) -> None:
        pass

    def saved(self) -> object:
        return self.calls

    def restore(self, saved: Any) -> None:
        self.calls = saved


def test_other_parts_or_tools_than_it_was_committed_with_are_refused() -> None:
    disk = SimulatedDisk(dies_at=100)
    first = agent(parts=Parts(gates=(Counting(),)))
    dying = Keeper(SessionStore(FileStore(disk, clock=lambda: 0.0)), "s", worker="w", plan="p")
    with pytest.raises(Killed):
        first.run("Go", keeper=dying)
    keeper = Keeper(SessionStore(FileStore(disk.again(), clock=lambda: 0.0)), "s", worker="w", plan="p")
    with pytest.raises(BadInput, match=line_with("2 gates", "now has 1")):
        agent().begin("Go", keeper=keeper)
    other = AgentHarness(FunctionLLM(replies), parts=Parts(gates=(Counting(),)))
    with pytest.raises(BadInput, match=line_with("tools", "not have", "look")):
        other.begin("Go", keeper=keeper)


def test_progress_is_for_people(tmp_path: Path) -> None:
    harness = agent()
    store = SessionStore(FileStore(RealDisk(tmp_path), clock=lambda: 0.0))
    harness.run("Go", keeper=Keeper(store, "s", worker="w", plan="p"))
    told = (tmp_path / "s" / "progress.txt").read_text()
    assert told.startswith(
        "Session: s\nStatus: completed\nStep: 12\nCurrent: \nCompleted: look, look, look\n"
    )
    assert (tmp_path / "s" / "results" / "step-02-output.md").read_text() == "# look(at=1)\n\nsaw 1\n"
    assert max(one.name for one in (tmp_path / "s" / "checkpoints").iterdir()) == "cp-0012.json"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"of": {}, "seal": 1}', b"\xff"])
def test_a_damaged_or_foreign_session_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "run.json").write_bytes(content)
    with pytest.raises(Damaged, match=r"^files: run 's': run\.json "):
        SessionStore(FileStore(RealDisk(tmp_path), clock=lambda: 0.0)).latest("s")


def test_a_checkpoint_of_a_newer_version_is_refused(database: Sqlite) -> None:
    harness = agent()
    store = SessionStore(SqlStore(database, clock=lambda: 0.0))
    harness.run("Go", keeper=Keeper(store, "s", worker="w", plan="p"))
    database.execute("UPDATE statek_rows SET content = replace(content, '\"schema\":1', '\"schema\":2')")
    with pytest.raises(Damaged, match=line_with(".json has schema 2", "up to 1")):
        store.latest("s")


def test_no_state_of_a_run_is_beyond_json() -> None:
    snapshots: list[Any] = []
    harness = agent(parts=Parts(commits=True))
    run = harness.begin("Go")

    assert harness.provider is not None
    driver = Simulation(harness.provider, clock=harness.clock, committed=snapshots.append)
    driver.start(run)
    assert driver.run(10.0)
    assert [one.point for one in snapshots][-1] == "ended"
    assert all(canonical(encoded(one.state)) for one in snapshots)


def test_guards_of_texts_are_no_hindrance_to_a_commit() -> None:
    guards = in_loop(GuardSet([secrets()]))
    harness = agent(parts=Parts(guards=(guards,)))
    keeper = Keeper(SessionStore(FileStore(SimulatedDisk(), clock=lambda: 0.0)), "s", worker="w", plan="p")
    assert harness.run("Go", keeper=keeper).answer == "Done."


def ladder(*names: str) -> Parts:
    return Parts(
        ladder=Ladder(
            levels=tuple(Level(name=name, model=name) for name in names),
            checks=(lambda task, answer: "Never" in answer,),
        )
    )


def test_a_run_on_a_ladder_is_not_taken_up_on_another_one() -> None:
    disk = SimulatedDisk(dies_at=380)
    with pytest.raises(Killed):
        _up(disk, "small", "large")
    with pytest.raises(
        BadInput,
        match=line_with("run 'main'", "level 'large'", "number 2", "now has small, huge"),
    ):
        _up(disk.again(), "small", "huge")
    run = _up(disk.again(), "small", "large")
    assert run.climbed is not None
    assert [(one.level, one.number, one.cause.value) for one in run.climbed.attempts] == [
        ("small", 1, "poor_quality"),
        ("large", 1, "poor_quality"),
    ]


def _up(disk: SimulatedDisk, *names: str) -> AgentRun:
    harness = agent(parts=ladder(*names))
    return harness.run(
        "Go", keeper=Keeper(SessionStore(FileStore(disk, clock=lambda: 0.0)), "s", worker="w", plan="p")
    )


def test_a_person_is_told_why_a_tools_own_check_does_not_know(database: Sqlite) -> None:
    def look(at: int) -> str:
        """Look."""
        raise KeyboardInterrupt

    def check(at: int) -> None:
        raise LookupError(f"no ledger for {at}")

    def run() -> AgentRun:
        harness = AgentHarness(FunctionLLM(replies), tools=[tool_from(look, after_crash=check)])
        store = SessionStore(SqlStore(database, clock=lambda: 0.0))
        return harness.run("Go", keeper=Keeper(store, "s", worker="w", plan=harness.plan("Go")))

    with pytest.raises(KeyboardInterrupt):
        run()
    asked = (
        r"look\(at=0\) was being executed\. Its own check does not know: .*no ledger for 0.* Did it happen\?"
    )
    with pytest.raises(Unanswered, match=asked):
        run()
