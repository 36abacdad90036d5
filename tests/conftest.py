"""What all tests share."""

from __future__ import annotations

import gc
import os
import ssl
from functools import cache

import typer.main
from hypothesis import settings

from statek_sim.executors.limits import GARBAGE, begin_runs
from tests.examples import examples

# As in processes of the command line: with every module of the tests loaded, looking for garbage among what stays took
# a fifth of the collection and a tenth of the tests.
gc.set_threshold(*GARBAGE)

# Each client of a provider's SDK reads every certificate of the machine, which takes longer than all that it asks here.
ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]  # the same signature

# The modules of all commands are loaded here, and every call of the command line reads the parameters of them all.
typer.main.get_params_from_function = cache(typer.main.get_params_from_function)  # type: ignore[attr-defined]

# Libraries beside ours tell their makers that they are used, from threads of their own and at any time: one such
# request in the middle of another test is a connection that nobody tried.
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["DO_NOT_TRACK"] = "1"

# Images of containers set it: every process that a test starts would compile the whole package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples on every run and machine, and no deadline: a busy machine is no failure.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, max_examples=examples(100)
)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Set what collecting has loaded aside: it stays to the end."""
    begin_runs()
