"""Builds the documentation as a site: `python -m tools.build_site`, or `make site`.

Pages link to files outside `docs/` as on GitHub: `../examples/frameworks/openai`. The site has a page for each, with
the text of the file or of every file in the folder; HTML files are copied. A dead local link in the built site fails
the build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "build" / "site"
"""The folder that Zensical builds from; it can only read one folder."""
SITE: Final = ROOT / "site"

_OUTSIDE: Final = re.compile(r"\]\(\.\./([^)#]+)\)")
_LANGUAGES: Final = {".py": "python", ".toml": "toml", ".txt": "text"}


def write_source(docs: Path, source: Path) -> None:
    """Copy the pages to `source`, with every file outside `docs` that they link to."""
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(docs, source)
    for page in sorted(source.glob("*.md")):
        page.write_text(
            _OUTSIDE.sub(lambda link: f"]({_add(link[1], docs.parent, source)})", page.read_text("utf-8")),
            "utf-8",
        )


def _add(path: str, root: Path, source: Path) -> str:
    """Add a file or folder in the repository to the site's source, and return its path there."""
    found = root / path
    if not found.exists():
        return f"../{path}"
    copy = path if found.suffix == ".html" else f"{path.removesuffix(found.suffix)}.md"
    target = source / copy
    target.parent.mkdir(parents=True, exist_ok=True)
    if found.suffix == ".html":
        shutil.copy(found, target)
    else:
        target.write_text(_listing(path, found), "utf-8")
    return copy


def _listing(path: str, found: Path) -> str:
    files = sorted(found.iterdir()) if found.is_dir() else [found]
    blocks = [
        f"## `{file.name}`\n\n```{_LANGUAGES[file.suffix]}\n{file.read_text('utf-8')}```\n"
        for file in files
        if file.suffix in _LANGUAGES
    ]
    return "\n".join([f"# `{path}`\n", *blocks])


class _Page(HTMLParser):
    """A page's links, and the anchors that links to it can use."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a tag's links and anchors."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name in ("id", "name"):
                self.names.add(value)


def dead_links(site: Path) -> Iterator[str]:
    """Yield `page: link` for each local link to a missing file or heading."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            # `#/...` is a route of a script, as the report has them.
            if parts.scheme or parts.netloc or parts.fragment.startswith("/"):
                continue
            target = _target(site, path, unquote(parts.path))
            if not target.is_file() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names
            ):
                yield f"{path.relative_to(site)}: {link}"


def _target(site: Path, page: Path, path: str) -> Path:
    if not path:
        return page
    target = (site / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    return target / "index.html" if target.is_dir() else target


def main() -> int:
    """Build the site; return 1 if a link is dead."""
    write_source(ROOT / "docs", SOURCE / "docs")
    shutil.copy(ROOT / "mkdocs.yml", SOURCE)
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run([str(zensical), "build", "--strict", "--clean"], cwd=SOURCE, check=False)
    if built.returncode:
        return built.returncode
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(SOURCE / "site", SITE)
    dead = list(dead_links(SITE))
    for line in dead:
        print(f"dead link: {line}", file=sys.stderr)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
