from __future__ import annotations

import re
from pathlib import Path

import pytest

from statek_sim.backends.facts import plain
from statek_sim.backends.setup import (
    attribute_at,
    harness_for,
    reply_at,
    script_of,
    settings_of,
    tool_named,
    world_for,
)
from statek_sim.errors import BadScenario
from statek_sim.providers.script import (
    Chat,
    HttpError,
    NoAnswer,
    RawBody,
    ScriptedCall,
    UsageKind,
)
from statek_sim.providers.wire.reply import ReportedUsage
from statek_sim.runtime.tools.declaration import tool
from statek_sim.sandbox.llm_repr import shown
from statek_sim.scenario.schema import Scenario
from statek_sim.semantics import DOCS
from statek_sim.values import JSON
from tests.tables import table_test
from tests.unit.suite_samples import load


def not_a_tool(**kwargs: object) -> None:
    """Lack the decorator."""


@tool
def own_tool(**kwargs: object) -> None:
    """Be a user's tool."""


def scenario(folder: Path, more: str = "", reply: str = "{code: exit(1)}") -> Scenario:
    text = f"  - {{id: one, title: One, agents: {{worker: {{}}}}, script: {{worker: [{reply}]}}{more}}}\n"
    (found,) = load(folder, text)
    return found


def refusal(of: Scenario, message: str) -> str:
    return f"^{re.escape(f'{of.path}:{of.line}: scenario {of.id!r}: {message}')}"


def test_settings_are_those_of_the_preset_then_the_scenarios_own(tmp_path: Path) -> None:
    plain_one = scenario(tmp_path, ", preset: batch")
    own = scenario(tmp_path, ", preset: batch, settings: {chat_style: MARKDOWN}")
    assert settings_of(own).chat_style == "MARKDOWN"
    assert settings_of(own).max_turns == settings_of(plain_one).max_turns
    assert settings_of(plain_one, preset="default").max_turns == 5


def test_a_preset_file_beside_the_scenario_is_found(tmp_path: Path) -> None:
    (tmp_path / "tight.env").write_text("STATEK_MAX_TURNS=2\n", encoding="utf-8")
    assert settings_of(scenario(tmp_path, ", preset: tight.env")).max_turns == 2


def test_limits_of_the_scenario_replace_settings_and_null_is_unlimited(tmp_path: Path) -> None:
    one = scenario(tmp_path, ", limits: {max_turns: 9, max_exceptions: null}")
    harness = harness_for(one.limits, settings_of(one), DOCS)
    assert (harness.max_turns, harness.max_exceptions, harness.max_consecutive_exceptions) == (9, None, 1)


@table_test(
    ("reply", "answer"),
    [
        ("{code: exit(1)}", Chat(code="exit(1)")),
        ("{text: hello}", Chat(text="hello")),
        ("{python: x = 1}", Chat(calls=(ScriptedCall("python_cli", {"code": "x = 1"}),))),
        (
            "{text: hi, tools: [{name: f, args: {n: 1}, id: c1}]}",
            Chat(text="hi", calls=(ScriptedCall("f", {"n": 1}, "c1"),)),
        ),
        ("{http: 429, retry_after: 7}", HttpError(429, 7)),
        ("{timeout: true}", NoAnswer()),
        ("{body: nonsense}", RawBody(b"nonsense")),
        ("{body: {a: [1]}}", RawBody(b'{"a": [1]}')),
    ],
)
def test_each_kind_of_written_reply_has_its_answer(tmp_path: Path, reply: str, answer: object) -> None:
    ((made,),) = script_of(scenario(tmp_path, reply=reply)).values()
    assert made.answer == answer


@table_test(
    ("written", "usage"),
    [
        ("", UsageKind.ABSENT),
        (", usage: null", UsageKind.NULL),
        (", usage: measured", UsageKind.MEASURED),
        (", usage: {prompt: 5, completion: null}", ReportedUsage(prompt=5, completion=None)),
    ],
)
def test_usage_is_reported_as_written(tmp_path: Path, written: str, usage: object) -> None:
    one = scenario(tmp_path, reply=f"{{code: exit(1){written}}}")
    assert reply_at(one.place, one.script["worker"][0]).usage == usage


def test_a_timeout_takes_the_clients_sixty_seconds_unless_told_otherwise(tmp_path: Path) -> None:
    one = scenario(tmp_path, reply="{timeout: true}, {timeout: true, latency: 5}")
    assert [reply_at(one.place, entry).latency for entry in one.script["worker"]] == [60.0, 5.0]


def test_an_own_tool_is_imported_by_its_name(tmp_path: Path) -> None:
    assert tool_named(scenario(tmp_path), f"{__name__}:own_tool", {}) is own_tool


def test_a_function_that_is_no_tool_is_refused(tmp_path: Path) -> None:
    one, name = scenario(tmp_path), f"{__name__}:not_a_tool"
    with pytest.raises(
        BadScenario, match=refusal(one, f"{name!r} is not a tool; decorate the function with @tool") + "$"
    ):
        tool_named(one, name, {})


def test_an_unknown_built_in_tool_is_refused_with_one_that_may_be_meant(tmp_path: Path) -> None:
    one = scenario(tmp_path)
    message = "unknown built-in tool 'ecko'. Did you mean 'echo'? `statek-sim list tools` lists them"
    with pytest.raises(BadScenario, match=refusal(one, message) + "$"):
        tool_named(one, "ecko", {"note": own_tool, "echo": own_tool})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "no.such.module:x",
            "'no.such.module:x' cannot be imported: ModuleNotFoundError: No module named 'no'",
        ),
        ("json:nothing", "module 'json' has no 'nothing'"),
        ("json:loads.deep.inside", "module 'json' has no 'loads.deep.inside'"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_the_missing_part(
    tmp_path: Path, name: str, message: str
) -> None:
    one = scenario(tmp_path)
    with pytest.raises(BadScenario, match=refusal(one, message) + "$"):
        attribute_at(one.place, name)


def test_a_module_that_fails_is_named_with_its_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "failing_settings.py").write_text("import os\n\nKEY = os.environ['NO_SUCH_NAME']\n")
    (tmp_path / "failing_tools.py").write_text("import failing_settings\n")
    one = scenario(tmp_path)
    place = re.escape(str(tmp_path / "failing_settings.py"))
    with pytest.raises(BadScenario, match=rf"imported: KeyError: 'NO_SUCH_NAME' \({place}:3\)$"):
        attribute_at(one.place, "failing_tools:claim")


def test_the_world_starts_as_it_is_written(tmp_path: Path) -> None:
    queue = "{owner: w-2, items: [a, {id: b, status: CLAIMED, owner: w-9}]}"
    one = scenario(tmp_path, f", world: {{queue: {queue}, futures: [approval]}}")
    world = world_for(one.world, lambda subject, what: None)
    assert world.owner.id == "w-2"
    assert [(item.id, item.status, item.owner_id) for item in world.queue.items.values()] == [
        ("a", "READY", None),
        ("b", "CLAIMED", "w-9"),
    ]
    assert not world.events["approval"].is_ready()


@table_test(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("text", "text"),
        ((1, [2]), [1, [2]]),
        ({"a": (1,)}, {"a": [1]}),
        ({1: "a"}, '{1:"a"}'),
        ({2, 1}, "{1,2}"),
    ],
)
def test_records_hold_plain_values_or_the_text_an_agent_would_see(value: object, expected: JSON) -> None:
    assert plain(value, shown) == expected
