"""The command `statek-sim`: run scenario suites, check files, measure limits, compare releases.

Every command exits with 0 on success, 1 if a check failed, and 2 on bad input. Errors are printed to standard error as
messages, without a traceback. Each command or command group has its own file, which is loaded when the command runs.
"""

from __future__ import annotations

from statek_sim.cli.app import main

__all__ = ["main"]
