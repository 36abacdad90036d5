"""Work that must not explode: a limit so wide that a slow machine keeps it, and so low that minutes don't."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time

# Seconds of processor time. What this is held against takes a second at most, and minutes when it isn't linear.
LIMIT = 20.0


@contextmanager
def soon() -> Iterator[None]:
    began = process_time()
    yield
    assert process_time() - began < LIMIT
