"""Record what dbzero's collections do: `.venv-statek-1.4.2/bin/python -m tests.conformance.record_storage`.

Each operation runs in a process of its own, because some end it.
"""

import importlib.metadata
import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.conformance.stored_operations import OPERATIONS, outcome, stored_values

RECORD: Final = Path(__file__).parent / "recorded_storage.json"
TIME_LIMIT: Final = 10
"""Seconds after which an operation counts as endless."""


def main() -> None:
    """Run every operation and write the record."""
    done = {operation: _in_its_own_process(operation) for operation in OPERATIONS}
    header = {
        "about": "What dbzero's collections do. Do not edit: made by `python -m tests.conformance.record_storage`.",
        "dbzero": importlib.metadata.version("dbzero"),
    }
    record = {"header": header, "operations": done}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _in_its_own_process(operation: str) -> list[Any] | None:
    """Return the outcome, None when the process ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(TIME_LIMIT)
        with tempfile.TemporaryDirectory() as folder:
            os.write(writing, json.dumps(outcome(operation, stored_values(_store_in(folder)))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return json.loads(told) if told else None


def _store_in(folder: str) -> Any:
    import dbzero

    dbzero.init(folder, read_write=True, autocommit=False)
    dbzero.open("p", "rw")

    @dbzero.memo
    class Holder:
        def __init__(self) -> None:
            self.values: dict[str, Any] = {}

    held = Holder().values

    def store(values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            held[name] = value
        return {name: held[name] for name in values}

    return store


if __name__ == "__main__":
    main()
