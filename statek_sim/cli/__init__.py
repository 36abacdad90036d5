"""The command `statek-sim`: run scenario suites, check files, measure limits, compare releases.

Exit codes of every command: 0 all is well, 1 a scenario failed or a statement is not proven, 2 bad input. A message on
standard error describes bad input, never a traceback. One file per command or group of commands; each is thin.
"""

from __future__ import annotations

# The help of a group lists its commands in the order in which these are imported; `commands.HEADINGS` orders the rest.
# isort: off
from statek_sim.cli import run
from statek_sim.cli import jobs
from statek_sim.cli import validate
from statek_sim.cli import listing
from statek_sim.cli import trace
from statek_sim.cli import usage
from statek_sim.cli import limits
from statek_sim.cli import gate
from statek_sim.cli import explore
from statek_sim.cli import compare
from statek_sim.cli import cassette
from statek_sim.cli import serve
from statek_sim.cli import rescue
from statek_sim.cli import guards
from statek_sim.cli import metrics
from statek_sim.cli import evals
from statek_sim.cli import evals_run
from statek_sim.cli import init

# isort: on
from statek_sim.cli.main import main

__all__ = [
    "cassette",
    "compare",
    "evals",
    "evals_run",
    "explore",
    "gate",
    "guards",
    "init",
    "jobs",
    "limits",
    "listing",
    "main",
    "metrics",
    "rescue",
    "run",
    "serve",
    "trace",
    "usage",
    "validate",
]
