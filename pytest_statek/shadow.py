"""With `--statek-backend=reference`, `import statek` and `import dbzero` find the reference runtime during a run."""

from __future__ import annotations

import pytest

from statek_sim.errors import BadInput
from statek_sim.shim.covered_names import StandIns, shadowed


def stand_in(config: pytest.Config) -> None:
    """Install the shims until the run ends, and report this in the header."""
    stand_ins = StandIns()
    try:
        stand_ins.install()
    except BadInput as error:
        raise pytest.UsageError(f"statek: --statek-backend=reference: {error}") from None
    config.add_cleanup(stand_ins.remove)
    config.pluginmanager.register(ShadowHeader(), "statek-shadow")


class ShadowHeader:
    """Adds a header line about the reference runtime and the installed packages that it hides."""

    def pytest_report_header(self) -> str:
        """Return the header line."""
        hidden = shadowed()
        note = f"; the installed {' and '.join(hidden)} SHADOWED until the run ends" if hidden else ""
        return f"statek: `import statek` and `import dbzero` find the reference runtime, not the real packages{note}"
