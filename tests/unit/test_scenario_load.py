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
from tests.says import says
from tests.soon import soon
from tests.tables import table_test

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
    ("name", "line", "facts"),
    [
        ("unknown_key", 5, "'bad'; key; 'max_tuns'; limits; 'max_turns'?"),
        ("wrong_type", 7, "'bad'; limits.max_turns; whole number; got '5'"),
        ("flag_for_number", 5, "'bad'; limits.max_turns; whole number; got true"),
        ("negative_limit", 5, "'bad'; limits.max_turns; at least 0; got -1"),
        ("missing_title", 2, "'bad'; missing; 'title'"),
        (
            "unquoted_profile",
            5,
            "'bad'; profiles[1]; 'docs'; '1.2.5'; '1.2'; '1.4'; 'hardened'; \"1.2\"; quotes",
        ),
        (
            "misspelt_value",
            5,
            "'bad'; order; expected 'fifo', 'newest' or 'shuffled'; got 'shufled'; 'shuffled'?",
        ),
        ("two_kinds_of_reply", 8, "'bad'; script.worker[1]; code; http; tools; code; text"),
        ("event_without_time", 5, "'bad'; events[0]; one; at,; after"),
        ("push_without_message", 5, "'bad'; events[0]; push; requires; message"),
        ("no_scenarios", 2, "scenarios: ; at least one; got an empty list"),
        ("scenario_is_text", 1, "scenarios[0]; expected a mapping; got 'smallest'"),
        ("id_in_defaults", 1, "unknown; key; 'id'; defaults"),
        (
            "bad_console",
            5,
            "'bad'; expect.jobs.main.console; list; mapping; contains,; excludes,; lines; 'hello'",
        ),
    ],
)
def test_a_mistake_is_reported_at_its_line(name: str, line: int, facts: str) -> None:
    path = SAMPLES / "bad" / f"{name}.yaml"
    [problem] = load_paths([path]).problems
    assert (problem.path, problem.line) == (path, line)
    assert says(str(problem), f"{path}:{line}", *facts.split("; "))


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
    [problem] = problems_of(tmp_path, text)
    assert says(problem, "2: defaults.limits.max_turns", "whole number", "'no'")


def test_an_unknown_name_in_the_defaults_is_reported_once_and_there(tmp_path: Path) -> None:
    text = "defaults:\n  preset: locale\n" + PLAIN + PLAIN.split("\n", 1)[1].replace("one", "two")
    [problem] = problems_of(tmp_path, text)
    presets = "default, local, interactive, batch"
    assert says(problem, "2: defaults", "preset", "'locale'", presets, "file", "'local'?")


