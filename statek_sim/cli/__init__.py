"""The command `statek-sim`: run scenario suites, check files, measure limits, compare releases.

Exit codes of every command: 0 all is well, 1 a scenario failed or a statement is not proven, 2 bad input. A message on
standard error describes bad input, never a traceback. One file per command or group of commands; each is thin,
and loaded when its command is run.
"""

from __future__ import annotations

from statek_sim.cli.app import main

__all__ = ["main"]
