"""What a scenario file says about servers, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.backends.agent import run_agent_scenario
from statek_sim.errors import BadScenario
from statek_sim.scenario.load import load_or_fail
from tests.tables import table_test

FILE = """\
scenarios:
  - id: a
    title: A.
    engine: agent
    agents: {{assistant: {{prompt: You work.{agent}}}}}
    jobs: {{main: {{message: Work.}}}}
    tools: {{search: {{server: wiki, result: a page}}, look: {{result: rain}}}}
    servers: {{wiki: {{{server}}}{more}}}
    script: {{assistant: [{{tools: [{{name: wiki__search}}]}}, {{text: done}}]}}
"""


def written(folder: Path, server: str = "", more: str = "", agent: str = "") -> Path:
    path = folder / "a.yaml"
    path.write_text(FILE.format(server=server, more=more, agent=agent), "utf-8")
    return path


@table_test(
    ("server", "more", "said"),
    [
        ('faults: ["dyes"]', "", "servers.wiki.faults[0]: fault 'dyes' is unknown"),
        ('faults: ["dies:serach"]', "", "unknown tool 'serach'; known: search. Did you mean 'search'?"),
        (
            "listed: [edit]",
            "",
            "servers.wiki.listed[0]: unknown tool of server 'wiki': 'edit'. Known: search",
        ),
        ("prefix: a__b", "", "servers.wiki: MCP server 'a__b': expected a name of 1 to 32 letters"),
        ("", ", jira: {}", "servers.jira: no tool has `server: jira`"),
        ("call: 0", "", "servers.wiki.call: "),
        ("restart: 1", "", "unknown key 'restart' in servers.wiki. Did you mean 'restarts'?"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_its_line(
    tmp_path: Path, server: str, more: str, said: str
) -> None:
    path = written(tmp_path, server, more)
    with pytest.raises(BadScenario) as found:
        load_or_fail([path])
    assert str(found.value).startswith(f"{path}:8: ")
    assert said in str(found.value)


def test_servers_are_for_engine_agent(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "scenarios:\n  - {id: a, title: A., servers: {wiki: {}}, agents: {w: {prompt: W}}}\n", "utf-8"
    )
    with pytest.raises(
        BadScenario,
        match=r"a.yaml:2: .*'servers' is for the agent engine, but this scenario has `engine: statek`",
    ):
        load_or_fail([path])


def test_a_server_that_cannot_be_listed_at_first_is_an_error_of_the_file(tmp_path: Path) -> None:
    (scenario,) = load_or_fail([written(tmp_path, 'faults: ["loops:tools/list"]')])
    said = r"a.yaml:2: scenario 'a': agents.assistant: MCP server 'wiki' sent an invalid answer to tools/list"
    with pytest.raises(BadScenario, match=said):
        run_agent_scenario(scenario, "hardened")


def test_servers_whose_tools_collide_are_an_error_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'prefix: ""', ', sky: {prefix: ""}')
    path.write_text(
        path.read_text("utf-8").replace("look: {", "sky__look: {server: sky, result: stars}, look: {"),
        "utf-8",
    )
    (scenario,) = load_or_fail([path])
    said = r"a.yaml:2: scenario 'a': agents.assistant: tool 'look' of server 'sky' has the same name as one of your own"
    with pytest.raises(BadScenario, match=said):
        run_agent_scenario(scenario)


def test_a_fault_that_never_struck_fails_the_run(tmp_path: Path) -> None:
    (scenario,) = load_or_fail([written(tmp_path, 'faults: ["dies:search@2"]')])
    record = run_agent_scenario(scenario, "hardened")
    assert record.error is not None
    assert record.error.type == "UnusedResults"
    assert "server wiki fault dies:search@2" in record.error.message


def test_the_same_scenario_gives_the_same_trace_again(tmp_path: Path) -> None:
    (scenario,) = load_or_fail([written(tmp_path, 'faults: ["dies:search@1=2"]')])
    first, second = (run_agent_scenario(scenario, "hardened") for _ in range(2))
    assert first.digest == second.digest
