"""Hypothesis strategies for agents: arguments, scripts, jobs, scenarios, faults, schedules, and a state machine.

These require the extra `pytest-statek[hypothesis]`. Hypothesis draws all values, so its profiles, seeds and database
apply.
"""

from __future__ import annotations

import ast
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.errors import ResolutionFailed
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from statek_sim.errors import BadInput, BadScenario
from statek_sim.explore.subject import InvariantBroken as InvariantBroken
from statek_sim.explore.subject import Subject as Subject
from statek_sim.scenario.check import check, jobs_of
from statek_sim.scenario.events import Deviation, Fault
from statek_sim.scenario.schema import Profile, Scenario, ScenarioText
from statek_sim.values import JSON

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def arguments(tool: Callable[..., Any], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for arguments to `tool`, keyed by name.

    Values come from your `given` strategies, or else from the type hints. Arguments with a default are sometimes left
    out. Raises `BadInput` for a parameter whose type hint is missing or for which Hypothesis has no strategy, and for a
    name in `given` that is not a parameter.
    """
    parameters, hints = _parameters(tool)
    for name in given:
        if name not in parameters:
            raise BadInput(
                f"arguments of {_name(tool)}: unknown parameter {name!r}; expected one of "
                f"{', '.join(parameters) or 'none'}"
            )
    drawn = {name: given[name] if name in given else _of(tool, name, hints) for name in parameters}
    optional = {name for name, parameter in parameters.items() if parameter.default is not parameter.empty}
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in drawn.items() if name not in optional},
        optional={name: strategy for name, strategy in drawn.items() if name in optional},
    )


def calls(
    tool: Callable[..., Any], *, name: str | None = None, **given: st.SearchStrategy[Any]
) -> st.SearchStrategy[str]:
    """Return a strategy for calls to `tool` as code, like `lookup(city='Oslo')`; `name` is the tool's name in the code.

    Values without a literal, such as `nan` or an object, are not drawn. Values drawn from `given` strategies become
    literals too; to pass one of the job's variables, write the code yourself.
    """
    parameters, _ = _parameters(tool)
    unnamed = {key for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY}
    called = name or _name(tool)

    def written(values: Mapping[str, Any]) -> str:
        texts = [repr(value) if key in unnamed else f"{key}={value!r}" for key, value in values.items()]
        return f"{called}({', '.join(texts)})"

    # Positional-only parameters come first, and none of them may be left out before another.
    usable = arguments(tool, **given).filter(lambda values: all(map(_has_literal, values.values())))
    if unnamed:
        usable = usable.filter(lambda values: unnamed <= values.keys())
    return usable.map(lambda values: {key: values[key] for key in parameters if key in values}).map(written)


def _parameters(tool: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], dict[str, Any]]:
    function = inspect.unwrap(tool)
    found = inspect.signature(function).parameters
    try:
        hints = typing.get_type_hints(function)
    except Exception as error:  # hints are the user's code
        raise BadInput(f"arguments of {_name(tool)}: its type hints cannot be read: {error}") from error
    return {name: parameter for name, parameter in found.items() if parameter.kind not in _VARIADIC}, hints


def _of(tool: Callable[..., Any], name: str, hints: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if name not in hints:
        raise BadInput(
            f"arguments of {_name(tool)}: parameter {name!r} has no type hint; give it one, or a strategy: "
            f"arguments({_name(tool)}, {name}=...)"
        )
    if hints[name] is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    try:
        drawn: st.SearchStrategy[Any] = st.from_type(hints[name])
        drawn.validate()
    except (ResolutionFailed, TypeError) as error:
        raise BadInput(
            f"arguments of {_name(tool)}: Hypothesis has no strategy for {name}: {hints[name]!r}; pass "
            f"one: arguments({_name(tool)}, {name}=...)"
        ) from error
    return drawn


def _has_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _name(tool: Callable[..., Any]) -> str:
    return getattr(tool, "__name__", repr(tool))


Written = dict[str, JSON]
"""Part of a scenario, as in a file."""

EXIT: Final[Written] = {"code": "exit('end')", "repeat": "forever"}
"""A script's default last reply. It repeats forever, because most drawn jobs make more requests than there are replies.
"""


def replies(*code: st.SearchStrategy[str], most: int = 3) -> st.SearchStrategy[Written]:
    """Return a strategy for replies of one to `most` statements, each drawn from one of `code`, such as `calls(tool)`.

    A statement is used unchanged, printed, or assigned to a name.
    """
    line = st.one_of(*code)
    shaped = st.one_of(
        line,
        line.map(lambda statement: f"print({statement})"),
        line.map(lambda statement: f"answer = {statement}"),
    )
    return st.lists(shaped, min_size=1, max_size=most).map(lambda lines: {"code": "\n".join(lines)})


def scripts(
    *code: st.SearchStrategy[str], most: int = 4, last: Written | None = None
) -> st.SearchStrategy[list[Written]]:
    """Return a strategy for scripts with up to `most` replies and a last reply, which repeats forever.

    The last reply is `last`, by default `EXIT`.
    """
    ending: Written = {**(EXIT if last is None else last), "repeat": "forever"}
    return st.lists(replies(*code), max_size=most).map(lambda opening: [*opening, ending])


def jobs(*agents: str, most: int = 2, **fields: JSON) -> st.SearchStrategy[dict[str, Written]]:
    """Return a strategy for one to `most` jobs run by `agents`, each with a message.

    Every job gets the `fields`, such as `locals`.
    """
    job = st.fixed_dictionaries(
        {"agent": st.sampled_from(agents), "message": st.sampled_from(("Go.", "", "Zażółć 😀\nsecond line"))}
    )
    every = st.lists(job, min_size=1, max_size=most)
    return every.map(
        lambda drawn: {
            _job_name(number): {**job_fields, **fields} for number, job_fields in enumerate(drawn, 1)
        }
    )


def _job_name(number: int) -> str:
    return "main" if number == 1 else f"main_{number}"


@st.composite
def scenarios(
    draw: st.DrawFn,
    /,
    agents: Mapping[str, Written],
    code: Mapping[str, Sequence[st.SearchStrategy[str]]],
    *,
    job: Written | None = None,
    profile: Profile = "docs",
    **fields: JSON,
) -> Scenario:
    """Return a scenario for your `agents`, in the format of a file; `code` draws the replies from each agent's model.

    `job` has fields for every job, and `fields` those for the scenario: `world`, `limits`, `events` and so on. Raises
    `BadScenario` for values that are not allowed in a file.
    """
    text: dict[str, Any] = {
        **fields,
        "agents": dict(agents),
        "jobs": draw(jobs(*agents, most=2, **(job or {}))),
        "script": {name: draw(scripts(*code[name])) for name in agents},
    }
    return scenario_of(text, profile=profile)


def scenario_of(text: Mapping[str, Any], *, profile: Profile = "docs") -> Scenario:
    """Return a scenario that is not in a file; raises `BadScenario` for values that are not allowed in one."""
    document = {"id": "drawn", "title": "A drawn scenario.", "profiles": [profile], **text}
    try:
        validated = ScenarioText.model_validate_json(json.dumps(document))
    except ValueError as error:
        raise BadScenario(f"a drawn scenario: {error}") from None
    findings = check(validated, Path("-"))
    if findings:
        where = ".".join(map(str, findings[0].keypath))
        raise BadScenario(f"a drawn scenario: {where}: {findings[0].message}")
    return Scenario.placed(
        validated, jobs_of(validated), suite="drawn", path=Path("-"), line=0, file_digest=""
    )


def faults(*names: str) -> st.SearchStrategy[Deviation]:
    """Return a strategy for failed requests from one of the jobs in `names` (by default, the job `main`)."""
    return st.builds(
        Deviation,
        fault=st.sampled_from(get_args(Fault)),
        job=st.sampled_from(names or ("main",)),
        reply=st.integers(1, 5),
    )


def kills() -> st.SearchStrategy[Deviation]:
    """Return a strategy for a worker crash after an event in the trace, with a new worker some seconds later.

    A run with fewer events does not crash.
    """
    restarts = st.sampled_from((60.0, 1.0, 0.0))
    places = st.tuples(st.integers(0, 60), st.sampled_from((0, 0, 0, 1, 2)), restarts)
    return places.map(_kill)


def _kill(place: tuple[int, int, float]) -> Deviation:
    event, silent, restart = place
    if silent:
        return Deviation(kill=event, silent=silent, restart=restart)
    return Deviation(kill=event, restart=restart)


def schedules(*names: str, most: int = 3) -> st.SearchStrategy[tuple[Deviation, ...]]:
    """Return a strategy for schedules: at up to `most` choices between ready jobs, one of `names` goes first."""
    choices = st.dictionaries(st.integers(1, 12), st.sampled_from(names), max_size=most)
    return choices.map(
        lambda picked: tuple(Deviation(choose=number, first=name) for number, name in sorted(picked.items()))
    )


def deviations(
    subject: Subject, *, kinds: tuple[str, ...] | None = None, most: int = 2
) -> st.SearchStrategy[tuple[Deviation, ...]]:
    """Return a strategy for up to `most` different deviations that the scenario of `subject` allows.

    `kinds` is a subset of kill, lose, fault, move and limit; None means all. The scenario runs once, when the first
    deviation is drawn.
    """

    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Deviation, ...]:
        every = [deviation for deviation in subject.singles if kinds is None or deviation.action in kinds]
        if not every:
            return ()
        places = draw(st.lists(st.integers(0, len(every) - 1), max_size=most, unique=True))
        return tuple(every[place] for place in places)

    return drawn()


@st.composite
def variations(
    draw: st.DrawFn, /, drawn: st.SearchStrategy[Scenario], subject: Subject | None = None, *, most: int = 2
) -> tuple[Subject, tuple[Deviation, ...]]:
    """Return `subject` with a drawn scenario, and drawn deviations that the scenario allows."""
    scenario = draw(drawn)
    made = Subject(scenario) if subject is None else subject.like(scenario)
    return made, draw(deviations(made, most=most))


STEP: float = 10.0
"""Virtual seconds between two events in a state machine."""


def machine(subject: Subject, *code: st.SearchStrategy[str]) -> type[RuleBasedStateMachine]:
    """Return a state machine whose rules build a script and events, which are run and checked at the end.

    `subject` is a scenario with your agents, tools, world and invariants. The rules add to the script and the events
    for its first job: a reply of statements drawn from `code`, a message to the job, the outcome of a future in the
    world, a failed request, or the worker's death. The script's last reply is `EXIT`.

    Hypothesis shrinks a failing history and saves the smallest one as a file. Assign `machine(...).TestCase` to a name
    in a test module.
    """
    _refuse_agents(subject)
    job, futures = next(iter(subject.scenario.jobs)), tuple(subject.scenario.world.futures)

    class AgentMachine(RuleBasedStateMachine):
        """A history under construction: replies, events and deviations."""

        def __init__(self) -> None:
            super().__init__()
            self.said: list[Written] = []
            self.events: list[Written] = []
            self.deviations: list[Deviation] = []

        @precondition(lambda self: bool(code))
        @rule(reply=replies(*code) if code else st.nothing())
        def the_model_says(self, reply: Written) -> None:
            self.said.append(reply)

        @rule(message=st.sampled_from(("And now?", "")))
        def somebody_writes(self, message: str) -> None:
            self._happens({"push": job, "message": message})

        @precondition(lambda self: bool(futures))
        @rule(future=st.sampled_from(futures or ("",)), value=st.sampled_from(("granted", None, [1, 2])))
        def a_future_resolves(self, future: str, value: Any) -> None:
            self._happens({"resolve": future, "value": value})

        @rule(fault=faults(job))
        def a_request_fails(self, fault: Deviation) -> None:
            self.deviations.append(fault)

        @precondition(lambda self: sum(deviation.action == "kill" for deviation in self.deviations) < 2)
        @rule(kill=kills())
        def the_worker_dies(self, kill: Deviation) -> None:
            self.deviations.append(kill)

        def _happens(self, event: Written) -> None:
            self.events.append({"at": STEP * (1 + len(self.events)), **event})

        def teardown(self) -> None:
            made = _with(subject.scenario, job, [*self.said, EXIT], self.events)
            subject.like(made).check(self.deviations)

    AgentMachine.__name__ = AgentMachine.__qualname__ = f"machine_of_{subject.scenario.id.replace('-', '_')}"
    # Other settings come from the loaded profile. Reporting several bugs would write several files.
    AgentMachine.TestCase.settings = settings(
        deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
    )
    return AgentMachine


def _refuse_agents(subject: Subject) -> None:
    if subject.scenario.engine != "statek":
        raise BadInput(
            f"scenario {subject.scenario.id!r}: state machines are for the statek engine; for the agent engine, "
            "draw `deviations(subject)`"
        )


def _with(scenario: Scenario, job: str, script: list[Written], events: list[Written]) -> Scenario:
    """Return the scenario with a different script for one of its jobs, and with additional events."""
    keep = {"suite", "path", "line", "file_digest", "expect", "expect_in", "proves", "deviations", "violates"}
    text = scenario.model_dump(mode="json", exclude_unset=True, exclude=keep)
    text["script"] = {**text.get("script", {}), f"job:{job}": script}
    text["events"] = [*text.get("events", []), *events]
    return scenario_of(text, profile=scenario.profiles[0])
