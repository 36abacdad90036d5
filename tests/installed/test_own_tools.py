"""Tools of the user's own on the real STATEK: where they are found, and what is said when they are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from statek_sim.backends.installed.peer import Peer, Ran, profile_of_peer
from statek_sim.errors import BadScenario
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.installed import run_one_installed
from tools.environments import on_this_python

PYTHONS = [one.interpreter for one in on_this_python()]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHONS, reason="no real STATEK here; `make thorough` and `make conformance` install it"
    ),
]

TOOLS = """\
import os
import statek
from statek import tool
from statek.settings import StatekSettings

@tool
def greet(name: str, **kwargs):
    return f"hello {name}"

def plain(**kwargs):
    return "no tool"

class desk:
    @tool
    def ring(**kwargs):
        return "rung"

@tool
def what_statek_reads(**kwargs):
    fresh = StatekSettings()
    said = [f"{name}={getattr(fresh, name)}" for name in sorted(fresh.model_fields_set)]
    return "; ".join([*said, f"provider={fresh.default_llm_api_provider}", *sorted(os.environ)])
"""


@pytest.fixture(params=PYTHONS, ids=lambda path: path.parent.parent.name)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with Peer(str(request.param)) as started:
        yield started


@pytest.fixture
def desk_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module in a folder that is neither this project's nor the current one, as `pythonpath` in pytest's settings."""
    folder = tmp_path / "somewhere" / "src"
    folder.mkdir(parents=True)
    (folder / "desk_tools.py").write_text(TOOLS, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    return folder


def scenario_with(folder: Path, tool: str, code: str) -> Scenario:
    path = folder / "own.yaml"
    path.write_text(
        "scenarios:\n"
        "  - id: own\n"
        "    title: A tool of the user's own.\n"
        f"    agents: {{clerk: {{chat_style: MARKDOWN, tools: ['{tool}']}}}}\n"
        f"    script: {{clerk: [{{code: {json.dumps(code)}}}]}}\n",
        encoding="utf-8",
    )
    (scenario,) = load_or_fail([path])
    return scenario


def exit_of(peer: Peer, scenario: Scenario) -> object:
    outcome = peer.run(scenario, profile_of_peer(peer))
    assert isinstance(outcome, Ran), outcome
    assert outcome.facts["error"] is None
    jobs = outcome.facts["jobs"]
    assert isinstance(jobs, dict)
    main = jobs["main"]
    assert isinstance(main, dict)
    return main["exit"]


@pytest.mark.usefixtures("desk_tools")
@pytest.mark.parametrize(
    ("tool", "code", "result"),
    [
        ("desk_tools:greet", "exit(greet('Ada'))", "hello Ada"),
        ("desk_tools:desk.ring", "exit(ring())", "rung"),
    ],
)
def test_a_tool_is_found_where_this_process_finds_it(
    peer: Peer, tmp_path: Path, tool: str, code: str, result: str
) -> None:
    assert exit_of(peer, scenario_with(tmp_path, tool, code)) == result


def test_a_folder_that_is_added_after_the_start_is_searched_too(
    peer: Peer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    scenario = scenario_with(tmp_path, "desk_tools:greet", "exit(greet('Ada'))")
    with pytest.raises(BadScenario, match="No module named 'desk_tools'"):
        peer.run(scenario, profile_of_peer(peer))

    request.getfixturevalue("desk_tools")

    assert exit_of(peer, scenario) == "hello Ada"


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (
            "no_such_module:greet",
            "'no_such_module:greet' cannot be imported: ModuleNotFoundError: No module named 'no_such_module'; "
            "run this in the folder that contains it, add that folder to PYTHONPATH, or install it there",
        ),
        ("desk_tools:wave", "module 'desk_tools' has no 'wave'"),
        (
            "desk_tools:plain",
            "'desk_tools:plain' is not a STATEK tool; the installed package needs tools created with statek.tool",
        ),
        (
            "needing:greet",
            "'needing:greet' cannot be imported: ModuleNotFoundError: No module named 'no_such_library'; "
            "install no_such_library in that interpreter, which imports needing itself",
        ),
        ("broken:greet", "'broken:greet' cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_a_tool_that_cannot_be_had_is_told_with_its_place(
    peer: Peer, tmp_path: Path, desk_tools: Path, tool: str, problem: str
) -> None:
    (desk_tools / "needing.py").write_text("import no_such_library\n", encoding="utf-8")
    (desk_tools / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    scenario = scenario_with(tmp_path, tool, "exit(1)")
    place = f"{scenario.path}:{scenario.line}: scenario 'own': "
    having = f" (with {peer.interpreter}, statek {peer.version})"

    with pytest.raises(BadScenario, match=f"^{re.escape(place + problem + having)}$"):
        run_one_installed(peer, scenario, profile_of_peer(peer))

    good = scenario_with(tmp_path, "desk_tools:greet", "exit(greet('Ada'))")
    assert exit_of(peer, good) == "hello Ada"


@pytest.mark.usefixtures("desk_tools")
def test_nothing_of_the_environment_and_no_env_file_reaches_statek(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = scenario_with(tmp_path, "desk_tools:what_statek_reads", "exit(what_statek_reads())")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def what_it_reads() -> object:
        with Peer(str(PYTHONS[-1])) as peer:
            return exit_of(peer, scenario)

    clean = what_it_reads()
    for name, value in (
        ("MAX_TURNS", "1"),
        ("CHAT_STYLE", "DIRECT"),
        ("LOG_LEVEL", "DEBUG"),
        ("RPC_PORT", "9"),
    ):
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(f"STATEK_{name}", value)
    monkeypatch.setenv("DEFAULT_LLM_API_PROVIDER", "GROQ")
    monkeypatch.setenv("GROQ_API_KEY", "planted")
    monkeypatch.setenv("FULL_AGENT_TRACE", "true")
    (here / ".env").write_text("MAX_TURNS=1\nDEFAULT_LLM_API_PROVIDER=GROQ\n", encoding="utf-8")

    assert what_it_reads() == clean
    assert isinstance(clean, str)
    assert "provider=OPENROUTER" in clean
    assert not re.search("max_turns|STATEK_|FULL_AGENT_TRACE", clean)
