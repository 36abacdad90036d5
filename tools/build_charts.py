"""Rebuilds `statek_sim/reporting/page/charts.js.xz`, the report page's charts: `python -m tools.build_charts`.

Vega, Vega-Lite and Vega's expression interpreter come from npm and are bundled by esbuild. The bundle starts with the
names, versions and licences of its contents. Reports use the committed file and do not need npm.
"""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

TARGET: Final = Path(__file__).resolve().parent.parent / "statek_sim" / "reporting" / "page" / "charts.js.xz"
PACKAGES: Final = ("vega@6.4.0", "vega-lite@6.5.0", "vega-interpreter@2.3.2", "esbuild@0.28.2")
ENTRY: Final = """
export { View, parse } from "vega";
export { compile } from "vega-lite";
export { expressionInterpreter } from "vega-interpreter";
"""


def bundle(folder: Path, npm: str) -> str:
    """Build the bundle in an empty folder and return it as JavaScript that defines `charts`."""
    run((npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *PACKAGES))
    entry = folder / "entry.js"
    entry.write_text(ENTRY, encoding="utf-8")
    made, listing = folder / "charts.js", folder / "listing.json"
    esbuild = folder / "node_modules" / "esbuild" / "bin" / "esbuild"
    options = ("--bundle", "--minify", "--format=iife", "--global-name=charts", "--legal-comments=none")
    places = (f"--outfile={made}", f"--metafile={listing}")
    run((str(esbuild), str(entry), *options, "--charset=ascii", "--target=es2022", *places))
    # As it stands inside a script element, nothing in it may end that.
    code = made.read_text("utf-8").replace("</script", "<\\/script")
    return f"{notices(bundled(folder, json.loads(listing.read_text('utf-8'))))}\n{code}"


def bundled(folder: Path, listing: Mapping[str, Any]) -> list[Path]:
    """Return the folders of the packages included in the bundle, by name."""
    (output,) = (made for name, made in listing["outputs"].items() if name.endswith("charts.js"))
    found = set()
    for source, piece in output["inputs"].items():
        parts = Path(source).parts
        if piece["bytesInOutput"] and "node_modules" in parts:
            found.add(parts[len(parts) - 1 - parts[::-1].index("node_modules") + 1])
    return sorted(folder / "node_modules" / name for name in found)


def notices(packages: Iterable[Path]) -> str:
    """Return a comment with each licence once, after the packages and copyright lines it applies to."""
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for package in packages:
        described = json.loads((package / "package.json").read_text("utf-8"))
        lines = (package / "LICENSE").read_text("utf-8").strip().splitlines()
        rights = " ".join(line for line in lines if line.startswith("Copyright"))
        terms = "\n".join(line for line in lines if not line.startswith("Copyright")).strip()
        holders[terms].append(f"{described['name']} {described['version']}: {rights}")
    texts = ("\n".join((*names, "", terms)) for terms, names in holders.items())
    return "/*!\n" + "\n\n--\n\n".join(texts).replace("*/", "* /") + "\n*/"


def run(command: Sequence[str]) -> None:
    """Run a command; if it fails, print its output and raise CalledProcessError."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    """Write the bundle and print its size; return 0, or 2 without npm."""
    npm = shutil.which("npm")
    if npm is None:
        print("the charts are built from npm's packages: install node and npm", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        code = bundle(Path(name), npm)
    TARGET.write_bytes(lzma.compress(code.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET.name}: {len(code)} characters, {TARGET.stat().st_size} bytes packed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
