"""The site has what its pages link to, and a link that leads nowhere is found."""

from __future__ import annotations

from pathlib import Path

from tools.build_site import dead_links, write_source


def test_linked_files_outside_the_pages_come_with_them(tmp_path: Path) -> None:
    docs, example = tmp_path / "docs", tmp_path / "examples" / "shop"
    docs.mkdir()
    example.mkdir(parents=True)
    (example / "agent.py").write_text("answer = 42\n")
    (tmp_path / "report.html").write_text("<p>All passed.</p>")
    (docs / "a.md").write_text("[Shop](../examples/shop), [report](../report.html), [gone](../gone.toml)")
    source = tmp_path / "source"
    write_source(docs, source)
    assert (source / "a.md").read_text() == (
        "[Shop](examples/shop.md), [report](report.html), [gone](../gone.toml)"
    )
    assert (source / "examples" / "shop.md").read_text() == (
        "# `examples/shop`\n\n## `agent.py`\n\n```python\nanswer = 42\n```\n"
    )
    assert (source / "report.html").read_text() == "<p>All passed.</p>"


def test_a_link_to_no_page_and_one_to_no_heading_are_dead(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<h2 id="here">Here</h2>')
    links = ("b/", "b/#here", "/b/", "#/route", "https://example.org/x", "b/#there", "c/", "d.png")
    (tmp_path / "index.html").write_text("".join(f'<a href="{link}">x</a>' for link in links))
    assert list(dead_links(tmp_path)) == ["index.html: b/#there", "index.html: c/", "index.html: d.png"]
