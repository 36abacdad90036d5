"""Strategies for scripts, arguments, jobs and variations: what they draw runs, and what breaks is made small."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase

from statek_sim import strategies
from statek_sim.backends.run import run_scenario
from statek_sim.cli import main
from statek_sim.errors import BadInput, BadScenario
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.strategies import EXIT, InvariantBroken, Subject
from tests.explore import samples
from tests.strategies import agents_of_mine as mine

FEW = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    report_multiple_bugs=False,
    phases=(Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
CLERK: dict[str, object] = {"prompt": "You pay back.", "tools": ["tests.strategies.agents_of_mine:refund"]}
PAYS = "tests.strategies.agents_of_mine:pays_as_often_as_undisturbed"


def drawn_scenarios() -> st.SearchStrategy[Scenario]:
    return strategies.scenarios({"clerk": CLERK}, {"clerk": [strategies.calls(mine.refund)]})  # type: ignore[dict-item]  # JSON


@FEW
@given(strategies.arguments(mine.plain))
def test_arguments_follow_the_type_hints(drawn: dict[str, object]) -> None:
    assert {"text"} <= drawn.keys() <= {"text", "times", "when"}
    assert isinstance(drawn["text"], str)
    assert isinstance(drawn.get("times", 1), int)
    assert isinstance(drawn.get("when"), date | None)
    assert isinstance(mine.plain(**drawn), str)  # type: ignore[arg-type]  # as drawn


def test_arguments_of_your_own_take_the_place_of_hints() -> None:
    strategy = strategies.arguments(mine.unhinted, text=st.just("x"))
    assert find(strategy, lambda drawn: drawn.get("times") == 7) == {"text": "x", "times": 7}


@FEW
@given(strategies.calls(mine.by_place, name="place"))
def test_calls_are_code_that_calls_the_tool(code: str) -> None:
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Expr)
    call = statement.value
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == "place"
    assert len(call.args) == 2
    assert [keyword.arg for keyword in call.keywords] == ["names"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: strategies.arguments(mine.unhinted), "parameter 'text' has no type hint; give it one, or a"),
        (
            lambda: strategies.arguments(mine.plain, txt=st.just("")),
            "unknown parameter 'txt'; expected one of text, t",
        ),
        (
            lambda: strategies.arguments(mine.strange),
            "its type hints cannot be read: name 'Never' is not defined",
        ),
    ],
)
def test_what_cannot_be_drawn_is_bad_input(ask: object, message: str) -> None:
    with pytest.raises(BadInput) as raised:
        ask()  # type: ignore[operator]  # a lambda
    assert message in str(raised.value)


@FEW
@given(drawn_scenarios())
def test_no_drawn_script_runs_out(scenario: Scenario) -> None:
    record = run_scenario(scenario, "docs")
    assert record.error is None
    assert {job.status for job in record.jobs.values()} == {"DONE"}
    assert scenario.script["clerk"][-1].code == EXIT["code"]


def test_scenarios_that_no_file_could_say_are_told() -> None:
    agents = {"clerk": {"prompt": "x", "tools": ["nothing_such"]}}
    strategy = strategies.scenarios(agents, {"clerk": [st.just("1")]})  # type: ignore[arg-type]  # JSON
    with pytest.raises(BadScenario, match=r"a drawn scenario: .*nothing_such"):
        find(strategy, lambda _: True)


@FEW
@given(strategies.faults("main", "other"), strategies.kills(), strategies.schedules("main", "other"))
def test_deviations_for_any_scenario_are_ones_that_a_file_can_say(
    fault: object, kill: object, order: tuple[object, ...]
) -> None:
    for one in (fault, kill, *order):
        assert type(one).model_validate(one.model_dump(exclude_unset=True)) == one  # type: ignore[attr-defined]  # a Deviation


PAID_ONCE = """
suite: mine
scenarios:
  - id: pays
    title: A clerk pays back.
    agents: {clerk: {prompt: You pay back., tools: ["tests.strategies.agents_of_mine:refund"]}}
    script: {clerk: [{code: refund(amount=5)}, {code: exit('end'), repeat: forever}]}