def test_a_duplicate_id_names_both_places(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(PLAIN)
    result = load_paths([tmp_path])
    assert [scenario.path.name for scenario in result.scenarios] == ["a.yaml"]
    [problem] = result.problems
    assert (problem.path, problem.line) == (tmp_path / "b.yaml", 2)
    assert says(problem.message, "id 'one'", f"{tmp_path}/a.yaml:2")


def test_a_duplicate_key_is_refused(tmp_path: Path) -> None:
    text = PLAIN + "    seed: 1\n    seed: 2\n"
    [problem] = problems_of(tmp_path, text)
    assert says(problem, "6: ", "duplicate", "'seed'", "line 5")


def test_an_alias_bomb_is_refused_at_its_first_anchor(tmp_path: Path) -> None:
    levels = [f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = "\n".join(["b0: &b0 [lol]", *levels])
    [problem] = problems_of(tmp_path, text)
    assert says(problem, "1: ", "anchors", "&b0", "`defaults:`")


def test_an_alias_without_anchor_is_refused(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, PLAIN + "    seed: *seed\n")
    assert says(problem, "5: ", "aliases", "*seed", "`defaults:`")


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with soon():
        [problem] = load_paths([path]).problems
    assert says(str(problem), f"{path}: ", "50000000 bytes", "at most 5000000")


def test_text_that_is_not_utf_8_is_refused_at_its_line(tmp_path: Path) -> None:
    text = PLAIN.replace("plain", "za\xfc").encode("latin-1")
    assert problems_of(tmp_path, text) == ["3: byte 0xfc is not UTF-8"]


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert problems_of(tmp_path, b"\xef\xbb\xbf" + PLAIN.encode()) == []


def test_control_characters_are_refused(tmp_path: Path) -> None:
    assert problems_of(tmp_path, PLAIN.replace("plain", "pl\0ain")) == ["3: control character U+0000"]


def test_a_tab_in_the_indentation_is_named(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, PLAIN.replace("    title", "\ttitle"))
    assert says(problem, "3: ", "tab", "spaces")


def test_an_unknown_key_that_is_near_no_other_names_those_of_a_small_part(tmp_path: Path) -> None:
    text = PLAIN.rstrip("\n") + "\n    world: {external: [approval]}\n"
    (problem,) = problems_of(tmp_path, text)
    assert says(problem, "key 'external'", "world", "expected queue or futures")


@table_test(
    ("line", "facts"),
    [
        ("agents: {w: {system_prompt: Work.}}", "key 'system_prompt' in agents.w; 'prompt'?"),
        ("jobs: {main: {task: Go}}", "key 'task' in jobs.main; 'message'?"),
        ("replies: {w: []}", "key 'replies'; 'script'?"),
        ("max_turns: 3", "key 'max_turns'; 'limits'?"),
        ("assertions: {}", "key 'assertions'; 'expect'?"),
        ("script: {w: [{content: hi}]}", "key 'content' in script.w[0]; 'text'?"),
        ("expect: {jobs: {main: {exception: 1}}}", "key 'exception' in expect.jobs.main; 'exceptions'?"),
        (
            "jobs: {main: {colour: 1}}",
            "key 'colour' in jobs.main; expected agent or message or locals or warmup or parent",
        ),
    ],
)
def test_a_word_of_other_tools_leads_to_the_key_that_is_meant(line: str, facts: str, tmp_path: Path) -> None:
    problems = problems_of(tmp_path, f"scenarios:\n  - id: a\n    title: A\n    {line}\n")
    assert says("\n".join(problems), *facts.split("; "))


def test_every_key_that_words_of_others_lead_to_is_one() -> None:
    text = json.dumps(json_schema())
    assert [key for key in _OUR_WORDS if f'"{key}": {{' not in text] == []


@table_test(
    ("text", "facts"),
    [
        ("", "1: ; expected a mapping with the key 'scenarios'; got an empty file"),
        ("# nothing\n", "1: ; expected a mapping with the key 'scenarios'; got an empty file"),
        ("- id: one\n", "1: ; expected a mapping with the key 'scenarios'; got a list"),
        ("scenarios\n", "1: ; expected a mapping with the key 'scenarios'; got 'scenarios'"),
        ("suite: one\n", "1: ; missing key 'scenarios'"),
        ("scenario: []\n", "1: ; unknown key 'scenario'; 'scenarios'?"),
        (PLAIN + "---\n" + PLAIN, "5: ; one YAML document; second"),
        (PLAIN + "    seed: [\n", "6: ; YAML; flow node"),
        (PLAIN.replace("id: ", 'id: "', 1), "5: ; YAML; quoted; end; line 2"),
        (PLAIN + "    expect_in: {1.4: {}}\n", '5: ; key must be a string; write "1.4" in quotes'),
        (PLAIN + "    ? [a]\n    : 1\n", "5: ; key must be a string; got a list or mapping"),
        (PLAIN + "    limits: {max_turns: .nan}\n", "5: ; finite; got .nan"),
        (PLAIN + "    until: .inf\n", "5: ; finite; got .inf"),
        (PLAIN + "    until: 1e999\n", "5: ; finite; got 1e999"),
        (PLAIN + f"    seed: {'9' * 5000}\n", "5: ; 1000 digits"),
    ],
)
def test_what_is_no_scenario_file_is_refused(tmp_path: Path, text: str, facts: str) -> None:
    assert says("\n".join(problems_of(tmp_path, text)), *facts.split("; "))


@table_test("tag", ["!!python/object/apply:os.system", "!local", "!!binary", "!!str"])
def test_tags_are_refused(tmp_path: Path, tag: str) -> None:
    [problem] = problems_of(tmp_path, PLAIN + f"    tags: [{tag} x]\n")
    assert says(problem, "5: ", "tags", tag.rpartition("!")[2])


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_deep_nesting_is_refused_quickly(tmp_path: Path, text: str) -> None:
    with soon():
        [problem] = problems_of(tmp_path, text)
    assert says(problem, "1: ", "nested", "50 levels")


def test_of_very_many_problems_the_first_hundred_are_reported(tmp_path: Path) -> None:
    text = PLAIN + "    settings:\n" + "".join(f"      a{n}: 1\n" for n in range(50_000))
    with soon():
        found = problems_of(tmp_path, text)
    assert len(found) == 101
    assert says(found[0], "6: ", "'one'", "setting 'a0'")
    assert says(found[-1], "first 100")


def test_a_missing_path_is_reported(tmp_path: Path) -> None:
    [problem] = load_paths([tmp_path / "nowhere.yaml"]).problems
    assert says(str(problem), f"{tmp_path}/nowhere.yaml: ", "file or folder")


def test_a_folder_without_scenario_files_is_reported(tmp_path: Path) -> None:
    [problem] = load_paths([tmp_path]).problems
    assert says(str(problem), f"{tmp_path}: ", "scenario files", "*.yaml or *.yml")


def test_a_symbolic_link_to_itself_is_reported(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    for path in (tmp_path / "loop.yaml", tmp_path):
        [problem] = load_paths([path]).problems
        assert says(problem.message, "symbolic link", "itself")


def test_a_link_that_leads_nowhere_is_named_and_not_its_folder(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").symlink_to("moved.yaml")
    [problem] = load_paths([tmp_path]).problems
    assert problem.path == tmp_path / "gone.yaml"
    assert says(problem.message, "symbolic link", "'moved.yaml'")


def test_a_folder_that_links_to_itself_is_searched_once(tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(PLAIN)
    (tmp_path / "again").symlink_to(tmp_path)
    assert [scenario.id for scenario in load_or_fail([tmp_path])] == ["one"]


def test_something_that_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    [problem] = load_paths([tmp_path]).problems
    assert problem.message == "not a regular file"


@table_test(
    ("extra", "facts"),
    [
        ("jobs: {a: {agent: wroker}}", "jobs.a.agent:; unknown agent 'wroker'; 'worker'?"),
        ("jobs: {a: {parent: b}, b: {}}", "jobs.a.parent:; unknown earlier job 'b'; None"),
        ("jobs: {a: {subtask: s}}", "jobs.a:; subtask requires a parent"),
        ("loops: [nobody]", "loops[0]:; unknown agent 'nobody'; Known: worker"),
        ("script: {nobody: []}", "script.nobody:; unknown agent 'nobody'; Known: worker"),
        ('script: {"job:mian": []}', "script.job:mian:; unknown job 'mian'; 'main'?"),
        ("script: {worker: [{text: a, job: x}]}", "script.worker[0].job:; unknown job 'x'; Known: main"),
        ("events: [{at: 1, push: b, message: c}]", "events[0].push:; unknown job 'b'; Known: main"),
        ("events: [{at: 1, resolve: a}]", "events[0].resolve:; unknown future 'a'; None"),
        ("events: [{at: 1, complete: a}]", "events[0].complete:; unknown subtask 'a'; None"),
        ("goes_bad: {mian: 2}", "goes_bad.mian:; unknown job 'mian'; 'main'?"),
        ("goes_bad: {main: 0}", "goes_bad.main: ; more than 0; got 0"),
        ("expect: {jobs: {mian: {}}}", "expect.jobs.mian:; unknown job 'mian'; 'main'?"),
        ("expect: {world: {items: {a: {}}}}", "expect.world.items.a:; unknown queue item 'a'; None"),
        (
            'profiles: [docs]\n    expect_in: {"1.4": {}}',
            "expect_in:; profile '1.4'; not among profiles (docs)",
        ),
        ("settings: {chat_stile: X}", "settings:; unknown setting 'chat_stile'; 'chat_style'?"),
        ("settings: {max_turns: 1}", "settings:; 'max_turns' is a limit; under limits"),
        ("settings: {chat_style: X}", "settings:; chat_style='X'; CONSOLE; MARKDOWN; MD_DIALOG; DIRECT"),
        ("world: {futures: [a, a]}", "world.futures:; 'a' is listed twice"),
        ("world: {queue: {items: [{id: a, status: CLAIMED}]}}", "item 'a' is CLAIMED; requires an owner"),
        ("jobs: {a: {locals: {x: {$world: owner}}}}", "jobs.a.locals.x:; world has no queue"),
        (
            "jobs: {a: {locals: {x: {$world: cat}}}}",
            "jobs.a.locals:; expected owner, owner:ID, queue, item:ID or future:NAME; got 'cat'",
        ),
        ("jobs: {a: {at: 1}}\n    events: [{at: 1, start: a}]", "jobs.a:; `at`; start event"),
        ("tools: []", "tools: ; expected a mapping; got an empty list"),
        ("tools: {look: {result: seen}}", "tools:; for the agent engine; `engine: statek`"),
        ("agents: {worker: {tools: [a b]}}", "agents.worker.tools[0]"),
        (
            "agents: {worker: {tools: [echo, get_any, fetch_status, own.tools:a, ecko]}}",
            "agents.worker.tools[4]:; unknown built-in tool 'ecko'; 'echo'?; `statek-sim list tools`",
        ),
        (
            "agents: {worker: {tools: [zzz]}}",
            f"agents.worker.tools[0]; tool 'zzz'; {', '.join(BUILT_IN_TOOLS)}; 'module:attribute'",
        ),
        ("script: {worker: [{text: a, when: {last_message: {matches: '('}}}]}", "script.worker[0]"),
    ],
)
def test_contradictions_and_unknown_names_are_found(tmp_path: Path, extra: str, facts: str) -> None:
    base = PLAIN.rsplit("\n", 2)[0] + "\n" if extra.startswith("agents") else PLAIN
    [problem] = problems_of(tmp_path, f"{base}    {extra}\n")
    assert says(problem, "scenario 'one'", *facts.split("; "))


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
    ("text", "facts"),
    [
        ("events: [{at: 60, resolve: approval}]", "events[0].at: 60; 30 (`until`)"),
        ("jobs: {main: {at: 31}}", "jobs.main.at: 31; 30 (`until`)"),
        ("events: [{at: 30, resolve: approval}]", None),
    ],
)
def test_what_would_happen_after_the_end_is_refused(tmp_path: Path, text: str, facts: str | None) -> None:
    file = tmp_path / "late.yaml"
    file.write_text(
        "scenarios:\n  - id: late\n    title: Late\n    until: 30\n    world: {futures: [approval]}\n"
        f"    agents: {{worker: {{}}}}\n    {text}\n"
    )
    found = load_paths([file]).problems
    assert len(found) == (facts is not None)
    assert all(says(problem.message, "'late'", *(facts or "").split("; ")) for problem in found)
