"""Parts of a user's own in scenarios of engine two: one that is broken fails its scenario, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.cli import main
from statek_sim.errors import BadScenario
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import run_one
from tests.says import says

PARTS = """\
import sys
from statek_sim.agent.effects import Advice, Compaction, Reading, Verdict, WrittenCall

def raising(*args, **named):
    raise ValueError("boom")

def leaving(*args, **named):
    sys.exit(3)

def five(*args, **named):
    return 5

async def waiting(*args, **named):
    return 5

async def raising_later(*args, **named):
    raise KeyError("late")

def asking_oddly(*args, **named):
    yield "a question"

def asking_at_input(*args, **named):
    return Verdict(action="ask", reason="may it?")

def odd_verdict(*args, **named):
    return Verdict(action="stop")

def odd_advice():
    return lambda turn: Advice(kind="sleep", reason="tired")

def watches_wrongly():
    return lambda: None

def odd_reading(*args, **named):
    return Reading(calls=(WrittenCall("1", "look", {}),))

def odd_history(*args, **named):
    return Compaction(messages=["hello"], strategy="short")

def asks_oddly(*args, **named):
    yield "a summary, please"

def breaks_late(*args, **named):
    raise KeyError("late")
    yield

class RaisingGate:
    def admit(self, call, *, at):
        return None
    def ended(self, call, outcome, *, at):
        raise KeyError("late")
    def withdrawn(self, call, *, at):
        pass

class OddGate(RaisingGate):
    def admit(self, call, *, at):
        return False

number = 3
"""

SCENARIO = """\
  - id: {id}
    title: One
    engine: agent
    tools: {{look: {{result: here}}}}
    agents: {{worker: {{tools: [look], harness: {{{harness}}}}}}}
    jobs: {{main: {{message: Do it}}}}
    script: {{worker: [{{tools: [{{name: look}}]}}, {{text: done}}]}}
    expect: {{jobs: {{main: {{stop: final}}}}}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "odd_parts.py").write_text(PARTS)
    return tmp_path


def _file(folder: Path, *harnesses: str) -> Path:
    file = folder / "a.yaml"
    told = [SCENARIO.format(id=f"n{at}", harness=said) for at, said in enumerate(harnesses)]
    file.write_text("scenarios:\n" + "".join(told))
    return file


def _exit(command: list[str]) -> object:
    with pytest.raises(SystemExit) as caught:
        main(command)
    return caught.value.code


