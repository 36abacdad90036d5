"""What the world outside does to a command is told in one line, and the command exits with 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from statek_sim.cli import main
from statek_sim.cli.main import told

OK: Final = "scenarios:\n  - {id: ok, title: Ok, agents: {worker: {}}, script: {worker: [{code: exit(1)}]}}\n"
FULL: Final = Path("/dev/full")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "ok.yaml").write_text(OK, "utf-8")
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that a command which exits with 2 prints."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    captured = capsys.readouterr()
    assert exit_.value.code == 2, captured.out
    assert captured.err.count("\n") == 1, captured.err
    return captured.err.rstrip("\n")


def program(*arguments: str, folder: Path, output: Path) -> tuple[int, str]:
    """Run the command line in a process, its output to a file; return how it exits and its errors."""
    with output.open("wb") as file:
        command = [sys.executable, "-m", "statek_sim.cli", *arguments]
        done = subprocess.run(
            command, cwd=folder, stdout=file, stderr=subprocess.PIPE, text=True, check=False
        )
    return done.returncode, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [["run", "ok.yaml"], ["trace", "ok.yaml"], ["--help"]])
def test_a_full_disk_behind_standard_output_is_one_line(here: Path, arguments: list[str]) -> None:
    assert program(*arguments, folder=here, output=FULL) == (
        2,
        "standard output: No space left on device\n",
    )


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.usefixtures("here")
def test_a_full_disk_behind_a_report_is_one_line(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert (
        "No space left on device"
        in refused(capsys, "run", "ok.yaml", "--quiet", option, str(FULL)).splitlines()[-1]
    )


def test_coroutines_of_model_code_are_refused_and_none_is_left_for_python_to_complain_about(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "async def later(): return 1\\nlater()\\nkept = later()"
    (here / "later.yaml").write_text(
        OK.replace("{code: exit(1)}", f'{{code: "{code}"}}, {{code: exit(1)}}'), "utf-8"
    )
    for watchdog in ("off", "cpu=20"):
        with pytest.raises(SystemExit) as exit_:
            main(["run", "later.yaml", "--quiet", "--watchdog", watchdog])
        assert (exit_.value.code, capfd.readouterr()) == (0, ("3 passed\n", ""))


def test_links_that_lead_nowhere_say_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "loop").symlink_to("loop")
    (here / "gone.yaml").symlink_to("moved.yaml")
    nowhere = "gone.yaml: a symbolic link to 'moved.yaml', which is not there"
    assert refused(capsys, "run", "gone.yaml") == refused(capsys, "trace", "gone.yaml") == nowhere
    assert refused(capsys, "run", "loop") == "loop: a symbolic link that leads to itself"
    assert refused(capsys, "gate", "loop") == "preset 'loop': a symbolic link that leads to itself"
    (here / "gone.env").symlink_to("moved.yaml")
    assert refused(capsys, "gate", "gone.env") == f"preset 'gone.env': {nowhere.partition(': ')[2]}"
    for output in ("--json", "--html"):
        assert refused(capsys, "run", "ok.yaml", output, "loop") == (
            f"loop: cannot write the report: {os.strerror(40)}"
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ["guards", "--guard", "injection", "{}"],
        ["guards", "--check", "{}"],
        ["rescue", "{}"],
        ["gate", "default", "--policy", "{}"],
        ["gate", "default", "--baseline", "{}"],
        ["cassette", "diff", "{}", "ok.yaml"],
        ["context", "audit", "{}"],
    ],
)
def test_every_command_says_in_the_same_words_that_a_file_is_not_there(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (here / "gone.json").symlink_to("moved.json")
    (here / "loop.json").symlink_to("loop.json")
    for name, why in (
        ("gone.json", "a symbolic link to 'moved.json', which is not there"),
        ("loop.json", "a symbolic link that leads to itself"),
        ("none.json", "no such file or folder"),
    ):
        assert refused(capsys, *(word.format(name) for word in arguments)).startswith(f"{name}: {why}")


def test_a_scan_says_which_links_lead_nowhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "gone.yaml").symlink_to("moved.yaml")
    with pytest.raises(SystemExit):
        main(["cassette", "scan", "."])
    assert (
        "gone.yaml: skipped: a symbolic link to 'moved.yaml', which is not there" in capsys.readouterr().err
    )


def test_a_tool_module_that_exits_does_not_take_the_command_with_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a_module_that_exits.py").write_text("import sys\nsys.exit(7)\n", "utf-8")
    text = OK.replace("{}", "{tools: ['a_module_that_exits:x']}")
    (here / "exits.yaml").write_text(text, "utf-8")
    assert refused(capsys, "run", "exits.yaml", "--profile", "docs") == (
        "exits.yaml:2: scenario 'ok': 'a_module_that_exits:x' cannot be imported: SystemExit: 7"
    )


def test_files_of_other_programs_are_told_once_and_those_of_packages_not_at_all(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("compose.yaml", "chart.yml", "node_modules/pkg/x.yaml"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("services: {{ .Values }}\n", "utf-8")
    said = "no scenario files: chart.yml, compose.yaml; name the files or folders that hold scenarios"
    assert refused(capsys, "run", ".") == f".: {said}"
    (here / "chart.yml").write_text("scenario:\n", "utf-8")
    assert "chart.yml:1: unknown key 'scenario'" in "".join(errors_of(capsys, "validate", "."))


def errors_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(arguments)
    return capsys.readouterr().err


def test_an_address_that_is_none_is_told_before_a_request(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_URL", "nonsense")
    monkeypatch.setenv("GROQ_API_KEY", "none")
    assert refused(capsys, "record", "ok.yaml", "--provider", "GROQ") == (
        "GROQ_API_URL='nonsense': expected the whole address of a chat endpoint, like https://host/path"
    )


def test_a_baseline_that_is_no_text_is_replaced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "old.json").write_bytes(b"\xff\xfe")
    policy = '[[rule]]\nname = "no claim leaks"\nselect = {}\nclaims_leak = false\n'
    (here / "policy.toml").write_text(policy, "utf-8")
    with pytest.raises(SystemExit) as exit_:
        main(
            [
                "gate",
                "local",
                "ok.yaml",
                "--policy",
                "policy.toml",
                "--baseline",
                "old.json",
                "--update-baseline",
            ]
        )
    assert exit_.value.code == 0
    assert (here / "old.json").read_text("utf-8").startswith("{")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["usage", "--corpus", "--model", " "], "--model: expected a model's name, got a blank one"),
        (["usage", "--model", "nope"], "--model: scenarios name their own models; it goes with --corpus"),
        (["usage", "--prices", "."], ".: no price files here, expected *.csv or *.txt"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_would_change_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert refused(capsys, *arguments) == said


def test_a_bug_of_ours_keeps_its_traceback() -> None:
    assert told(KeyError("x")) is told(RuntimeError("x")) is told(ValueError("x")) is None
    assert told(PermissionError(13, "Permission denied", "a.json")) == "a.json: Permission denied"


@pytest.mark.usefixtures("here")
def test_a_scenario_named_as_pytest_names_it_is_answered_with_the_option_that_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refused(capsys, "run", "ok.yaml::suite/ok[docs]") == (
        "ok.yaml::suite/ok[docs]: no such file or folder; one scenario of a file: ok.yaml --select ok"
    )


def test_failures_under_a_preset_say_what_they_are_and_what_to_ask_instead(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OK.replace("code: exit(1)", "code: 'print(1)', repeat: 3}, {code: exit(1)")
    (here / "ten.yaml").write_text(text, "utf-8")
    (here / "two.env").write_text("STATEK_MAX_TURNS=2\n", "utf-8")
    for quiet in ([], ["--quiet"]):
        with pytest.raises(SystemExit) as ended:
            main(["run", "ten.yaml", "--preset", "two.env", *quiet])
        assert ended.value.code == 1
        told_to = " ".join(capsys.readouterr().out.split())
        assert "failures show what the preset two.env would change" in told_to
        assert "`statek-sim gate two.env`" in told_to
    with pytest.raises(SystemExit) as ended:
        main(["run", "ten.yaml"])
    assert ended.value.code == 0
    assert "failures show" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "ok.yaml", "--html", "ok.yaml"],
        ["run", "ok.yaml", "--json", "ok.yaml"],
        ["report", "ok.yaml", "--no-corpus", "--output", "ok.yaml"],
        ["usage", "ok.yaml", "--markdown", "ok.yaml"],
        ["gate", "default", "--junit", "ok.yaml"],
        ["drift", "1.2.7", "1.4.2", "ok.yaml", "--json", "ok.yaml"],
    ],
)
def test_no_report_takes_the_place_of_a_file_that_somebody_wrote(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert refused(capsys, *arguments) == (
        "ok.yaml: is there already, and is no report to be replaced; name another file"
    )
    assert (here / "ok.yaml").read_text("utf-8") == OK


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["run", "ok.yaml", "--json", "x", "--html", "x"], "--json and --html"),
        (["run", "ok.yaml", "--report", ".", "--html", "report.html"], "--html and --report (page)"),
        (["usage", "ok.yaml", "--json", "x", "--markdown", "x"], "--json and --markdown"),
        (["gate", "default", "--json", "x", "--junit", "x"], "--json and --junit"),
    ],
)
@pytest.mark.usefixtures("here")
def test_two_reports_are_not_written_to_one_file(
    capsys: pytest.CaptureFixture[str], arguments: list[str], options: str
) -> None:
    assert refused(capsys, *arguments).startswith(f"{options}: both would be written to ")
