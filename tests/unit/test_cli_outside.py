"""What the world outside does to a command is told in one line, and the command exits with 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from statek_sim.cli import main
from tests.says import says

OK: Final = (
    "scenarios:\n  - {id: ok, title: Ok, agents: {worker: {}}, script: {worker: [{code: exit(1)}]},\n"
    "     expect: {jobs: {main: {exit: 1}}}}\n"
)
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
        command = [sys.executable, "-m", "statek_sim", *arguments]
        done = subprocess.run(
            command, cwd=folder, stdout=file, stderr=subprocess.PIPE, text=True, check=False
        )
    return done.returncode, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [["run", "ok.yaml"], ["trace", "ok.yaml"], ["--help"]])
def test_a_full_disk_behind_standard_output_is_one_line(here: Path, arguments: list[str]) -> None:
    code, err = program(*arguments, folder=here, output=FULL)
    assert (code, err.count("\n")) == (2, 1)
    assert says(err, "output: ", "No space left on device")


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.usefixtures("here")
def test_a_full_disk_behind_a_report_is_one_line(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert (
        "No space left on device"
        in refused(capsys, "run", "ok.yaml", "--quiet", option, str(FULL)).splitlines()[-1]
    )


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ("cassette scan", "argument 3"),
        ("cassette scan ok.yaml", "argument 4"),
        ("run", "argument 2"),
        ("rescue", "argument 2"),
        ("gate default --update-baseline --baseline", "--baseline"),
        ("run ok.yaml --json", "--json"),
    ],
)
def test_an_empty_path_is_not_the_current_folder(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: str, subject: str
) -> None:
    assert says(refused(capsys, *arguments.split(), ""), f"{subject}: ", "empty", "`.`")
    assert [file.name for file in here.iterdir()] == ["ok.yaml"]


@pytest.mark.parametrize(
    "arguments",
    ["guards --check ok.yaml --file m.toml", "evals run --model m.toml", "gate default --policy m.toml"],
)
def test_what_is_no_toml_is_told_with_its_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    (here / "m.toml").write_text("# a comment\n= 3\n", "utf-8")
    assert says(refused(capsys, *arguments.split()), "m.toml:2", "TOML", "invalid statement")


@pytest.mark.parametrize("lines", [[], ["--jsonl"]])
def test_a_file_of_tools_is_named_when_one_of_them_has_no_name(
    here: Path, capsys: pytest.CaptureFixture[str], lines: list[str]
) -> None:
    (here / "tools.json").write_text('["look", {"parameters": {}}]', "utf-8")
    (here / "reply.txt").write_text('{"id": 1, "text": "Hello."}', "utf-8")
    line = refused(capsys, "rescue", "reply.txt", "--tools", "tools.json", *lines)
    assert says(line, "tools.json: ", "tool 2", "no name", "`name`", "`parameters`")


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
        assert (exit_.value.code, capfd.readouterr()) == (0, ("3 passed (1 scenario x 3 profiles)\n", ""))


@pytest.mark.parametrize(
    "arguments",
    [
        ["guards", "--guard", "injection", "{}"],
        ["guards", "--check", "{}"],
        ["rescue", "{}"],
        ["gate", "default", "--policy", "{}"],
        ["gate", "default", "--baseline", "{}"],
        ["cassette", "diff", "{}", "ok.yaml"],
    ],
)
@pytest.mark.usefixtures("here")
def test_every_command_says_in_the_same_words_that_a_file_is_not_there(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    line = refused(capsys, *(word.format("none.json") for word in arguments))
    assert says(line, "none.json: no such file or folder")


def test_a_scan_says_which_links_lead_nowhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "gone.yaml").symlink_to("moved.yaml")
    with pytest.raises(SystemExit):
        main(["cassette", "scan", "."])
    assert says(capsys.readouterr().err, "gone.yaml: ", "skipped", "symbolic link", "'moved.yaml'")


def test_a_tool_module_that_exits_does_not_take_the_command_with_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a_module_that_exits.py").write_text("import sys\nsys.exit(7)\n", "utf-8")
    text = OK.replace("{}", "{tools: ['a_module_that_exits:x']}")
    (here / "exits.yaml").write_text(text, "utf-8")
    line = refused(capsys, "run", "exits.yaml", "--profile", "docs")
    where = ("exits.yaml:2", "'ok'", "'a_module_that_exits:x'", "a_module_that_exits.py:2")
    assert says(line, *where, "SystemExit: 7")


def test_files_of_other_programs_are_told_once_and_those_of_packages_not_at_all(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("compose.yaml", "chart.yml", "node_modules/pkg/x.yaml"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("services: {{ .Values }}\n", "utf-8")
    line = refused(capsys, "run", ".")
    assert says(line, ".: ", "not scenarios", "chart.yml, compose.yaml")
    assert "node_modules" not in line
    (here / "chart.yml").write_text("scenario:\n", "utf-8")
    assert says(errors_of(capsys, "validate", "."), "chart.yml:1", "key 'scenario'")


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
    line = refused(capsys, "cassette", "record", "ok.yaml", "--provider", "GROQ")
    assert says(line, "GROQ_API_URL='nonsense'", "URL", "https://host/path")


POLICY: Final = '[[rule]]\nname = "no claim leaks"\nselect = {}\nclaims_leak = false\n'
JUDGED: Final = ("gate", "local", "ok.yaml", "--policy", "policy.toml", "--update-baseline", "--baseline")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"my notes", b'{"schema": "statek-sim/report@1"}'])
@pytest.mark.parametrize(
    ("arguments", "key", "kind"),
    [
        (JUDGED, "format", "statek-sim/baseline@"),
        (("evals", "run", "--update-baseline"), "schema", "statek-sim/evals-baseline@"),
    ],
    ids=["gate", "evals"],
)
def test_a_baseline_is_not_written_over_what_is_none(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    key: str,
    kind: str,
    content: bytes,
) -> None:
    (here / "policy.toml").write_text(POLICY, "utf-8")
    (here / "old.json").write_bytes(content)
    assert says(
        refused(capsys, *arguments, "old.json"), "old.json: ", "not a baseline", f"no {key!r}", repr(kind)
    )
    assert (here / "old.json").read_bytes() == content


@pytest.mark.parametrize("content", ["", '{"format": "statek-sim/baseline@0"}'])
def test_a_baseline_is_written_over_an_older_one_and_over_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (here / "policy.toml").write_text(POLICY, "utf-8")
    (here / "old.json").write_text(content, "utf-8")
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*JUDGED, "old.json"])
    assert '+  "format": "statek-sim/baseline@1",' in capsys.readouterr().out
    assert '"statek-sim/baseline@1"' in (here / "old.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("notes.txt",), "--baseline notes.txt: file .json folder"),
        ((".", "--json", "local.json"), "--json --baseline both local.json"),
    ],
)
def test_nothing_is_judged_or_shown_for_a_baseline_that_cannot_be_written(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], facts: str
) -> None:
    (here / "policy.toml").write_text(POLICY, "utf-8")
    (here / "notes.txt").write_text("mine", "utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^2$"):
        main([*JUDGED, *words])
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says(err, *facts.split())


def test_a_report_takes_the_place_of_no_baseline_in_a_folder(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "policy.toml").write_text(POLICY, "utf-8")
    (here / "local.json").write_text("{}", "utf-8")
    words = [word for word in JUDGED if word != "--update-baseline"]
    assert says(refused(capsys, *words, ".", "--json", "local.json"), "--json local.json: ", "--baseline")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["usage", "--corpus", "--model", " "], "--model model name spaces"),
        (["usage", "--model", "nope"], "--model requires --corpus"),
        (["usage", "--prices", "."], ".: price *.csv *.txt"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_would_change_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], facts: str
) -> None:
    assert says(refused(capsys, *arguments), *facts.split())


@pytest.mark.usefixtures("here")
def test_a_scenario_named_as_pytest_names_it_is_answered_with_the_option_that_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = refused(capsys, "run", "ok.yaml::suite/ok[docs]")
    assert says(line, "ok.yaml::suite/ok[docs]: ", "file or folder", "ok.yaml --select ok")


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
        assert says(told_to, "failures show", "preset two.env", "`statek-sim gate two.env`")
    with pytest.raises(SystemExit) as ended:
        main(["run", "ten.yaml"])
    assert ended.value.code == 0
    assert "failures show" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ok.yaml", "new/../ok.yaml", "link", "kept.db", ".env", ".env.local"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--html"],
        ["run", "--quiet", "--html"],
        ["usage", "--markdown"],
        ["gate", "default", "--junit"],
        ["compare", "1.2.7", "1.4.2", "--json"],
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_no_report_takes_the_place_of_a_file_that_somebody_wrote(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], name: str
) -> None:
    (here / "link").symlink_to("ok.yaml")
    for other in ("kept.db", ".env", ".env.local"):
        (here / other).write_text("mine", "utf-8")
    assert says(refused(capsys, *arguments, name), f"{name}: ", "exists", "not a report")
    assert (here / "ok.yaml").read_text("utf-8") == OK
    assert not (here / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ("limits --card b --free 9 --json b", "--json b: --card reads"),
        ("gate default ok.yaml --baseline b.json --json b.json", "--json b.json: --baseline reads"),
        ("evals run --baseline b --json b", "--json b: --baseline reads"),
    ],
)
def test_nothing_is_written_onto_what_a_command_reads(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: str, facts: str
) -> None:
    for name in ("b", "b.json"):
        (here / name).write_text("mine", "utf-8")
    (here / "soft").symlink_to("ok.yaml")
    before = {path.name: path.read_text("utf-8") for path in here.iterdir()}
    assert says(refused(capsys, *arguments.split()), *facts.split())
    assert {path.name: path.read_text("utf-8") for path in here.iterdir()} == before


def test_what_is_written_beside_what_is_read_is_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", ".", "--select", "ok", "--json", "ok", "--quiet"]
    for _ in range(2):  # The second time the report is in the folder that is read.
        with pytest.raises(SystemExit, match=r"^0$"):
            main(arguments)
    assert json.loads((here / "ok").read_text("utf-8"))["schema"].startswith("statek-sim/")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["run", "ok.yaml", "--json", "x", "--html", "x"], "--json --html x"),
        (["run", "ok.yaml", "--report", ".", "--html", "report.html"], "--html --report (report.html)"),
        (["usage", "ok.yaml", "--json", "x", "--markdown", "x"], "--json --markdown x"),
        (["gate", "default", "--json", "x", "--junit", "x"], "--json --junit x"),
    ],
)
@pytest.mark.usefixtures("here")
def test_two_reports_are_not_written_to_one_file(
    capsys: pytest.CaptureFixture[str], arguments: list[str], options: str
) -> None:
    assert says(refused(capsys, *arguments), "both", *options.split())


READERS: Final[list[tuple[str, ...]]] = [
    ("validate", "odd-one"),
    ("run", "odd-one"),
    ("run", "ok.yaml", "--preset", "odd-one.env"),
    ("gate", "odd-one.env", "ok.yaml"),
    ("gate", "default", "ok.yaml", "--policy", "odd-one"),
    ("gate", "default", "ok.yaml", "--baseline", "odd-one.json"),
    ("rescue", "odd-one"),
    ("rescue", "odd-one", "--jsonl"),
    ("rescue", "ok.yaml", "--tools", "odd-one"),
    ("guards", "odd-one", "--guard", "secrets"),
    ("guards", "--check", "odd-one"),
    ("guards", "--check", "none.jsonl", "--file", "odd-one"),
    ("cassette", "diff", "odd-one", "odd-one"),
    ("evals", "run", "--model", "odd-one.toml"),
    ("evals", "run", "--baseline", "odd-one"),
    ("serve", "mcp", "serve", "--journal", "odd-one"),
]
"""A command for every kind of file that is read, called by a name that begins with `odd-one`."""


ODD_ONES: Final = tuple(f"odd-one{suffix}" for suffix in ("", ".env", ".json", ".jsonl", ".gguf", ".toml"))


ODD_FILES: Final[dict[str, bytes]] = {
    "lists in lists": b"[" * 100_000,
    "objects in objects": b'{"a":' * 50_000,
    "lists in lists of TOML": b"a = " + b"[" * 30_000,
    "tables in tables of TOML": b"a = " + b"{a = " * 30_000,
    "a long number of TOML": b"a = " + b"9" * 6_000,
    "entries in entries": b"- " * 50_000,
    "no UTF-8": b"caf\xe9",
    "UTF-16": "a: 1\n".encode("utf-16"),
    "a long word": b"9" * 6_000,
    "a list at the top": b"other: [a]\ninteractions: []\nversion: 1\n",
    "a key that comes twice": b"interactions: [a]\ninteractions: []\nversion: 1\n",
    "an alias": b"other: &a [x]\ninteractions: *a\nversion: 1\n",
}


@pytest.mark.parametrize("content", ODD_FILES)
@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_files_of_every_kind_that_say_something_odd_are_told_by_name(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], content: str
) -> None:
    for name in (*ODD_ONES, "odd-one.yaml"):
        (here / name).write_bytes(ODD_FILES[content])
    (here / "none.jsonl").write_text('{"id": "a", "text": "b", "bad": false}\n', "utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main(
            [
                f"{word}.yaml"
                if word == "odd-one" and arguments[0] in ("run", "validate", "cassette")
                else word
                for word in arguments
            ]
        )
    captured = capsys.readouterr()
    assert exit_.value.code in (None, 0, 1, 2)
    if exit_.value.code == 2:
        assert "odd-one" in captured.err.partition(": ")[0], captured.err
        assert max(map(len, captured.err.split("\n"))) < 2_000
