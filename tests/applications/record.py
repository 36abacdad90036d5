"""Write down what the small applications of this folder find out on the real package.

    python tests/applications/record.py .venv-statek-1.4.2/bin/python

The interpreter needs the real package alone; this project and pytest are found where this one finds them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
RECORDED: Final = HERE / "recorded_1.4.json"
APPLICATIONS: Final = tuple(
    sorted(
        path
        for path in HERE.glob("*.py")
        if path.stem not in ("compare", "corners", "facts", "random_shop", "record")
    )
)
"""Every application; `corners` is about what surrounds a run, `random_shop` another one with every seed."""

_RUN: Final = """
import sys
sys.path.insert(0, {root!r})
sys.path.extend({paths!r})
import pytest
plugins = ["-p", "no:cacheprovider", "-p", "pytest_statek.plugin", "-p", "tests.applications.facts"]
sys.exit(pytest.main(["-q", "-W", "ignore", *plugins, "--statek-backend=installed", *sys.argv[1:]]))
"""


def command(python: str, *arguments: str, applications: Sequence[Path | str] = APPLICATIONS) -> list[str]:
    """Return the command that runs applications, every one unless told, on the real package of `python`."""
    paths = [path for path in sys.path if path.endswith("site-packages")]
    program = _RUN.format(root=str(ROOT), paths=paths)
    return [python, "-c", program, *map(str, applications), *arguments]


def main() -> int:
    """Record."""
    done = subprocess.run(
        command(sys.argv[1], f"--write-facts={RECORDED}"),
        cwd=ROOT,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
