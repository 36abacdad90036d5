"""A Dask scheduler and workers of our own, in real processes on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

_LISTENS = re.compile(r"Scheduler at: +tcp://(127\.0\.0\.1:\d+)")
# What it says before, "Start worker at", the scheduler may not have heard yet.
_STARTED = re.compile(r"Registered to: +tcp://")


class Cluster:
    """One scheduler, and workers that can be added and killed; `close` ends all of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = self._waited(self._scheduler, _LISTENS)
        self.workers: list[subprocess.Popen[str]] = []

    def add_worker(self, *, nanny: bool = False) -> None:
        """Start a worker with one thread; its `nanny` starts it again when it dies."""
        options = ("--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard")
        worker = self._start("worker", self.address, *options, "--nanny" if nanny else "--no-nanny")
        self.workers.append(worker)
        self._waited(worker, _STARTED)

    def kill_scheduler(self) -> None:
        self._scheduler.send_signal(signal.SIGKILL)
        self._scheduler.wait()

    def _start(self, *words: str) -> subprocess.Popen[str]:
        # One death of a worker is forgiven, not three, and what loads the folder's modules finds them.
        settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1", "PYTHONPATH": str(self._folder)}
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env={**os.environ, **settings},
        )

    def _waited(self, process: subprocess.Popen[str], said: re.Pattern[str]) -> str:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            found = said.search(line)
            if found is not None:
                return found[1] if found.groups() else ""
        raise AssertionError("".join(lines))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for process in (*self.workers, self._scheduler):
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
