"""Files of evals: what is wrong in them is told with its place, all of it at once."""

# ruff: noqa: E501  # a table of mistakes and of what is said about each

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from statek_sim.errors import BadScenario
from statek_sim.evals.outcome import FinishedRun
from statek_sim.evals.players import played, tells_apart
from statek_sim.evals.random_draws import Draws
from statek_sim.evals.schema import evals_schema
from statek_sim.evals.suite import load_paths, load_suite
from statek_sim.evals.verdict import judge
from statek_sim.scenario.load import load_paths as load_scenarios
from statek_sim.scenario.tree import node_value, parse
from tests.says import says

FOLDER = Path(__file__).parents[2] / "scenarios" / "evals"

GOOD = """\
evals:
  - id: one
    tier: easy
    capability: single-call
    title: One
    vary: {name: {one_of: [a, b]}}
    world:
      rows_of: {rows: [{name: "{name}", code: X-1}]}
    tools:
      look: {description: Looks., parameters: {name: string}, gives: "=one(rows_of, name=name).code"}
    task: Look up {name}.
    plan:
      - {call: look, with: {name: "{name}"}, as: code}
      - {answer: "It is {code}."}
    check:
      expect_calls: [{tool: look, with: {name: "{name}"}}]
      cites: [{value: X-1, from: look}]
    wrong:
      - {id: none, why: Nothing is called., plan: [{answer: X-1}]}
      - {id: other, why: Nothing is said., plan: [{call: look, with: {name: "{name}"}}, {answer: Done.}]}
"""


def by_hand(run: FinishedRun) -> list[str]:
    """A check in Python, as a user writes one."""
    name = run.facts["name"]
    looked = any(call.name == "look" and call.arguments == {"name": name} for call in run.calls)
    return (
        [] if looked and "X-1" in (run.answer or "") and run.before == run.after else [f"no code of {name}"]
    )


def breaking(run: FinishedRun) -> list[str]:
    """A check with a bug."""
    raise KeyError(run.answer)


def in_python(name: str) -> str:
    """Return the eval with a check in Python in the place of calls and citations."""
    head, rest = GOOD.split("    check:\n")
    return f'{head}    check: {{python: "{__name__}:{name}"}}\n    wrong:{rest.partition("wrong:")[2]}'


def test_a_check_may_be_a_function_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(in_python("by_hand"))
    (scenario,) = load_suite([path])
    assert tells_apart(scenario, range(3)) == []
    instance = scenario.instance(0)
    name = instance.facts["name"]
    assert judge(instance, played(instance, instance.plan_of("none"))).problems == (f"no code of {name}",)


def test_a_check_in_python_that_raises_fails_the_run_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(in_python("breaking"))
    (scenario,) = load_suite([path])
    instance = scenario.instance(0)
    (problem,) = judge(instance, played(instance)).problems
    assert problem == f"{__name__}:breaking raised KeyError: 'It is X-1.'"


def test_arguments_and_tables_may_have_the_names_of_functions(tmp_path: Path) -> None:
    renamed = GOOD.replace("rows_of", "total").replace("{name: string}", "{by: string}")
    renamed = renamed.replace("name=name", "name=by").replace("with: {name:", "with: {by:")
    path = tmp_path / "mine.yaml"
    path.write_text(renamed)
    (scenario,) = load_suite([path])
    assert tells_apart(scenario, range(2)) == []


def problems_of(folder: Path, text: str) -> list[str]:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return [str(problem).replace(str(path), "mine.yaml") for problem in load_paths([path]).problems]


