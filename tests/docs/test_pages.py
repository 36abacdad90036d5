"""What the pages of documentation show is what happens."""

from __future__ import annotations

import json
import re
import shutil
import socket
from dataclasses import fields
from pathlib import Path

import pytest

from statek_sim.agent.effects import Parts
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.analysis.corpus_model import KINDS, corpus_scenarios, corpus_table
from statek_sim.analysis.run_usage import analyse
from statek_sim.mcp.fault import KINDS as KINDS_OF_FAULTS
from statek_sim.providers.script import text, tool_call
from statek_sim.reporting.usage import corpus_markdown
from statek_sim.scenario.load import load_or_fail
from statek_sim.server.exchange import Incoming
from statek_sim.server.llm import FakeLLM
from statek_sim.suite.run import builtin_suites, run_one
from tests.cassettes.provider import provider
from tests.docs.page import DOCS, Command, File, follow, matches, steps
from tests.docs.workload_table import workload_table


@pytest.mark.slow
def test_the_page_on_cassettes_is_true(tmp_path: Path) -> None:
    with provider() as live:
        environment = {"OPENAI_BASE_URL": f"{live.url}/v1", "OPENAI_API_KEY": "sk-proj-0123456789abcdefghij"}
        assert follow(DOCS / "cassettes.md", tmp_path, environment) >= 14
    assert len(live.requests) == 2


needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl, which the page uses, is not installed here"
)


