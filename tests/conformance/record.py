"""Record what the real package does: `python -m tests.conformance.record [VERSION=INTERPRETER ...]`.

Without arguments every recorded release is installed into an environment of its own, `.venv-statek-VERSION`, and
recorded anew. The package runs in an empty directory with an empty environment, so that no setting of this machine
reaches it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

from tests.conformance.recording import PROFILES, write
from tools.installing import install

ROOT: Final = Path(__file__).resolve().parent.parent.parent
URL: Final = "https://llm.invalid/v1/chat/completions"
TIME_LIMIT: Final = 300
"""Seconds after which a recording counts as hung."""


def main() -> None:
    """Record the named releases, or all of them."""
    named = dict(argument.split("=", 1) for argument in sys.argv[1:])
    for version in named or PROFILES:
        python = Path(named[version]) if version in named else _installed(version)
        print(f"recording statek {version}", file=sys.stderr)
        header, jobs = _run(python)
        if header["statek"] != version:
            raise SystemExit(f"{python} has statek {header['statek']}, not {version}")
        print(write(version, header, jobs))


def _installed(version: str) -> Path:
    """Return an interpreter that has this release, installing it when there is none yet."""
    environment = ROOT / f".venv-statek-{version}"
    python = environment / "bin" / "python"
    question = "import importlib.metadata as m; print(m.version('statek'))"
    if python.exists():
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:
            return python
    venv.create(environment, symlinks=True, clear=True)
    install(python, f"statek[dbzero]=={version}").check_returncode()
    return python


def _run(python: Path) -> tuple[dict[str, str], dict[str, dict[str, object]]]:
    with tempfile.TemporaryDirectory(prefix="conformance-") as directory:
        output = Path(directory) / "record.json"
        finished = subprocess.run(
            [python, "-m", "tests.conformance.drive_installed", output],
            cwd=directory,
            env={
                "PYTHONPATH": str(ROOT),
                "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "1",
                "TMPDIR": directory,
                **{
                    f"{provider}_API_{part}": value
                    for provider in ("OPENAI", "OPENROUTER")
                    for part, value in (("URL", URL), ("KEY", "none"))
                },
            },
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        if finished.returncode:
            raise SystemExit(f"{python} failed:\n{finished.stderr[-4000:]}")
        record = json.loads(output.read_text(encoding="utf-8"))
    return record["header"], record["jobs"]


if __name__ == "__main__":
    main()