@pytest.mark.parametrize(
    ("harness", "facts"),
    [
        ('guards: ["odd_parts:raising"]', "part 'odd_parts:raising' (guards[0]) raised ValueError: boom"),
        ('guards: ["odd_parts:leaving"]', "part 'odd_parts:leaving' (guards[0]) raised SystemExit: 3"),
        ('guards: ["odd_parts:five"]', "part 'odd_parts:five' (guards[0]); type 'int'; expected a Verdict"),
        (
            'guards: ["odd_parts:waiting"]',
            "part 'odd_parts:waiting' (guards[0]); type 'int'; expected a Verdict",
        ),
        ('guards: ["odd_parts:raising_later"]', "part 'odd_parts:raising_later' (guards[0]) raised KeyError"),
        (
            'guards: ["odd_parts:asking_oddly"]',
            "part 'odd_parts:asking_oddly' (guards[0]); type 'str'; expected a TextWanted or Wait",
        ),
        (
            'guards: ["odd_parts:asking_at_input"]',
            "part 'odd_parts:asking_at_input' (guards[0]); ask only for a call; strings",
        ),
        (
            'guards: ["odd_parts:odd_verdict"]',
            "part 'odd_parts:odd_verdict' (guards[0]); expected a Verdict; pass, warn, modify, ask, block",
        ),
        ('gates: ["odd_parts:raising"]', "part 'odd_parts:raising' (gates[0]) raised ValueError: boom"),
        (
            'gates: ["odd_parts:five"]',
            "part 'odd_parts:five' (gates[0]); type 'int'; expected a gate; `admit`, `ended` and `withdrawn`",
        ),
        (
            'gates: ["odd_parts:OddGate"]',
            "part 'odd_parts:OddGate' (gates[0]); type 'bool'; expected None, a reason as a string, or an Ask",
        ),
        (
            'gates: ["odd_parts:RaisingGate"]',
            "part 'odd_parts:RaisingGate' (gates[0]) raised KeyError: 'late'",
        ),
        ('watchers: ["odd_parts:raising"]', "part 'odd_parts:raising' (watchers[0]) raised ValueError: boom"),
        (
            'watchers: ["odd_parts:five"]',
            "part 'odd_parts:five' (watchers[0]); type 'int'; expected a watcher",
        ),
        (
            'watchers: ["odd_parts:odd_advice"]',
            "part 'odd_parts:odd_advice' (watchers[0]); type 'Advice'; None or an Advice; nudge, fewer_tools, stop",
        ),
        (
            'watchers: ["odd_parts:watches_wrongly"]',
            "part 'odd_parts:watches_wrongly' (watchers[0]); raised TypeError; called with TurnFacts",
        ),
        ('watchers: ["json:loads"]', "part 'json:loads' (watchers[0]) raised TypeError"),
        ('chooser: "odd_parts:raising"', "part 'odd_parts:raising' (chooser) raised ValueError: boom"),
        (
            'chooser: "builtins:repr"',
            "part 'builtins:repr' (chooser); type 'str'; None or a Choice; names, a task or tags",
        ),
        ('compactor: "odd_parts:raising"', "part 'odd_parts:raising' (compactor) raised ValueError: boom"),
        (
            'compactor: "odd_parts:odd_history"',
            "part 'odd_parts:odd_history' (compactor); type 'Compaction'; None or a Compaction; messages",
        ),
        ('compactor: "json:loads"', "part 'json:loads' (compactor) raised TypeError"),
        (
            'compactor: "odd_parts:asks_oddly"',
            "part 'odd_parts:asks_oddly' (compactor); type 'str'; expected a TextWanted",
        ),
        (
            'compactor: "odd_parts:breaks_late"',
            "part 'odd_parts:breaks_late' (compactor) raised KeyError: 'late'",
        ),
        (
            'reader: "odd_parts:raising"',
            "part 'odd_parts:raising' (reader) raised ValueError: boom (odd_parts.py:5)",
        ),
        (
            'reader: "odd_parts:odd_reading"',
            "part 'odd_parts:odd_reading' (reader); type 'Reading'; expected a Reading with strings; WrittenCalls",
        ),
        ('reader: "json:loads"', "part 'json:loads' (reader) raised TypeError"),
    ],
)
def test_a_broken_part_fails_the_run_and_is_named(here: Path, harness: str, facts: str) -> None:
    (scenario,) = load_or_fail([_file(here, harness)])
    result = run_one(scenario, "hardened")
    assert result.record.error is not None
    assert result.record.error.type == "PartBroke"
    assert says(result.record.error.message, *facts.split("; "))
    assert result.mismatches


@pytest.mark.parametrize("watchdog", ["off", "cpu=20,wall=60,memory=1024m"])
def test_the_other_scenarios_get_their_results(
    here: Path, watchdog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _file(here, "commits: true", 'guards: ["odd_parts:raising"]', "nudges: 2")
    assert _exit(["run", "--watchdog", watchdog, str(file)]) == 1
    told = capsys.readouterr().out
    assert "2 passed, 1 failed" in told
    assert "/n1[hardened]: the run failed: PartBroke: part 'odd_parts:raising'" in told


@pytest.mark.parametrize("command", [["run", "--html", "page.html"], ["usage"], ["trace", "n0"]])
def test_the_other_commands_show_no_traceback(
    here: Path, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    file = _file(here, 'guards: ["odd_parts:raising"]')
    assert _exit([*command, str(file)]) in (0, None, 1)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("harness", "said"),
    [
        ('reader: "odd_parts:number"', "agents.worker.harness.reader: 'odd_parts:number' is 3, expected"),
        ('gates: ["odd_parts:number"]', "agents.worker.harness.gates[0]: 'odd_parts:number' is 3, expected"),
        ('guards: ["nowhere_at_all:attr"]', "'nowhere_at_all:attr' cannot be imported"),
        ('compactor: "odd_parts:nothing"', "module 'odd_parts' has no 'nothing'"),
    ],
)
def test_what_cannot_be_a_part_is_said_before_the_run(here: Path, harness: str, said: str) -> None:
    file = _file(here, harness)
    (scenario,) = load_or_fail([file])
    with pytest.raises(BadScenario) as caught:
        run_one(scenario, "hardened")
    assert str(caught.value).startswith(f"{file}:2: scenario 'n0': ")
    assert said in str(caught.value)
