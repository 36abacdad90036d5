"""What others' tests say of our stores, and our checker of others': run by `tools.savers`, where both are installed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agmi.check import run as agmi_run
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.sqlite import SqliteSaver

from statek_sim.agent.checkpoints.contract import store_findings
from statek_sim.agent.checkpoints.sessions import SessionStore
from statek_sim.store.database import Sqlite
from statek_sim.store.sql import SqlStore
from tests.store.adapters import PlainFiles
from tests.store.agmi_adapter import StoreAdapter
from tests.store.langgraph_saver import StoreSaver


@checkpointer_test(name="ours")
async def ours() -> AsyncIterator[StoreSaver]:
    yield StoreSaver(SessionStore(SqlStore(Sqlite(":memory:"), clock=lambda: 0.0)))


class LangGraphSqlite:
    """LangGraph's SQLite saver as our checker has stores: a session is a thread, a state is one channel's value."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
        self._saver = SqliteSaver(self._connection)
        self._saver.setup()
        self._last: dict[str, Any] = {}

    def save(self, session: str, state: Mapping[str, Any]) -> None:
        config = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        step = self._last.get(session, 0)
        checkpoint = create_checkpoint(empty_checkpoint(), None, step)
        checkpoint["channel_values"] = {"state": dict(state)}
        checkpoint["channel_versions"] = {"state": step + 1}
        self._saver.put(config, checkpoint, {"source": "loop", "step": step}, {"state": step + 1})
        self._last[session] = step + 1

    def load(self, session: str) -> Mapping[str, Any] | None:
        found = self._saver.get_tuple({"configurable": {"thread_id": session, "checkpoint_ns": ""}})
        if found is None:
            return None
        self._last[session] = found.metadata["step"] + 1
        state: Mapping[str, Any] = found.checkpoint["channel_values"]["state"]
        return state

    def close(self) -> None:
        self._connection.close()


def main() -> None:
    """Print everything as JSON."""
    report = asyncio.run(validate(ours))
    conformance = {name: (one.tests_passed, one.tests_failed) for name, one in report.results.items()}
    saver = f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}"
    told = {
        "conformance": [
            f"langgraph-checkpoint-conformance {version('langgraph-checkpoint-conformance')}",
            conformance,
        ],
        "tamperings": [
            f"agent-memory-integrity {version('agent-memory-integrity')}",
            {row["edit"]: row["verdict"] for row in agmi_run(StoreAdapter())},
        ],
        "findings": {
            saver: {kind.value: said for kind, said in store_findings(LangGraphSqlite).items()},
            "files without a seal": {kind.value: said for kind, said in store_findings(PlainFiles).items()},
        },
    }
    json.dump(told, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
