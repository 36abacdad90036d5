"""The command line: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer

from statek_sim.cli import main
from statek_sim.cli.app import HEADINGS, app, load_commands
from tests.says import says
from tests.unit.compare_samples import CHAT
from tests.unit.suite_samples import CLAIMS

load_commands()

PASSING = """\
scenarios:
  - {id: passes, title: Passes, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, expect: {llm_calls: 1}}
"""
FAILING = """\
scenarios:
  - {id: fails, title: Fails, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}, expect: {llm_calls: 3}}
"""
BAD = """\
scenarios:
  - {id: bad, title: Bad, agnets: {}}
"""


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it exited."""

    code: object
    out: str
    err: str


@dataclass(frozen=True)
class Shell:
    """Runs commands in a folder of its own."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Ran:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        captured = self.capsys.readouterr()
        return Ran(exit_.value.code or 0, captured.out, captured.err)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return Shell(tmp_path, capsys)


def test_a_run_exits_0_when_all_pass(shell: Shell) -> None:
    shell.write("suite/a.yaml", PASSING)
    ran = shell("run", "suite")
    assert (ran.code, ran.err) == (0, "")
    assert "3 passed" in ran.out


def test_a_run_exits_1_when_one_fails_and_tells_how_to_repeat_it(shell: Shell) -> None:
    shell.write("suite/a.yaml", PASSING)
    shell.write("suite/b.yaml", FAILING)
    ran = shell("run", "suite", "--profile", "1.4")
    assert ran.code == 1
    assert "suite/fails[1.4]: llm_calls: expected 3, got 1\n\n  Fails\n" in ran.out
    assert "    statek-sim run suite/b.yaml --select fails --profile 1.4\n" in ran.out
    assert "1 passed, 1 failed" in ran.out


def test_a_quiet_run_prints_failures_and_the_verdict_only(shell: Shell) -> None:
    shell.write("suite/a.yaml", PASSING)
    assert shell("run", "suite", "--quiet").out == "3 passed (1 scenario x 3 profiles)\n"
    shell.write("suite/b.yaml", FAILING)
    ran = shell("run", "suite", "-q", "--select", "fails", "--profile", "docs")
    assert ran.out.startswith("suite/fails[docs]: llm_calls: expected 3, got 1\n")
    assert ran.out.endswith("\n0 passed, 1 failed\n")


def test_the_command_of_a_failure_runs_just_that_one(shell: Shell) -> None:
    shell.write("suite/b.yaml", FAILING + FAILING.partition("\n")[2].replace("id: fails", "id: fails-too"))
    ran = shell("run", "suite/b.yaml", "--select", "fails", "--profile", "1.4", "-q")
    assert ran.out.endswith("0 passed, 1 failed\n")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "none"], ("none: ", "file or folder")),
        (["run", "suite", "--profile", "1.3"], ("'1.3'", "docs, 1.2.5, 1.2, 1.4")),
        (["run", "suite", "--preset", "bath"], ("preset 'bath'", "file", "built-in presets: ")),
        (["run", "suite", "--select", "zzz"], ("scenario", "none of 1")),
        (["run", "suite", "--tag", "zzz"], ("scenario", "none of 1", "no tags")),
        (["run", "bad"], ("bad/a.yaml:2", "'bad'", "key 'agnets'", "'agents'?")),
        (["run", "suite", "--accept", "--seed", "1"], ("--accept", "files")),
        (["run", "--accept"], ("--accept", "files")),
        (["run", "suite", "--select", "pases"], ("none of 1", "'passes'?")),
        (["run", "suite", "--json", "suite/a.yaml/x"], ("suite/a.yaml/x: ", "write the report")),
        (["run", "suite", "--json", "suite"], ("suite: ", "write the report", "Is a directory")),
        (["run", "suite", "--report", "suite/a.yaml"], ("--report suite/a.yaml", "expected", "folder")),
        (
            ["run", "suite", "--report", "suite/a.yaml/x"],
            ("suite/a.yaml/x/report.json: ", "write the report"),
        ),
        (["run", "suite", "--seed", "one"], ("Invalid", "'--seed'")),
        (["trace", "pases", "suite"], ("id 'pases'", "'passes'?")),
        (
            ["compare", "reference", "./none", "none", "--json", "suite"],
            ("suite: ", "write the report", "Is a directory"),
        ),
        (["list", "suites", "bad"], ("bad/a.yaml:2", "'bad'", "key 'agnets'")),
        (["explode"], ("command 'explode'", "'explore'?", "`statek-sim help`")),
        (["record"], ("command 'record'", "'cassette record'?", "`statek-sim help`")),
        (["help", "zzz"], ("command 'zzz'", "`statek-sim help`")),
        (["evals", "rn"], ("command 'evals rn'", "'run'?", "`statek-sim help evals`")),
        (["help", "jobs", "zzz"], ("command 'jobs zzz'", "`statek-sim help jobs`")),
        (["run", "help"], ("help: ", "file or folder")),
        (["suite"], ("command 'suite'", "`statek-sim run suite`")),
    ],
)
def test_bad_input_is_told_on_stderr_and_exits_2(
    shell: Shell, arguments: list[str], facts: tuple[str, ...]
) -> None:
    shell.write("suite/a.yaml", PASSING)
    shell.write("bad/a.yaml", BAD)
    ran = shell(*arguments)
    assert ran.code == 2
    # Usage errors are framed and wrapped.
    assert says(" ".join(ran.err.split()), *facts)
    assert "Traceback" not in ran.err


def test_a_tool_that_cannot_be_imported_exits_2(shell: Shell) -> None:
    shell.write(
        "a.yaml", "scenarios:\n  - {id: a, title: A, agents: {w: {tools: ['nowhere_to_be_found:tool']}}}\n"
    )
    ran = shell("run", "a.yaml")
    assert ran.code == 2
    assert says(ran.err, "a.yaml:2", "'a'", "'nowhere_to_be_found:tool'", "imported")


def test_tools_are_imported_from_where_the_command_runs(shell: Shell) -> None:
    shell.write(
        "tools_beside_the_suite.py",
        "from statek_sim.runtime.tools.declaration import tool\n\n\n"
        "@tool\ndef double(n, **kwargs):\n    '''Double it.'''\n    return 2 * n\n",
    )
    shell.write(
        "a.yaml",
        "scenarios:\n  - id: a\n    title: A\n    agents: {w: {tools: ['tools_beside_the_suite:double']}}\n"
        "    script: {w: [{code: exit(double(4))}]}\n    expect: {jobs: {main: {exit: 8}}}\n",
    )
    assert shell("run", "a.yaml", "-q").out == "3 passed (1 scenario x 3 profiles)\n"


def test_reports_are_written(shell: Shell) -> None:
    shell.write("suite/a.yaml", PASSING)
    shell.write("suite/b.yaml", FAILING)
    ran = shell(
        "run",
        "suite",
        "--profile",
        "docs",
        "--json",
        "out/r.json",
        "--report",
        "reports",
        "--seed",
        "3",
        "-q",
    )
    assert ran.code == 1
    report = json.loads((shell.folder / "out/r.json").read_text())
    assert report["schema"] == "statek-sim/report@1"
    assert (report["profile"], report["preset"], report["seed"]) == ("docs", "as written", 3)
    assert report["summary"] == {"total": 2, "passed": 1, "failed": 1}
    assert [entry["outcome"] for entry in report["scenarios"]] == ["failed", "passed"]
    assert json.loads((shell.folder / "reports/report.json").read_text()) == report
    assert "suite/fails[docs]" in (shell.folder / "reports/report.md").read_text()


def test_the_reports_name_a_preset_that_was_given(shell: Shell) -> None:
    shell.write("a.yaml", PASSING)
    ran = shell("run", "a.yaml", "--preset", "batch", "--json", "r.json")
    assert says(ran.out, "preset batch", "seeds as written")
    assert json.loads((shell.folder / "r.json").read_text())["preset"] == "batch"
    assert says(shell("run", "a.yaml").out, "presets as written", "seeds as written")


@pytest.mark.parametrize("options", [["--json", "a.yaml/r.json"], ["--report", "a.yaml"]])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(
    shell: Shell, options: list[str]
) -> None:
    shell.write("a.yaml", PASSING)
    ran = shell("run", "a.yaml", *options)
    assert (ran.code, ran.out) == (2, "")
    assert [path.name for path in shell.folder.iterdir()] == ["a.yaml"]


def test_accept_rewrites_shows_the_diff_and_exits_0(shell: Shell) -> None:
    shell.write("suite/b.yaml", FAILING)
    ran = shell("run", "suite", "--accept", "-q")
    assert ran.code == 0
    assert "+++ suite/b.yaml (after)" in ran.out
    assert ran.out.endswith("1 expectation written\n")
    assert shell("run", "suite", "-q").out == "3 passed (1 scenario x 3 profiles)\n"


def test_accept_exits_1_when_something_is_left(shell: Shell) -> None:
    shell.write("b.yaml", FAILING.replace("llm_calls: 3", "jobs: {main: {console: {contains: [zzz]}}}"))
    ran = shell("run", "b.yaml", "--accept", "-q", "--profile", "docs")
    assert ran.code == 1
    [left] = ran.err.splitlines()
    assert says(left, f"{shell.folder.name}/fails[docs]", "jobs.main.console.contains[0]", "zzz")


def test_validate_tells_every_problem_and_runs_nothing(shell: Shell) -> None:
    shell.write("good.yaml", PASSING)
    assert shell("validate", "good.yaml") == Ran(0, "1 valid\n", "")
    shell.write("bad.yaml", BAD + "  - {id: Bad Id, title: Bad, agents: {w: {}}}\n")
    ran = shell("validate", ".")
    assert (ran.code, ran.out) == (2, "")
    assert [line.split(" ")[0] for line in ran.err.splitlines()] == ["bad.yaml:2:", "bad.yaml:3:"]


def test_validate_answers_in_json(shell: Shell) -> None:
    shell.write("good.yaml", PASSING)
    good = json.loads(shell("validate", "good.yaml", "--json", "-").out)
    assert good == {
        "schema": "statek-sim/validation@1",
        "valid": True,
        "scenarios": 1,
        "evals": 0,
        "problems": [],
    }
    shell.write("bad.yaml", BAD)
    ran = shell("validate", "bad.yaml", "good.yaml", "--json", "-")
    said = json.loads(ran.out)
    assert (ran.code, ran.err, said["valid"], said["scenarios"]) == (2, "", False, 1)
    (problem,) = said["problems"]
    assert (problem["path"], problem["line"]) == ("bad.yaml", 2)
    assert says(problem["message"], "'bad'", "key 'agnets'", "'agents'?")


def test_every_json_option_takes_a_file(shell: Shell) -> None:
    def options(command: Any) -> Iterator[Any]:
        for inner in vars(command).get("commands", {}).values():
            yield from options(inner)
        yield from (parameter for parameter in command.params if "--json" in parameter.opts)

    found = list(options(typer.main.get_command(app)))
    assert len(found) > 10
    assert {option.metavar for option in found} == {"FILE"}


def test_what_is_valid_is_written_to_a_file_or_printed(shell: Shell) -> None:
    shell.write("good.yaml", PASSING)
    written = shell("validate", "good.yaml", "--json", "out/found.json")
    assert written == Ran(0, "1 valid\n", "")
    printed = shell("validate", "good.yaml", "--json", "-")
    assert printed.out == (shell.folder / "out" / "found.json").read_text("utf-8")
    assert not (shell.folder / "-").exists()


def test_a_scenario_is_no_file_to_write_json_to(shell: Shell) -> None:
    shell.write("good.yaml", PASSING)
    shell.write("other.yaml", PASSING)
    for name in ("good.yaml", "other.yaml"):
        ran = shell("validate", "good.yaml", "--json", name)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert says(ran.err, f"{name}: ", "exists", "not a report")
    assert shell("validate", "good.yaml", "--json", "new.yaml").out == "1 valid\n"
    assert (shell.folder / "new.yaml").read_text("utf-8").startswith("{")


def test_text_and_json_are_not_mixed_on_standard_output(shell: Shell) -> None:
    shell.write("good.yaml", PASSING)
    ran = shell("run", "good.yaml", "--json", "-")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert says(ran.err, "-: ", "standard output", "file")


def test_validate_finds_an_unknown_tool_at_its_own_line(shell: Shell) -> None:
    shell.write(
        "a.yaml",
        "scenarios:\n  - id: a\n    title: A\n    agents:\n      w:\n        tools:\n"
        "          - echo\n          - fetch_next_itm\n",
    )
    ran = shell("validate", "a.yaml")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    place = ("a.yaml:8", "'a'", "agents.w.tools[1]")
    assert says(ran.err, *place, "'fetch_next_itm'", "'fetch_next_item'?", "`statek-sim list tools`")


def test_the_schema_is_valid_and_accepts_what_runs(shell: Shell) -> None:
    schema = json.loads(shell("list", "schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"scenarios": [{"id": "a", "title": "A", "agents": {"w": {}}}]}, schema)


def test_suites_are_listed_with_counts(shell: Shell) -> None:
    shell.write("one/a.yaml", PASSING)
    shell.write("two/b.yaml", FAILING.replace("title: Fails", "title: Fails, profiles: [docs]"))
    ran = shell("list", "suites", "one", "two")
    assert ran.out.splitlines() == [
        "suite  scenarios  runs",
        "one            1     3",
        "two            1     1",
        "total          2     4",
    ]


def test_a_trace_is_json_lines_that_give_the_digest(shell: Shell) -> None:
    shell.write("a.yaml", f"scenarios:\n{CLAIMS}")
    ran = shell("trace", "claims", "a.yaml", "--profile", "1.4")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "")
    assert lines[0] == {"trace": 1, "profile": "1.4", "seed": 0}
    assert lines[1]["event"] == "JobCreated"
    assert lines[-1]["event"] == "HandlerRan"


@pytest.mark.parametrize("words", [["a.yaml"], ["a.yaml", "passes"], ["passes", "a.yaml"]])
def test_a_trace_is_asked_for_by_file_and_id_in_any_order(shell: Shell, words: list[str]) -> None:
    shell.write("a.yaml", PASSING)
    assert shell("trace", *words).code == 0


def test_a_trace_of_one_of_several_scenarios_needs_its_id(shell: Shell) -> None:
    shell.write("a.yaml", f"{PASSING}{CLAIMS}")
    assert says(shell("trace", "a.yaml").err, "expected", "id", "passes, claims")
    assert says(shell("trace", "a.yaml", "passes", "claims").err, "one scenario id", "got passes, claims")


def test_a_trace_of_a_run_that_fails_says_so(shell: Shell) -> None:
    shell.write("a.yaml", PASSING.replace("exit(1)", "pass"))
    ran = shell("trace", "passes", "a.yaml")
    assert json.loads(ran.out.splitlines()[0])["profile"] == "docs"
    assert ran.code == 1
    assert says(ran.err, "failed", "ScriptExhausted: ")


def test_a_trace_of_a_run_that_fails_as_expected_exits_0(shell: Shell) -> None:
    failing = PASSING.replace("exit(1)", "pass").replace("{llm_calls: 1}", "{error: {type: ScriptExhausted}}")
    shell.write("a.yaml", failing)
    ran = shell("trace", "passes", "a.yaml")
    assert ran.code == 0
    assert says(ran.err, "failed", "expects", "ScriptExhausted: ")


def test_presets_and_profiles_are_listed(shell: Shell) -> None:
    assert "batch\n  STATEK_MAX_TURNS=15\n" in shell("list", "presets").out
    lines = shell("list", "profiles").out.splitlines()
    assert lines[0].split() == ["rule", "docs", "1.2.5", "1.2", "1.4"]
    assert lines[1].split() == ["limit_extension", "additive", "additive", "additive", "multiplicative"]


@pytest.mark.parametrize("word", ["--version", "version", "-V"])
def test_the_version_is_printed(shell: Shell, word: str) -> None:
    assert shell(word).out.startswith("pytest-statek ")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["help"], ["--help"]),
        (["help", "run"], ["run", "--help"]),
        (["help", "jobs", "list"], ["jobs", "list", "-h"]),
        (["jobs", "help"], ["jobs", "-h"]),
        (["jobs", "help", "list"], ["jobs", "list", "-h"]),
    ],
)
def test_help_is_a_command_too(shell: Shell, words: list[str], options: list[str]) -> None:
    assert shell(*words).out == shell(*options).out


COMMANDS = (
    "run",
    "validate",
    "list",
    "jobs",
    "trace",
    "init",
    "cassette",
    "serve",
    "usage",
    "limits",
    "gate",
    "explore",
    "compare",
    "rescue",
    "guards",
    "metrics",
    "evals",
)
_EVERY: Any = typer.main.get_command(app)
SUBCOMMANDS = tuple(
    f"{group} {name}"
    for group, command in _EVERY.commands.items()
    for name in getattr(command, "commands", ())
)


def test_the_help_tells_every_command_in_a_whole_line_under_a_heading(shell: Shell) -> None:
    told = shell("--help").out
    sections = {
        heading: told.partition(f"{heading}:\n")[2].partition("\n\n")[0].splitlines() for heading in HEADINGS
    }
    assert {
        heading: tuple(line.split()[0] for line in lines) for heading, lines in sections.items()
    } == HEADINGS
    assert sorted(name for names in HEADINGS.values() for name in names) == sorted(COMMANDS)
    assert all(line.endswith(".") for lines in sections.values() for line in lines)
    assert "..." not in told.partition("\n")[2]


@pytest.mark.parametrize("group", ["cassette", "evals", "jobs", "list"])
def test_the_help_of_a_group_tells_its_commands_in_whole_lines(shell: Shell, group: str) -> None:
    listed = shell(group, "--help").out.partition("Commands:\n")[2].strip().splitlines()
    assert len(listed) >= 3
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_names_arguments_without_python_types(shell: Shell, command: str) -> None:
    assert "<" not in shell(command, "--help").out


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
def test_the_help_of_a_command_has_one_example(shell: Shell, command: str) -> None:
    assert shell(*command.split(), "--help").out.count(f"Example: statek-sim {command}") == 1


def test_arguments_are_called_by_their_metavar(shell: Shell) -> None:
    help_ = shell("trace", "--help").out
    assert "\n  PATH|ID  Scenario files " in help_
    assert "\n  PATH  Scenario files " in shell("run", "--help").out


def test_help_waits_for_no_tokenizer() -> None:
    code = (
        "import sys\nfrom statek_sim.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as done:\n"
        "    print('code', done.code, sorted({'tiktoken', 'pydantic', 'freezegun'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("code 0 []\n")
    assert "\n  validate " in ran.stdout


def test_a_run_of_a_scenario_loads_neither_other_commands_nor_engine_two(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("scenarios:\n" + CHAT)
    code = (
        "import sys\nfrom statek_sim.cli import main\n"
        f"try:\n    main(['run', '--quiet', {str(tmp_path / 'one.yaml')!r}])\nexcept SystemExit as done:\n"
        "    others = ('agent.', 'cassettes', 'cli.evals', 'gate', 'mcp', 'server', 'spans', 'suite.diff')\n"
        "    names = tuple(f'statek_sim.{name}' for name in others)\n"
        "    print('code', done.code, sorted(name for name in sys.modules if name.startswith(names)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("code 0 ['statek_sim.agent.option_names']\n")


def test_a_comparison_is_shown_and_written(shell: Shell) -> None:
    shell.write("a.yaml", "scenarios:\n" + CHAT)
    ran = shell("compare", "1.2.7", "1.4.2", "a.yaml", "--json", "out.json", "--markdown", "out.md")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("STATEK 1.2.7 -> 1.4.2: changes\n")
    assert json.loads((shell.folder / "out.json").read_text())["upgrade"]["changed"] == 1
    assert (shell.folder / "out.md").read_text().startswith("# STATEK 1.2.7 -> 1.4.2: changes\n")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("9", "docs"), "'9' is not; expected one of: docs, 1.2.5, 1.2, 1.4"),
        (("docs", "1.4.2", "--preset", "lokal"), "preset 'lokal'; 'local'?"),
        (("docs", "1.4.2", "--python", "/nowhere/python"), "/nowhere/python: ; started"),
        (("1.4", "/nowhere/python"), "/nowhere/python: ; started"),
        (("reference", "1.4.2"), "expected `reference`; path; Python"),
    ],
)
def test_a_comparison_of_something_unknown_is_bad_input(
    shell: Shell, arguments: tuple[str, ...], facts: str
) -> None:
    shell.write("a.yaml", PASSING)
    ran = shell("compare", *arguments[:2], "a.yaml", *arguments[2:])
    assert ran.code == 2
    assert says(ran.err, *facts.split("; "))
