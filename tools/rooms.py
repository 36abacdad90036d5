"""Measures and draws the packages of `statek_sim`: `python -m tools.rooms`, or `make docs`.

Writes the size table in `docs/architecture.md` and the diagram `docs/rooms.svg`. Sizes are lines of code without
docstrings, comments and blank lines.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
PICTURE: Final = ROOT / "docs" / "rooms.svg"
HOUSE: Final = ROOT / "statek_sim"
TOP: Final = "single modules"
"""The table's name for modules outside any package."""

_WIDTH: Final = 960
_ROW: Final = 46
_GAP: Final = 6
_ENGINES: Final = {
    "runtime": "one",
    "shim": "one",
    "durability": "one",
    "agent": "two",
    "guests": "two",
    "evals": "two",
}
_TITLE: Final = "The packages of statek_sim, one row per layer"
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1c2024; }
.size { font-size: 11px; fill: #60646c; }
rect { fill: #eef0f3; stroke: #b9bbc6; }
.one { fill: #e1f0ff; }
.two { fill: #e6f6eb; }
@media (prefers-color-scheme: dark) {
  text { fill: #edeef0; } .size { fill: #b0b4ba; }
  rect { fill: #272a2d; stroke: #5a6169; } .one { fill: #0d2847; } .two { fill: #132d21; }
}
"""


def code_lines(path: Path) -> int:
    """Return a file's number of code lines."""
    source = path.read_text("utf-8")
    texts = 0
    for node in ast.walk(ast.parse(source)):
        for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", []), list) else []:
            if isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str):
                texts += (statement.end_lineno or statement.lineno) - statement.lineno + 1
    return (
        sum(bool(line.strip()) and not line.strip().startswith("#") for line in source.splitlines()) - texts
    )


def measured() -> dict[str, tuple[int, int]]:
    """Return lines and files by package; subpackages of `agent` are separate."""
    lines, files = Counter[str](), Counter[str]()
    for path in sorted(HOUSE.rglob("*.py")):
        parts = path.relative_to(HOUSE).parts
        deep = 2 if parts[0] == "agent" and len(parts) > 2 else 1
        room = "/".join(parts[:deep]) if len(parts) > 1 else TOP
        lines[room] += code_lines(path)
        files[room] += 1
    return {room: (lines[room], files[room]) for room in sorted(lines)}


def table() -> str:
    """Return the size table as Markdown."""
    sizes = measured()
    rows = [f"| `{room}` | {lines:,} | {files} |" for room, (lines, files) in sizes.items() if room != TOP]
    lines, files = (sum(counts) for counts in zip(*sizes.values(), strict=True))
    rows += [f"| {TOP} | {sizes[TOP][0]:,} | {sizes[TOP][1]} |", f"| **all** | **{lines:,}** | **{files}** |"]
    return "\n".join(["| package | lines | files |", "|---|---:|---:|", *rows])


def picture() -> str:
    """Return the layers as an SVG diagram with a row per layer; each row imports from those below it."""
    sizes = measured()
    drawn = list(_rows(sizes))
    height = len(drawn) * (_ROW + _GAP) + _GAP
    boxes = [
        box for number, rooms in enumerate(drawn) for box in _boxes(rooms, _GAP + number * (_ROW + _GAP))
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            f"<title>{_TITLE}</title>",
            f"<style>{_STYLE}</style>",
            *boxes,
            "</svg>\n",
        ]
    )


def _rows(sizes: dict[str, tuple[int, int]]) -> Iterator[list[tuple[str, int]]]:
    """Yield each layer's packages with their lines; layers with only modules are not drawn."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in configured if contract["id"] == "layers")
    for layer in layers:
        rooms = [room for room in layer.split(" | ") if (HOUSE / room).is_dir()]
        if rooms:
            yield [
                (room, sum(lines for name, (lines, _) in sizes.items() if name.split("/")[0] == room))
                for room in rooms
            ]


def _boxes(rooms: list[tuple[str, int]], top: int) -> Iterator[str]:
    width = (_WIDTH - _GAP * (len(rooms) + 1)) / len(rooms)
    for number, (room, lines) in enumerate(rooms):
        left = _GAP + number * (width + _GAP)
        middle = left + width / 2
        yield (
            f'<rect class="{_ENGINES.get(room, "")}" x="{left:.0f}" y="{top}" '
            f'width="{width:.0f}" height="{_ROW}" rx="4"/>'
            f'<text x="{middle:.0f}" y="{top + 19}">{escape(room)}</text>'
            f'<text class="size" x="{middle:.0f}" y="{top + 36}">{lines:,} lines</text>'
        )


def main() -> int:
    """Write both; return 0."""
    before, _, rest = PAGE.read_text("utf-8").partition("<!-- sizes -->\n")
    _, _, after = rest.partition("<!-- /sizes -->")
    PAGE.write_text(f"{before}<!-- sizes -->\n{table()}\n<!-- /sizes -->{after}", "utf-8")
    PICTURE.write_text(picture(), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}\nwrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
