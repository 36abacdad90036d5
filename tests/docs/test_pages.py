"""What the pages of documentation show is what happens."""

from __future__ import annotations

from pathlib import Path

from tests.cassettes.provider import provider
from tests.docs.page import DOCS, Command, File, follow, matches, steps


def test_the_page_on_cassettes_is_true(tmp_path: Path) -> None:
    with provider() as live:
        environment = {"OPENAI_BASE_URL": f"{live.url}/v1", "OPENAI_API_KEY": "sk-proj-0123456789abcdefghij"}
        assert follow(DOCS / "cassettes.md", tmp_path, environment) >= 14
    assert len(live.requests) == 2


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