"""


def test_what_breaks_an_invariant_is_made_small_written_and_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pays.yaml").write_text(PAID_ONCE)
    subject = Subject(tmp_path / "pays.yaml", invariants=[PAYS], folder=tmp_path / "found")

    @settings(parent=FEW, max_examples=200)
    @given(strategies.deviations(subject, most=3))
    def pays_once(deviations: tuple[Deviation, ...]) -> None:
        subject.check(deviations)

    with pytest.raises(InvariantBroken, match=r"paid 2 times, undisturbed 1 times\n") as raised:
        pays_once()
    (file,) = (tmp_path / "found").iterdir()
    notes = raised.value.__notes__
    assert f"statek-sim explore --replay {file.as_posix()}" in notes
    assert sum(note.startswith("kill after event") for note in notes) == 1
    with pytest.raises(SystemExit) as exit_:
        main(["explore", "--replay", str(file)])
    assert exit_.value.code == 1
    assert "paid 2 times, undisturbed 1 times" in capsys.readouterr().out


def test_an_agent_of_engine_two_is_asked_about_too(tmp_path: Path) -> None:
    (tmp_path / "pays.yaml").write_text(samples.PAYS)
    subject = Subject(tmp_path / "pays.yaml", folder=tmp_path / "found")

    @FEW
    @given(strategies.deviations(subject, kinds=("kill", "fault")))
    def pays_once(deviations: tuple[Deviation, ...]) -> None:
        subject.check(deviations)

    pays_once()
    with pytest.raises(BadInput, match=r"state machines are for the statek engine"):
        strategies.machine(subject)


def test_invariants_have_names_that_a_file_can_say() -> None:
    scenario = find(drawn_scenarios(), lambda _: True, settings=settings(FEW, phases=[Phase.generate]))
    assert Subject(scenario, invariants=[mine.pays_as_often_as_undisturbed]).wrong() == ()
    with pytest.raises(
        BadInput, match=r"expected a module-level function, because saved failures refer to it by name$"
    ):
        Subject(scenario, invariants=[lambda run: None])


@pytest.mark.slow
def test_a_failing_example_is_kept_in_the_database_and_tried_first(tmp_path: Path) -> None:
    subject = Subject(find(drawn_scenarios(), lambda _: True), invariants=[PAYS], folder=tmp_path)
    came: list[bool] = []

    @settings(
        parent=FEW,
        derandomize=False,
        max_examples=400,
        database=InMemoryExampleDatabase(),
        phases=(Phase.reuse, Phase.generate),
    )
    @given(strategies.variations(drawn_scenarios(), subject))
    def pays_once(drawn: tuple[Subject, tuple[Deviation, ...]]) -> None:
        came.append(False)
        drawn[0].check(drawn[1])
        came[-1] = True

    with pytest.raises(InvariantBroken):
        pays_once()
    came.clear()
    with pytest.raises(InvariantBroken):
        pays_once()
    assert came[0] is False


def found_by_a_machine(folder: Path, number: int) -> str:
    """Return what a state machine finds with this seed: a scenario file, as small as Hypothesis makes it from there."""
    subject = Subject(find(drawn_scenarios(), lambda _: True), invariants=[PAYS], folder=folder)
    machine = seed(number)(strategies.machine(subject, strategies.calls(mine.refund)))
    case = machine.TestCase
    case.settings = settings(
        case.settings,
        max_examples=300,
        stateful_step_count=6,
        database=None,
        phases=FEW.phases,
    )
    with pytest.raises(InvariantBroken, match=r"paid 2 times, undisturbed 1 times\n") as raised:
        case().runTest()
    (file,) = folder.iterdir()
    assert f"statek-sim explore --replay {file.as_posix()}" in raised.value.__notes__
    return file.read_text()


@pytest.mark.slow
def test_a_machine_finds_what_a_death_does_to_a_tool(tmp_path: Path) -> None:
    """One of a few seeds leads to the smallest case: where the shrinker stops depends on what was drawn first."""
    for number in range(8):
        text = found_by_a_machine(tmp_path / str(number), number)
        if "push:" not in text and text.count("refund(") == text.count("kill:") == 1:
            break
    assert text.count("refund(") == 1
    assert text.count("kill:") == 1
    assert "push:" not in text


def test_an_example_that_is_shown_says_what_its_deviation_does_and_nothing_else() -> None:
    assert repr(Deviation(kill=3, restart=None)) == "Deviation(kill=3, restart=None)"
    assert repr(Deviation(move=1, to=2.0)) == "Deviation(move=1, to=2.0)"
