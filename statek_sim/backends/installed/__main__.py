"""The process in which `statek` is loaded. It imports the package once, and runs each scenario in a fork of itself.

Scenarios share no cache, registry or store, and a scenario that hangs or dies does not affect the others.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import tempfile
import warnings

from statek_sim.backends.installed.messages import Line, Message


def main() -> None:
    """Greet the parent process, then run the scenarios that it requests until it closes the connection."""
    line = Line.of_this_process()
    try:
        # Importing STATEK takes a long time and may fail; the parent process gets the reason. Warnings do not matter.
        warnings.simplefilter("ignore")
        from statek_sim.backends.installed.scenario_run import perform  # noqa: PLC0415
    except ImportError as error:
        line.send({"failed": f"{type(error).__name__}: {error}"})
        return
    _be_quick_to_fork()
    line.send({"statek": importlib.metadata.version("statek"), "python": platform.python_version()})
    while (order := line.receive()) is not None:
        folder = tempfile.mkdtemp(prefix="statek-")
        handover: Message | None = None
        while True:
            child = os.fork()
            if child == 0:
                os._exit(perform(line, order, folder, handover))
            _, status = os.waitpid(child, 0)
            if (handover := _left_by(folder)) is None:
                break
        shutil.rmtree(folder, ignore_errors=True)
        line.send({"ended": os.waitstatus_to_exitcode(status)})


def _be_quick_to_fork() -> None:
    """Import what the store would import in every fork, and exempt existing objects from garbage collection."""
    importlib.import_module("fasteners")
    gc.collect()
    gc.freeze()


def _left_by(folder: str) -> Message | None:
    """Return the state that a worker process left in the folder for the next one, or None if the scenario ended."""
    try:
        with open(os.path.join(folder, "handover.json"), encoding="ascii") as file:
            order: Message = json.load(file)
    except FileNotFoundError:
        return None
    os.unlink(file.name)
    return order


if __name__ == "__main__":
    main()
