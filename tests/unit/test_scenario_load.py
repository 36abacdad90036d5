"""Loading scenario files: what is accepted, and that every mistake is found where it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from statek_sim.errors import BadScenario
from statek_sim.scenario.load import load_or_fail, load_paths
from statek_sim.scenario.locate import _OUR_WORDS, json_schema
from statek_sim.tool_names import BUILT_IN_TOOLS
from tests.soon import soon
from tests.tables import table_test

TOOLS = (
    f"Known: {', '.join(BUILT_IN_TOOLS)} (`statek-sim list tools` describes them); "
    "write your own as 'module:attribute'"
)

SAMPLES = Path(__file__).parent / "samples"

PLAIN = """\
scenarios:
  - id: one
    title: A plain scenario
    agents: {worker: {}}
"""


def problems_of(tmp_path: Path, text: str | bytes) -> list[str]:
    path = tmp_path / "file.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [str(problem).removeprefix(f"{path}:").strip() for problem in load_paths([path]).problems]


def test_a_scenario_knows_its_suite_its_file_and_its_line() -> None:
    path = SAMPLES / "good" / "everything.yaml"
    [scenario] = load_or_fail([path])
    assert (scenario.suite, scenario.path, scenario.line) == ("samples", path, 12)
    assert len(scenario.file_digest) == 64


def test_the_suite_is_the_folder_unless_the_file_names_it() -> None:
    [scenario] = load_or_fail([SAMPLES / "good" / "minimal.yaml"])
    assert scenario.suite == "good"


def test_a_scenario_without_jobs_has_the_job_main_of_its_only_agent() -> None:
    [scenario] = load_or_fail([SAMPLES / "good" / "minimal.yaml"])
    assert {name: job.agent for name, job in scenario.jobs.items()} == {"main": "worker"}


def test_a_job_that_names_no_agent_has_the_only_one(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(PLAIN + "    jobs: {first: {}, second: {message: hi}}\n")
    [scenario] = load_or_fail([tmp_path])
    assert [(name, job.agent, job.message) for name, job in scenario.jobs.items()] == [
        ("first", "worker", None),
        ("second", "worker", "hi"),
    ]


def test_a_scenario_with_a_loop_has_no_job_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(PLAIN + "    loops: [worker]\n")
    [scenario] = load_or_fail([tmp_path])
    assert (scenario.loops, dict(scenario.jobs)) == (("worker",), {})


def test_defaults_are_merged_under_every_scenario() -> None:
    [scenario] = load_or_fail([SAMPLES / "good" / "everything.yaml"])
    assert scenario.preset == "local"
    assert dict(scenario.limits.said_items()) == {
        "max_turns": None,
        "max_exceptions": 3,
        "max_consecutive_exceptions": 1,
        "max_token_usage": 10000,
        "limit_extension_per_completion": 0.5,
    }
    assert (scenario.agents["worker"].prompt, scenario.agents["worker"].model) == (
        "You process work items.",
        "gpt-4o-mini",
    )


def test_folders_are_searched_in_a_fixed_order_and_every_file_is_loaded_once(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.yaml").write_text(PLAIN.replace("id: one", f"id: {name}"))
    (tmp_path / "statements.yaml").write_text("[]")
    (tmp_path / "notes.txt").write_text("not a scenario")
    scenarios = load_or_fail([tmp_path, tmp_path / "b", tmp_path / "b" / "file.yaml"])
    assert [scenario.id for scenario in scenarios] == ["a", "b"]


@table_test(
    ("name", "problem"),
    [
        ("unknown_key", "5: scenario 'bad': unknown key 'max_tuns' in limits. Did you mean 'max_turns'?"),
        ("wrong_type", "7: scenario 'bad': limits.max_turns: expected a whole number, got '5'"),
        ("flag_for_number", "5: scenario 'bad': limits.max_turns: expected a whole number, got true"),
        ("negative_limit", "5: scenario 'bad': limits.max_turns: expected a number of at least 0, got -1"),
        ("missing_title", "2: scenario 'bad': missing key 'title'"),
        (
            "unquoted_profile",
            "5: scenario 'bad': profiles[1]: expected 'docs', '1.2.5', '1.2', '1.4' "
            "or 'hardened', got 1.2; "
            'write "1.2" in quotes',
        ),
        (
            "misspelt_value",
            "5: scenario 'bad': order: expected 'fifo', 'newest' or 'shuffled', got 'shufled'. "
            "Did you mean 'shuffled'?",
        ),
        (
            "two_kinds_of_reply",
            "8: scenario 'bad': script.worker[1]: code and http exclude each other; only tools may be "
            "combined with code or text",
        ),
        ("event_without_time", "5: scenario 'bad': events[0]: expected exactly one of at, after"),
        ("push_without_message", "5: scenario 'bad': events[0]: push requires message"),
        ("no_scenarios", "2: scenarios: expected at least one entry, got an empty list"),
        ("scenario_is_text", "1: scenarios[0]: expected a mapping, got 'smallest'"),
        ("id_in_defaults", "1: unknown key 'id' in defaults"),
        (
            "bad_console",
            "5: scenario 'bad': expect.jobs.main.console: expected a list of lines, "
            "or a mapping of contains, excludes, lines, got 'hello'",
        ),
    ],
)
def test_a_mistake_is_reported_at_its_line(name: str, problem: str) -> None:
    path = SAMPLES / "bad" / f"{name}.yaml"
    assert [str(found) for found in load_paths([path]).problems] == [f"{path}:{problem}"]


def test_all_problems_of_all_files_are_reported_at_once() -> None:
    files = sorted((SAMPLES / "bad").glob("*.yaml"))
    reported = {problem.path for problem in load_paths([SAMPLES / "bad"]).problems}
    assert sorted(reported) == files


def test_loading_fails_with_one_line_per_problem() -> None:
    files = [SAMPLES / "bad" / "negative_limit.yaml", SAMPLES / "bad" / "missing_title.yaml"]
    with pytest.raises(BadScenario, match=r"^\S+negative_limit.yaml:5: .*\n\S+missing_title.yaml:2: [^\n]*$"):
        load_or_fail(files)


def test_a_mistake_in_the_defaults_is_reported_once_and_there(tmp_path: Path) -> None:
    text = "defaults:\n  limits: {max_turns: no}\n" + PLAIN + PLAIN.split("\n", 1)[1].replace("one", "two")
    assert problems_of(tmp_path, text) == ["2: defaults.limits.max_turns: expected a whole number, got 'no'"]


def test_an_unknown_name_in_the_defaults_is_reported_once_and_there(tmp_path: Path) -> None:
    text = "defaults:\n  preset: locale\n" + PLAIN + PLAIN.split("\n", 1)[1].replace("one", "two")
    assert problems_of(tmp_path, text) == [
        "2: defaults: preset: 'locale' is neither one of default, local, interactive, batch "
        "nor a file next to this one. Did you mean 'local'?"
    ]


def test_a_duplicate_id_names_both_places(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(PLAIN)
    result = load_paths([tmp_path])
    assert [scenario.path.name for scenario in result.scenarios] == ["a.yaml"]
    assert [str(problem) for problem in result.problems] == [
        f"{tmp_path}/b.yaml:2: duplicate id 'one', first at {tmp_path}/a.yaml:2"
    ]


def test_a_duplicate_key_is_refused(tmp_path: Path) -> None:
    text = PLAIN + "    seed: 1\n    seed: 2\n"
    assert problems_of(tmp_path, text) == ["6: duplicate key 'seed', first at line 5"]


def test_an_alias_bomb_is_refused_at_its_first_anchor(tmp_path: Path) -> None:
    levels = [f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = "\n".join(["b0: &b0 [lol]", *levels])
    assert problems_of(tmp_path, text) == [
        "1: anchors are not supported, got &b0; use `defaults:` to share values"
    ]


def test_an_alias_without_anchor_is_refused(tmp_path: Path) -> None:
    assert problems_of(tmp_path, PLAIN + "    seed: *seed\n") == [
        "5: aliases are not supported, got *seed; use `defaults:` to share values"
    ]


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with soon():
        [problem] = load_paths([path]).problems
    assert str(problem) == f"{path}: 50000000 bytes, expected at most 5000000"


def test_text_that_is_not_utf_8_is_refused_at_its_line(tmp_path: Path) -> None:
    text = PLAIN.replace("plain", "za\xfc").encode("latin-1")
    assert problems_of(tmp_path, text) == ["3: byte 0xfc is not UTF-8"]


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert problems_of(tmp_path, b"\xef\xbb\xbf" + PLAIN.encode()) == []


def test_control_characters_are_refused(tmp_path: Path) -> None:
    assert problems_of(tmp_path, PLAIN.replace("plain", "pl\0ain")) == ["3: control character U+0000"]


def test_a_tab_in_the_indentation_is_named(tmp_path: Path) -> None:
    assert problems_of(tmp_path, PLAIN.replace("    title", "\ttitle")) == [
        "3: a tab in the indentation; use spaces"
    ]


def test_an_unknown_key_that_is_near_no_other_names_those_of_a_small_part(tmp_path: Path) -> None:
    text = PLAIN.rstrip("\n") + "\n    world: {external: [approval]}\n"
    (problem,) = problems_of(tmp_path, text)
    assert problem.endswith("unknown key 'external' in world, expected queue or futures")


@table_test(
    ("line", "meant"),
    [
        ("agents: {w: {system_prompt: Work.}}", "in agents.w. Did you mean 'prompt'?"),
        ("jobs: {main: {task: Go}}", "in jobs.main. Did you mean 'message'?"),
        ("replies: {w: []}", "Did you mean 'script'?"),
        ("max_turns: 3", "Did you mean 'limits'?"),
        ("assertions: {}", "Did you mean 'expect'?"),
        ("script: {w: [{content: hi}]}", "in script.w[0]. Did you mean 'text'?"),
        ("expect: {jobs: {main: {exception: 1}}}", "in expect.jobs.main. Did you mean 'exceptions'?"),
        (
            "jobs: {main: {colour: 1}}",
            "in jobs.main, expected agent or message or locals or warmup or parent or",
        ),
    ],
)
def test_a_word_of_other_tools_leads_to_the_key_that_is_meant(line: str, meant: str, tmp_path: Path) -> None:
    problems = problems_of(tmp_path, f"scenarios:\n  - id: a\n    title: A\n    {line}\n")
    assert [problem for problem in problems if meant in problem], problems


def test_every_key_that_words_of_others_lead_to_is_one() -> None:
    text = json.dumps(json_schema())
    assert [key for key in _OUR_WORDS if f'"{key}": {{' not in text] == []


@table_test(
    ("text", "problem"),
    [
        ("", "1: expected a mapping with the key 'scenarios', got an empty file"),
        ("# nothing\n", "1: expected a mapping with the key 'scenarios', got an empty file"),
        ("- id: one\n", "1: expected a mapping with the key 'scenarios', got a list"),
        ("scenarios\n", "1: expected a mapping with the key 'scenarios', got 'scenarios'"),
        ("suite: one\n", "1: missing key 'scenarios'"),
        ("scenario: []\n", "1: unknown key 'scenario'. Did you mean 'scenarios'?"),
        (PLAIN + "---\n" + PLAIN, "5: expected one YAML document, got a second one"),
        (
            PLAIN + "    seed: [\n",
            "6: not valid YAML: did not find expected node content while parsing a flow node",
        ),
        (
            PLAIN.replace("id: ", 'id: "', 1),
            "5: not valid YAML: found unexpected end of stream while scanning a quoted scalar that begins in line 2",
        ),
        (PLAIN + "    expect_in: {1.4: {}}\n", '5: a key must be a string; write "1.4" in quotes'),
        (PLAIN + "    ? [a]\n    : 1\n", "5: a key must be a string, got a list or mapping"),
        (PLAIN + "    limits: {max_turns: .nan}\n", "5: expected a finite number, got .nan"),
        (PLAIN + "    until: .inf\n", "5: expected a finite number, got .inf"),
        (PLAIN + "    until: 1e999\n", "5: expected a finite number, got 1e999"),
        (PLAIN + f"    seed: {'9' * 5000}\n", "5: a number with more than 1000 digits"),
    ],
)
def test_what_is_no_scenario_file_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in problems_of(tmp_path, text)


@table_test("tag", ["!!python/object/apply:os.system", "!local", "!!binary", "!!str"])
def test_tags_are_refused(tmp_path: Path, tag: str) -> None:
    [problem] = problems_of(tmp_path, PLAIN + f"    tags: [{tag} x]\n")
    assert problem.startswith("5: tags are not supported, got ")


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_deep_nesting_is_refused_quickly(tmp_path: Path, text: str) -> None:
    with soon():
        assert problems_of(tmp_path, text) == ["1: nested deeper than 50 levels"]


def test_of_very_many_problems_the_first_hundred_are_reported(tmp_path: Path) -> None:
    text = PLAIN + "    settings:\n" + "".join(f"      a{n}: 1\n" for n in range(50_000))
    with soon():
        found = problems_of(tmp_path, text)
    assert (len(found), found[0]) == (101, "6: scenario 'one': settings: unknown setting 'a0'")
    assert found[-1].endswith("these were the first 100 problems")


def test_a_missing_path_is_reported(tmp_path: Path) -> None:
    [problem] = load_paths([tmp_path / "nowhere.yaml"]).problems
    assert str(problem) == f"{tmp_path}/nowhere.yaml: no such file or folder"


def test_a_folder_without_scenario_files_is_reported(tmp_path: Path) -> None:
    [problem] = load_paths([tmp_path]).problems
    assert str(problem) == f"{tmp_path}: no scenario files found, expected *.yaml or *.yml"


def test_a_symbolic_link_to_itself_is_reported(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    for path in (tmp_path / "loop.yaml", tmp_path):
        [problem] = load_paths([path]).problems
        assert problem.message == "a symbolic link that leads to itself"


def test_a_link_that_leads_nowhere_is_named_and_not_its_folder(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").symlink_to("moved.yaml")
    [problem] = load_paths([tmp_path]).problems
    assert problem.path == tmp_path / "gone.yaml"
    assert problem.message == "a symbolic link to 'moved.yaml', which does not exist"


def test_a_folder_that_links_to_itself_is_searched_once(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(PLAIN)
    (tmp_path / "again").symlink_to(tmp_path)
    assert [scenario.id for scenario in load_or_fail([tmp_path])] == ["one"]


def test_something_that_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    [problem] = load_paths([tmp_path]).problems
    assert problem.message == "not a regular file"


@table_test(
    ("extra", "problem"),
    [
        ("jobs: {a: {agent: wroker}}", "jobs.a.agent: unknown agent 'wroker'. Did you mean 'worker'?"),
        ("jobs: {a: {parent: b}, b: {}}", "jobs.a.parent: unknown earlier job 'b'. None are defined"),
        ("jobs: {a: {subtask: s}}", "jobs.a: a subtask requires a parent"),
        ("loops: [nobody]", "loops[0]: unknown agent 'nobody'. Known: worker"),
        ("script: {nobody: []}", "script.nobody: unknown agent 'nobody'. Known: worker"),
        ('script: {"job:mian": []}', "script.job:mian: unknown job 'mian'. Did you mean 'main'?"),
        ("script: {worker: [{text: a, job: x}]}", "script.worker[0].job: unknown job 'x'. Known: main"),
        ("events: [{at: 1, push: b, message: c}]", "events[0].push: unknown job 'b'. Known: main"),
        ("events: [{at: 1, resolve: a}]", "events[0].resolve: unknown future 'a'. None are defined"),
        ("events: [{at: 1, complete: a}]", "events[0].complete: unknown subtask 'a'. None are defined"),
        ("goes_bad: {mian: 2}", "goes_bad.mian: unknown job 'mian'. Did you mean 'main'?"),
        ("goes_bad: {main: 0}", "goes_bad.main: expected a number of more than 0, got 0"),
        ("expect: {jobs: {mian: {}}}", "expect.jobs.mian: unknown job 'mian'. Did you mean 'main'?"),
        (
            "expect: {world: {items: {a: {}}}}",
            "expect.world.items.a: unknown queue item 'a'. None are defined",
        ),
        (
            'profiles: [docs]\n    expect_in: {"1.4": {}}',
            "expect_in: profile '1.4' is not among profiles (docs)",
        ),
        ("settings: {chat_stile: X}", "settings: unknown setting 'chat_stile'. Did you mean 'chat_style'?"),
        ("settings: {max_turns: 1}", "settings: 'max_turns' is a limit; set it under limits"),
        (
            "settings: {chat_style: X}",
            "settings: chat_style='X': expected CONSOLE, MARKDOWN, MD_DIALOG or DIRECT",
        ),
        ("world: {futures: [a, a]}", "world.futures: 'a' is listed twice"),
        (
            "world: {queue: {items: [{id: a, status: CLAIMED}]}}",
            "item 'a' is CLAIMED and requires an owner",
        ),
        ("jobs: {a: {locals: {x: {$world: owner}}}}", "jobs.a.locals.x: the world has no queue"),
        (
            "jobs: {a: {locals: {x: {$world: cat}}}}",
            "jobs.a.locals: expected owner, owner:ID, queue, item:ID or future:NAME, got 'cat'",
        ),
        (
            "jobs: {a: {at: 1}}\n    events: [{at: 1, start: a}]",
            "jobs.a: has both `at` and a start event; remove one",
        ),
        ("tools: []", "tools: expected a mapping, got an empty list"),
        (
            "tools: {look: {result: seen}}",
            "tools: 'tools' is for the agent engine, but this scenario has `engine: statek`",
        ),
        ("agents: {worker: {tools: [a b]}}", None),
        (
            "agents: {worker: {tools: [echo, get_any, fetch_status, own.tools:a, ecko]}}",
            "agents.worker.tools[4]: unknown built-in tool 'ecko'. Did you mean 'echo'? `statek-sim list "
            "tools` lists them",
        ),
        (
            "agents: {worker: {tools: [zzz]}}",
            f"agents.worker.tools[0]: unknown built-in tool 'zzz'. {TOOLS}",
        ),
        ("script: {worker: [{text: a, when: {last_message: {matches: '('}}}]}", None),
    ],
)
def test_contradictions_and_unknown_names_are_found(tmp_path: Path, extra: str, problem: str | None) -> None:
    base = PLAIN.rsplit("\n", 2)[0] + "\n" if extra.startswith("agents") else PLAIN
    found = problems_of(tmp_path, f"{base}    {extra}\n")
    assert len(found) == 1
    if problem is not None:
        assert found[0].partition(": ")[2] == f"scenario 'one': {problem}"


def test_names_that_a_run_gives_itself_are_accepted(tmp_path: Path) -> None:
    extra = (
        "    script: {\"job:job-1\": [{code: \"start_subtask('worker', id='part-1')\"}]}\n"
        "    events: [{at: 1, complete: part-1, result: 1}, {at: 2, push: job-1, message: hi}]\n"
        "    expect: {jobs: {job-1: {status: DONE}}}\n"
    )
    assert problems_of(tmp_path, PLAIN + extra) == []


def test_a_preset_may_be_a_file_beside_the_scenarios(tmp_path: Path) -> None:
    (tmp_path / "tight.env").write_text("STATEK_MAX_TURNS=1\n")
    assert problems_of(tmp_path, PLAIN + "    preset: tight.env\n") == []


def test_a_long_file_of_scenarios_loads_in_time_that_grows_with_its_length(tmp_path: Path) -> None:
    body = (SAMPLES / "good" / "everything.yaml").read_text().partition("scenarios:\n")
    scenarios = "".join(body[2].replace("id: everything", f"id: everything-{n}") for n in range(60))
    path = tmp_path / "many.yaml"
    path.write_text(body[0] + body[1] + scenarios)
    with soon():
        assert len(load_or_fail([path])) == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "events: [{at: 60, resolve: approval}]",
            "events[0].at: 60 is after the end of the run, 30 (`until`): raise or remove until",
        ),
        (
            "jobs: {main: {at: 31}}",
            "jobs.main.at: 31 is after the end of the run, 30 (`until`): raise or remove until",
        ),
        ("events: [{at: 30, resolve: approval}]", None),
    ],
)
def test_what_would_happen_after_the_end_is_refused(tmp_path: Path, text: str, said: str | None) -> None:
    file = tmp_path / "late.yaml"
    file.write_text(
        "scenarios:\n  - id: late\n    title: Late\n    until: 30\n    world: {futures: [approval]}\n"
        f"    agents: {{worker: {{}}}}\n    {text}\n"
    )
    found = load_paths([file]).problems
    assert [problem.message for problem in found] == ([] if said is None else [f"scenario 'late': {said}"])
