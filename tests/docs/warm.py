"""`statek-sim` in a copy of this process, which has loaded already what each command would load anew."""

from __future__ import annotations

import io
import os
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from statek_sim.cli import main
from statek_sim.usage.tokenizers import tokenizer_for_model

PROGRAM: Final = "statek-sim"
_SHELL: Final = frozenset("|&;<>$`*?[(")


def arguments_of(line: str) -> list[str] | None:
    """Return the arguments of a line that runs our command and nothing else; None for what needs a shell."""
    if not hasattr(os, "fork") or not _SHELL.isdisjoint(line):
        return None
    program, *arguments = shlex.split(line, comments=True)
    return arguments if program == PROGRAM else None


def run_in_a_copy(arguments: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Return how the command exits and what it prints to both streams, as one file would get it."""
    tokenizer_for_model("gpt-4o").tokenizer.count(" ")
    with tempfile.TemporaryFile() as file:
        with warnings.catch_warnings():
            # From Python 3.12 on threads are warned about: servers of a test wait in C and hold no lock.
            warnings.filterwarnings(
                "ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning
            )
            child = os.fork()
        if child == 0:
            code = 70
            try:
                os.chdir(folder)
                os.environ.update(environment)
                code = _run(arguments, file.fileno())
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        file.seek(0)
        return os.waitstatus_to_exitcode(status), file.read().decode("utf-8")


def _run(arguments: list[str], output: int) -> int:
    """Run the command with its streams in one file, and return how it exits."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8")  # noqa: SIM115  # the process ends
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), encoding="utf-8", line_buffering=True)  # noqa: SIM115
    try:
        main(arguments)
    except SystemExit as done:
        if isinstance(done.code, str):
            print(done.code, file=sys.stderr)
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException:  # noqa: BLE001  # as Python does at the end of a process
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