def at_a_free_port(name: str, folder: Path) -> Path:
    """Return a copy of a page that serves at a free port instead of 8123."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    page = folder / name
    page.write_text((DOCS / name).read_text("utf-8").replace("8123", port), "utf-8")
    return page


@pytest.mark.slow
@needs_curl
def test_the_page_on_the_server_is_true(tmp_path: Path) -> None:
    folder = tmp_path / "followed"
    folder.mkdir()
    assert follow(at_a_free_port("server.md", tmp_path), folder, {}) == 9


def test_the_page_on_the_server_shows_a_miss_as_it_is_told() -> None:
    llm = FakeLLM(
        [tool_call("weather", city="Oslo").on("How is Oslo?"), text("It rains.").on(tool_result="rain")]
    )
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "How is Olso?"}]}
    llm.answer(Incoming("POST", "/v1/chat/completions", {}, json.dumps(body).encode()))
    assert llm.journal.problems[0] in (DOCS / "server.md").read_text("utf-8")


def test_the_page_on_exploration_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "exploration.md", tmp_path, {"COLUMNS": "200"}) == 2


def test_no_page_waits_for_a_table() -> None:
    pages = {page.name: page.read_text("utf-8") for page in sorted(DOCS.glob("**/*.md"))}
    blocks = [
        (name, mark, told.strip())
        for name, page in pages.items()
        for mark, told in re.findall(r"<!-- (\w+) -->(.*?)<!-- /\1 -->", page, re.DOTALL)
    ]
    assert blocks
    assert [(name, mark) for name, mark, told in blocks if not told] == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "commands"), [("your-agent", 5), ("claim", 5), ("limit", 6)])
def test_a_tutorial_is_true(name: str, commands: int, tmp_path: Path) -> None:
    assert follow(DOCS / f"tutorial-{name}.md", tmp_path, {"COLUMNS": "80"}) == commands


@pytest.mark.slow
@needs_curl
def test_the_tutorial_on_recording_is_true(tmp_path: Path) -> None:
    folder = tmp_path / "followed"
    folder.mkdir()
    assert follow(at_a_free_port("tutorial-record.md", tmp_path), folder, {"COLUMNS": "80"}) == 10


@pytest.mark.slow
def test_the_page_on_durability_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "durability.md", tmp_path, {"COLUMNS": "120"}) == 5


@pytest.mark.slow
def test_the_page_on_usage_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "usage.md", tmp_path, {"COLUMNS": "120"}) == 6


def test_the_page_on_guards_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "guards.md", tmp_path, {"COLUMNS": "120"}) == 3


@pytest.mark.slow
def test_the_page_on_evals_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "evals.md", tmp_path, {"COLUMNS": "120"}) == 8


def test_the_page_on_metrics_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "metrics.md", tmp_path, {"COLUMNS": "120"}) == 1


def test_the_page_on_context_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "context.md", tmp_path, {"COLUMNS": "120"}) == 3


def test_the_page_on_rescue_parsing_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "rescue.md", tmp_path, {}) == 2


_PARTS = {
    "rescue.md": 1,
    "protection.md": 4,
    "slots.md": 1,
    "guards.md": 3,
    "context.md": 1,
    "permissions.md": 2,
    "checkpoints.md": 2,
    "memory.md": 2,
    "metrics.md": 3,
    "escalation.md": 1,
}


@pytest.mark.parametrize(("page", "number"), _PARTS.items())
def test_a_page_of_an_agents_parts_has_code_that_runs(
    page: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == number
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # the page's own code, and its assertions


@pytest.mark.slow
def test_the_page_on_the_report_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "report.md", tmp_path, {}) == 7


@pytest.mark.slow
def test_the_corpus_table_of_the_page_on_usage_is_the_corpus_of_today() -> None:
    results = (run_one(scenario, "docs") for scenario in corpus_scenarios())
    page = (DOCS / "usage.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- corpus -->\n")[2].partition("\n<!-- /corpus -->")[0]
    assert shown in corpus_markdown(corpus_table(analyse(results)))
    assert len(shown.splitlines()) == 2 + len(KINDS)


@pytest.mark.slow
def test_the_page_on_the_gate_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "gate.md", tmp_path, {"COLUMNS": "120"}) == 7


def test_the_table_of_workloads_is_that_of_today() -> None:
    page = (DOCS / "gate.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- workloads -->\n")[2].partition("\n<!-- /workloads -->")[0]
    assert shown == workload_table()


def test_a_page_is_files_and_commands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Text\n```python\n# a.py\nprint(1)\n```\n```python\nnot_run()\n```\n"
        "```console\n$ python a.py\n1\n$ false # exits 1\n```\n"
    )
    assert list(steps(page)) == [
        File("a.py", "# a.py\nprint(1)\n"),
        Command("python a.py", 0, "1"),
        Command("false", 1, ""),
    ]
    assert follow(page, tmp_path, {}) == 2


def test_three_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert matches("a\nb\nc [1] x\n", "a\n...\nc [1] ...")
    assert not matches("a\nb\n", "a\n...c")
    assert not matches("1", "2")
    assert not matches("x", "?")


@pytest.mark.slow
def test_the_page_on_agents_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "agent.md", tmp_path, {"COLUMNS": "120"}) == 5


@pytest.mark.slow
def test_the_page_on_mcp_is_true(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    assert follow(DOCS / "mcp.md", tmp_path, {"COLUMNS": "120"}) == 6


def test_the_page_on_mcp_has_every_fault() -> None:
    page = (DOCS / "mcp.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS_OF_FAULTS if f"| `{kind}" not in page] == []


def test_the_table_of_conversions_is_true() -> None:
    page = (DOCS / "agent.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (integer|number|boolean|null|array|object|string) \| `(.*)` \| (.*) \|$", page, re.MULTILINE
    )
    assert len(rows) == 11
    for expected, came, becomes in rows:
        check = ArgumentCheck("t", {"type": "object", "properties": {"a": {"type": expected}}})
        found = check.check({"a": json.loads(came)}, coerce=True)
        made = "rejected" if found.problems else f"`{json.dumps(found.arguments['a'])}`"
        assert (expected, came, made) == (expected, came, becomes)


def test_the_page_on_agents_has_every_part() -> None:
    page = (DOCS / "agent.md").read_text(encoding="utf-8")
    assert [part.name for part in fields(Parts) if f"`{part.name}`" not in page] == []


def test_each_nasty_case_is_held_by_a_scenario_or_test_that_is_there() -> None:
    table = (DOCS.parent / "tests" / "agent" / "nasty_cases.md").read_text(encoding="utf-8")
    held = [row.split(" | ")[-1] for row in table.splitlines() if row.startswith("| ") and "`" in row]
    names = [name for by in held for name in re.findall(r"`([^`]+)`", by)]
    known = {scenario.id for scenario in load_or_fail(sorted(builtin_suites().glob("agent-*")))}
    assert len(held) >= 40
    assert [name for name in names if name not in known and not (DOCS.parent / name).is_file()] == []


def test_the_first_page_is_true_and_leads_to_every_page(tmp_path: Path) -> None:
    assert follow(DOCS / "index.md", tmp_path, {}) == 4
    said = (DOCS / "index.md").read_text("utf-8")
    assert [page.name for page in sorted(DOCS.glob("*.md")) if f"({page.name})" not in said] == ["index.md"]


@pytest.mark.slow
def test_the_page_on_the_watchdog_is_true(tmp_path: Path) -> None:
    assert follow(DOCS / "watchdog.md", tmp_path, {"COLUMNS": "160"}) == 1
