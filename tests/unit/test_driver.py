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

    def resolve(self, name: str, value: Any) -> None:
        raise RuntimeError("refused: a value")

    def break_(self, name: str, message: str) -> None:
        raise RuntimeError("a mistake of ours")


class Stage:
    """A stage that has a mistake in everything of its own."""

    now = 0.0
    events = Events()

    def __init__(self) -> None:
        self.lost = False

    def at(self, when: float, action: Callable[[], None]) -> None:
        action()

    def make_job(self, name: str, text: Any, shared: dict[str, Any]) -> Job:
        return Job()

    def job(self, name: str) -> Job:
        if self.lost:
            raise AttributeError("a mistake of ours")
        return Job()

    def thing(self, reference: Any) -> object:
        raise RuntimeError("a mistake of ours")

    def make_subtask(self, job: Any, subtask_id: str) -> Subtask:
        return Subtask()

    def find_subtask(self, subtask_id: str) -> Subtask | None:
        return None

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
    stage = Stage()
    stage.lost = lost
    Driver(scenario, stage).begin()


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
