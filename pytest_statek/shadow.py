"""Makes `import statek` and `import dbzero` find the reference runtime, with `--statek-backend=reference`."""

from __future__ import annotations

import pytest

from statek_sim.errors import BadInput
from statek_sim.shim.covered_names import StandIns, shadowed


def stand_in(config: pytest.Config) -> None:
    """Install the shims for the rest of the run, and add a line about them to the header."""
    stand_ins = StandIns()
    try:
        stand_ins.install()
    except BadInput as error:
        raise pytest.UsageError(f"statek: --statek-backend=reference: {error}") from None
    config.add_cleanup(stand_ins.remove)
    config.pluginmanager.register(ShadowHeader(), "statek-shadow")


class ShadowHeader:
    """Adds a header line about the reference runtime and the installed packages that it shadows."""

    def pytest_report_header(self) -> str:
        """Return the header line."""
        hidden = shadowed()
        note = f"; the installed {' and '.join(hidden)} SHADOWED until the run ends" if hidden else ""
        return f"statek: `import statek` and `import dbzero` find the reference runtime, not the real packages{note}"