def test_a_small_eval_is_good(tmp_path: Path) -> None:
    assert problems_of(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "facts"),
    [
        ("tier: easy", "tier: simple", 3, "'one'; tier: ; 'easy', 'medium' or 'hard'; got 'simple'"),
        ("    title: One", "    title: One\n    titel: One", 6, "'one'; key 'titel'; 'title'?"),
        ("as: code}", "as: cod}", 14, "'one'; plan.1.answer names 'code'; not defined; 'cod'?"),
        ('call: look, with: {name: "{name}"}, as', 'call: loko, with: {name: "{name}"}, as', 13, "'one'; tool 'loko'; 'look'?"),
        ("from: look", "from: lock", 17, "'one'; tool 'lock'; 'look'?"),
        ("task: Look up {name}.", "task: Look it up.", 13, "'one'; plan.0.with names 'name'; not defined; nothing"),
        ("one(rows_of, name=name)", "one(rows_off, name=name)", 10, "'one'; tools.look.gives names 'rows_off'; not defined; 'rows_of'?"),
        ("[a, b]", "[a]", 6, "'one'; vary.name: one_of: ; at least two"),
        ("vary: {name", "vary: {rows_of: x, name", 8, "'one'; world.rows_of: ; name; vary; unique"),
        ("cites: [{value: X-1, from: look}]", "cites: []", 15, "'one'; check: cites: ; one or more, or python"),
        ("- {id: none, why: Nothing is called., plan: [{answer: X-1}]}\n      ", "", 18, "'one'; wrong: ; at least 2 scripts"),
        ("expect_calls: [{tool: look, with: {name:", "expect_calls: [{tool: look, with: {nam:", 16, "'one'; look has no argument 'nam'; 'name'?"),
        ('with: {name: "{name}"}}]\n      cites', 'with: {name: {$rex: a}}}]\n      cites', 16, "'one'; {'$rex': 'a'}; not a condition; '$regex'?"),
        ("      cites: [", "      at_most: {loo: 2}\n      cites: [", 17, "'one'; tool 'loo'; 'look'?"),
        ("      cites: [", "      never_called: ['s*']\n      cites: [", 17, "'one'; tool 's*'; available: look"),
        ('{name: "{name}", code: X-1}', '{name: "{nam}", code: X-1}', 8, "'one'; world.rows_of.rows.0 names 'nam'; not defined; 'name'?"),
        ("It is {code}.", "It is {code.", 14, "'one'; 'It is {code.': ; unclosed brace; write {{"),
        ("task: Look up {name}.", "task: Look up {name x}.", 11, "'one'; 'name x'; not an expression; invalid syntax"),
        ("as: code}", "as: code, for: \"x in [1]\", while: last}", 13, "'one'; plan[0]: ; 'for' and 'while'; one call"),
        ("look: {description", "look: {distractor: true, description", 13, "'one'; plan calls 'look'; distractor"),
        ("  - id: one", "  - id: one\n    tools: {}", 10, "duplicate key 'tools'; first at line 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, line: int, facts: str
) -> None:
    assert old in GOOD
    [problem] = problems_of(tmp_path, GOOD.replace(old, new, 1))
    assert says(problem, f"mine.yaml:{line}", *facts.split("; "))


def test_a_world_that_cannot_begin_is_told(tmp_path: Path) -> None:
    text = GOOD.replace(
        "code: X-1}]}", "code: X-1}], more: [{count: 3, row: {name: {one_of: [c, d]}}}], unique: [name]}"
    )
    (told,) = problems_of(tmp_path, text)
    assert says(told, "mine.yaml:2", "eval 'one'", "world", "rows_of/0/3/name", "no unused values")


def test_several_problems_are_told_at_once_and_raise_together(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        GOOD.replace("from: look", "from: lock").replace("as: code}", "as: cod}"), encoding="utf-8"
    )
    with pytest.raises(BadScenario, match=r"(?s)mine.yaml:14: .*\n.*mine.yaml:17: "):
        load_suite([path])


def test_two_evals_of_one_id_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(GOOD, encoding="utf-8")
    (problem,) = load_paths([tmp_path]).problems
    assert says(problem.message, "duplicate id 'one'", f"{tmp_path / 'a.yaml'}:2")


def test_files_of_evals_are_no_scenarios_and_are_passed_over_beside_some(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD, encoding="utf-8")
    (problem,) = load_scenarios([tmp_path]).problems
    assert says(problem.message, "evals, not scenarios", "`statek-sim evals check`")
    (tmp_path / "b.yaml").write_text(
        "scenarios:\n  - {id: two, title: Two, agents: {w: {}}, script: {w: [{code: exit(1)}]}}\n",
        encoding="utf-8",
    )
    loaded = load_scenarios([tmp_path])
    assert ([one.id for one in loaded.scenarios], loaded.problems) == (["two"], ())


def test_a_scenario_with_a_word_of_evals_in_it_is_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "scenarios:\n  - id: two\n    title: >-\n      About\n      evals: and more\n    agents: {w: {}}\n"
        "    script: {w: [{code: exit(1)}]}\n",
        encoding="utf-8",
    )
    assert [one.id for one in load_scenarios([tmp_path]).scenarios] == ["two"]


def test_a_file_of_evals_may_be_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(_value(GOOD)), encoding="utf-8")
    assert [one.id for one in load_suite([tmp_path])] == ["one"]


def test_the_published_schema_takes_every_shipped_file() -> None:
    validator = Draft202012Validator(evals_schema())
    Draft202012Validator.check_schema(evals_schema())
    for path in sorted(FOLDER.glob("*.yaml")):
        root = parse(path.read_text(encoding="utf-8"))
        assert root is not None
        assert list(validator.iter_errors(node_value(root))) == []


def test_the_published_schema_refuses_what_the_loader_refuses() -> None:
    validator = Draft202012Validator(evals_schema())
    value: Any = _value(GOOD.replace("tier: easy", "tier: simple"))
    assert [error.json_path for error in validator.iter_errors(value)] == ["$.evals[0].tier"]


def _value(text: str) -> JsonValue:
    root = parse(text)
    assert root is not None
    value: JsonValue = json.loads(json.dumps(node_value(root)))
    return value


def test_draws_are_of_their_name_alone() -> None:
    one, other = Draws("a", 1), Draws("a", 1)
    other.pick("before", [1, 2, 3])
    assert one.code("x", "??-##") == other.code("x", "??-##")
    assert one.code("x", "??-####") != Draws("a", 2).code("x", "??-####")
    assert one.shuffled("s", range(20)) == other.shuffled("s", range(20))
    assert sorted(one.shuffled("s", range(20))) == list(range(20))
