"""The driver tells what a runtime refuses from errors of the simulator's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statek_sim.backends.driver import Driver, Refused
from tests.unit.suite_samples import load


class Job:
    """A job that takes nothing."""

    def push_user_message(self, message: str) -> None:
        raise RuntimeError(f"refused: {message}")


class Subtask:
    """A subtask that is completed already."""

    def complete(self, result: Any = None, error: str | None = None) -> None:
        raise ValueError("refused: a second completion")


class Events:
    """The store refuses every value."""

    def __getitem__(self, name: str) -> object:
        raise RuntimeError("a mistake of ours")

    def resolve(self, name: str, value: Any) -> None:
        raise RuntimeError("refused: a value")

    def break_(self, name: str, message: str) -> None:
        raise RuntimeError("a mistake of ours")


class World:
    """A world without a queue."""

    events = Events()
    queue_value = None

    @property
    def queue(self) -> Any:
        raise RuntimeError("a mistake of ours")

    def owner_named(self, name: str) -> object:
        raise RuntimeError("a mistake of ours")


class MistakenSide:
    """A side that has a mistake in everything of its own, and writes down what it makes."""

    now = 0.0
    world = World()

    def __init__(self, *, lost: bool = False, unreadable: str | None = None) -> None:
        self.lost = lost
        self.unreadable = unreadable
        self.made: list[str] = []

    def at(self, when: float, action: Callable[[], None]) -> None:
        action()

    def enter_agent(self, role: str, text: Any) -> None:
        self.made.append(f"agent {role}")
        if role == self.unreadable:
            raise SyntaxError("refused: warmup")

    def add_loop(self, role: str) -> None:
        self.made.append(f"loop {role}")

    def make_job(self, name: str, text: Any, shared: dict[str, Any]) -> Job:
        self.made.append(f"job {name}")
        return Job()

    def job(self, name: str) -> Job:
        if self.lost:
            raise AttributeError("a mistake of ours")
        return Job()

    def make_subtask(self, job: Any, subtask_id: str) -> Subtask:
        return Subtask()

    def kill(self, reason: str, *, in_call: bool) -> None:
        raise RuntimeError("a mistake of ours")

    def restart(self) -> None:
        raise AttributeError("a mistake of ours")


def play(folder: Path, event: str, *, lost: bool = False) -> None:
    more = "" if "other" in event else ", {start: other, at: 9}"
    (scenario,) = load(
        folder,
        "  - id: one\n    title: One\n    agents: {worker: {}}\n    jobs:\n"
        "      main: {}\n      helper: {parent: main, subtask: errand}\n"
        "      other: {message: hello}\n"
        "    world: {futures: [door]}\n    script: {worker: [{code: exit(1)}]}\n"
        f"    events: [{event}{more}]\n",
    )
    Driver(scenario, MistakenSide(lost=lost)).begin()  # type: ignore[arg-type]  # its world is not ours


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("{push: main, message: go, at: 1}", RuntimeError),
        ("{notify: main, message: go, at: 1}", AttributeError),
        ("{complete: errand, result: 1, at: 1}", ValueError),
        ("{resolve: door, value: 1, at: 1}", RuntimeError),
        ("{start: other, at: 1}", RuntimeError),
    ],
)
def test_what_the_application_is_refused_is_told_as_refused(
    tmp_path: Path, event: str, kind: type[Exception]
) -> None:
    with pytest.raises(Refused) as refused:
        play(tmp_path, event)
    assert type(refused.value.reason) is kind


@pytest.mark.parametrize(
    ("event", "lost"),
    [
        ("{restart: worker, at: 1}", False),
        ("{crash: worker, at: 1}", False),
        ("{fail: door, error: no, at: 1}", False),
        ("{push: main, message: go, at: 1}", True),
    ],
)
def test_a_mistake_of_the_simulator_keeps_its_type_and_its_traceback(
    tmp_path: Path, event: str, *, lost: bool
) -> None:
    with pytest.raises((AttributeError, RuntimeError, ValueError), match=r"^a mistake of ours$"):
        play(tmp_path, event, lost=lost)


def fleet(folder: Path, side: MistakenSide) -> Driver:
    (scenario,) = load(
        folder,
        "  - id: one\n    title: One\n    agents: {clerk: {}, planner: {}}\n    jobs: {main: {agent: planner}}\n"
        "    loops: [clerk]\n    world: {queue: {items: [a]}}\n    script: {planner: [{code: exit(1)}]}\n",
    )
    return Driver(scenario, side)  # type: ignore[arg-type]  # its world is not ours


def test_agents_are_there_before_loops_and_loops_before_jobs(tmp_path: Path) -> None:
    side = MistakenSide()
    driver = fleet(tmp_path, side)
    driver.prepare()
    driver.begin()
    assert side.made == ["agent clerk", "agent planner", "loop clerk", "job main"]


def test_an_agent_whose_warmup_cannot_be_read_is_refused_before_anything_is_made_with_it(
    tmp_path: Path,
) -> None:
    side = MistakenSide(unreadable="planner")
    with pytest.raises(Refused, match=r"^refused: warmup$") as refused:
        fleet(tmp_path, side).prepare()
    assert refused.value.kind == "SyntaxError"
    assert side.made == ["agent clerk", "agent planner"]
