"""What a model says, which jobs there are, and whole scenarios of your agents and tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from statek_sim.errors import BadScenario
from statek_sim.scenario.check import check, jobs_of
from statek_sim.scenario.schema import Profile, Scenario, ScenarioText
from statek_sim.values import JSON

Written = dict[str, JSON]
"""A part of a scenario as a file would have it."""

EXIT: Final[Written] = {"code": "exit('end')", "repeat": "forever"}
"""The last reply of a script, given for as long as somebody asks: a job that has to ask once more often than was
foreseen would run out of replies otherwise, and three scripts of four do."""


def replies(*code: st.SearchStrategy[str], most: int = 3) -> st.SearchStrategy[Written]:
    """Return replies of one to `most` statements; `code` draws one each, such as `calls(tool)`.

    A statement is left as it is, printed, or kept under a name.
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
    """Return scripts of up to `most` replies and a last one that has no end: `EXIT`, if you do not say another."""
    ending: Written = {**(EXIT if last is None else last), "repeat": "forever"}
    return st.lists(replies(*code), max_size=most).map(lambda opening: [*opening, ending])


def jobs(*agents: str, most: int = 2, **fields: JSON) -> st.SearchStrategy[dict[str, Written]]:
    """Return between one and `most` jobs of `agents`, with a message each; `fields`, such as `locals`, are theirs."""
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
    most_jobs: int = 2,
    job: Written | None = None,
    profile: Profile = "docs",
    **fields: JSON,
) -> Scenario:
    """Return scenarios of your `agents`, each as a file has it; `code` says what the model of each may write.

    `job` are fields of every job, `fields` those of the scenario: `world`, `limits`, `events` and so on. Raises
    BadScenario for what no file could say.
    """
    text: dict[str, Any] = {
        **fields,
        "agents": dict(agents),
        "jobs": draw(jobs(*agents, most=most_jobs, **(job or {}))),
        "script": {name: draw(scripts(*code[name])) for name in agents},
    }
    return scenario_of(text, profile=profile)


def scenario_of(text: Mapping[str, Any], *, profile: Profile = "docs") -> Scenario:
    """Return a scenario that is written nowhere; raises BadScenario for what no file could say."""
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
