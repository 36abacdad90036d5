"""The command `statek-sim`: run scenario suites, check files, measure limits, compare releases.

Every command exits with 0 for success, 1 if a check failed, and 2 for bad input, which is described by a message on
standard error and never by a traceback. Each command or group of commands has its own file, which is loaded when the
command runs.
"""

from __future__ import annotations

from statek_sim.cli.app import main

__all__ = ["main"]
