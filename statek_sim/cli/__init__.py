"""The command `statek-sim`: run scenario suites, check files, look at what there is.

Exit codes of every command: 0 all is well, 1 a scenario failed or a statement is not proven, 2 bad input. Bad
input is told on standard error, never as a traceback. One file per command or group of commands; each is thin.
"""

from __future__ import annotations

# `--help` lists commands in the order in which these are imported.
# isort: off
from statek_sim.cli import run
from statek_sim.cli import jobs
from statek_sim.cli import files
from statek_sim.cli import trace
from statek_sim.cli import usage
from statek_sim.cli import report
from statek_sim.cli import limits
from statek_sim.cli import gate
from statek_sim.cli import explore
from statek_sim.cli import record
from statek_sim.cli import cassette
from statek_sim.cli import serve
from statek_sim.cli import mcp
from statek_sim.cli import rescue
from statek_sim.cli import guards
from statek_sim.cli import metrics
from statek_sim.cli import evals
from statek_sim.cli import evals_run
from statek_sim.cli import evals_record
from statek_sim.cli import conformance
from statek_sim.cli import drift
from statek_sim.cli import listing
from statek_sim.cli import init

# isort: on
from statek_sim.cli.main import main

__all__ = [
    "cassette",
    "conformance",
    "drift",
    "evals",
    "evals_record",
    "evals_run",
    "explore",
    "files",
    "gate",
    "guards",
    "init",
    "jobs",
    "limits",
    "listing",
    "main",
    "mcp",
    "metrics",
    "record",
    "report",
    "rescue",
    "run",
    "serve",
    "trace",
    "usage",
]
