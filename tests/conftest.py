"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

from tests.examples import examples

# Libraries beside ours tell their makers that they are used, from threads of their own and at any time: one such
# request in the middle of another test is a connection that nobody tried.
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["DO_NOT_TRACK"] = "1"

# The same examples on every run and machine, and no deadline: a busy machine is no failure.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, max_examples=examples(100)
)
settings.load_profile("repeatable")
