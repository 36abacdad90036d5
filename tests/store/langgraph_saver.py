"""LangGraph's checkpointer on one of our stores: a thread is a session, and each change of it is saved whole.

Imported only where langgraph-checkpoint is installed: see `tools.savers`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from statek_sim.agent.checkpoints.seals import Entry
from statek_sim.agent.checkpoints.sessions import SessionStore

_EMPTY: dict[str, Any] = {"checkpoints": {}, "writes": {}, "blobs": {}}
"""One thread: checkpoints by (namespace, id), writes by (namespace, id, task, index), values of channels."""


class StoreSaver(BaseCheckpointSaver[str]):
    """Keeps nothing itself: every question is answered from the store."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__()
        self._store = store

    # -- threads as sessions -----------------------------------------------------------------------------------

    def _read(self, thread: str) -> dict[str, Any]:
        kept = self._store.latest(thread)
        state: Mapping[str, Any] = _EMPTY if kept is None else kept.checkpoint.entry.state
        return {part: dict(state[part]) for part in _EMPTY}

    def _write(self, thread: str, state: Mapping[str, Any]) -> None:
        lease = self._store.claim(thread, worker="saver", plan="langgraph")
        self._store.save(lease, Entry(point="put", status="running", at=0.0, state=state))
        self._store.prune(lease, 1)

    # -- LangGraph's methods -----------------------------------------------------------------------------------

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> RunnableConfig:
        thread, space = _place(config)
        state = self._read(thread)
        content = dict(checkpoint)
        values: Mapping[str, Any] = content.pop("channel_values", {}) or {}
        for channel, version in new_versions.items():
            typed = self.serde.dumps_typed(values[channel]) if channel in values else ("empty", b"")
            state["blobs"][space, channel, version] = typed
        parent = config["configurable"].get("checkpoint_id")
        state["checkpoints"][space, checkpoint["id"]] = (
            self.serde.dumps_typed(content),
            self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
            parent,
        )
        self._write(thread, state)
        return _config(thread, space, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        thread, space = _place(config)
        state = self._read(thread)
        id_ = config["configurable"]["checkpoint_id"]
        for at, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, at)
            key = (space, id_, task_id, index)
            if index < 0 or key not in state["writes"]:
                state["writes"][key] = (channel, self.serde.dumps_typed(value), task_path)
        self._write(thread, state)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, space = _place(config)
        state = self._read(thread)
        ids = [id_ for of, id_ in state["checkpoints"] if of == space]
        wanted = get_checkpoint_id(config) or max(ids, default=None)
        return self._tuple(thread, state, space, wanted) if wanted in ids else None

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        threads = [config["configurable"]["thread_id"]] if config else self._store.sessions()
        space = config["configurable"].get("checkpoint_ns") if config else None
        left = limit
        for thread in threads:
            for found in self._newest_first(thread, space):
                wrong = filter and any(found.metadata.get(key) != value for key, value in filter.items())
                id_ = found.config["configurable"]["checkpoint_id"]
                if wrong or (config and get_checkpoint_id(config) not in (None, id_)):
                    continue
                if before and (end := get_checkpoint_id(before)) and id_ >= end:
                    continue
                if left is not None:
                    if left <= 0:
                        return
                    left -= 1
                yield found

    def _newest_first(self, thread: str, space: str | None) -> Iterator[CheckpointTuple]:
        state = self._read(thread)
        places = [place for place in state["checkpoints"] if space in (None, place[0])]
        for of, id_ in sorted(places, key=lambda place: place[1], reverse=True):
            yield self._tuple(thread, state, of, id_)

    async def adelete_thread(self, thread_id: str) -> None:
        if self._store.latest(thread_id) is not None:
            self._write(thread_id, _EMPTY)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        for thread in self._store.sessions():
            state = self._read(thread)
            gone = [
                place
                for place, (_, metadata, _) in state["checkpoints"].items()
                if self.serde.loads_typed(metadata).get("run_id") in run_ids
            ]
            if gone:
                self._write(thread, _without(state, gone))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._write(target_thread_id, self._read(source_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in thread_ids:
            state = self._read(thread)
            newest = dict(sorted(state["checkpoints"]))
            keep = newest.items() if strategy == "keep_latest" else ()
            gone = [place for place in state["checkpoints"] if place not in keep]
            if gone:
                self._write(thread, _without(state, gone))

    def get_next_version(self, current: str | None, channel: None) -> str:
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}"

    def _tuple(self, thread: str, state: Mapping[str, Any], space: str, id_: str) -> CheckpointTuple:
        content, metadata, parent = state["checkpoints"][space, id_]
        checkpoint = self.serde.loads_typed(content)
        values = {
            channel: self.serde.loads_typed(blob)
            for channel, version in checkpoint["channel_versions"].items()
            if (blob := state["blobs"].get((space, channel, version))) is not None and blob[0] != "empty"
        }
        writes = sorted((key, one) for key, one in state["writes"].items() if key[:2] == (space, id_))
        return CheckpointTuple(
            config=_config(thread, space, id_),
            checkpoint={**checkpoint, "channel_values": values},
            metadata=self.serde.loads_typed(metadata),
            parent_config=_config(thread, space, parent) if parent else None,
            pending_writes=[
                (key[2], channel, self.serde.loads_typed(value)) for key, (channel, value, _) in writes
            ],
        )


def _place(config: RunnableConfig) -> tuple[str, str]:
    told = config["configurable"]
    return str(told["thread_id"]), str(told.get("checkpoint_ns", ""))


def _config(thread: str, space: str, id_: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": space, "checkpoint_id": id_}}


def _without(state: Mapping[str, Any], gone: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {
        "checkpoints": {place: one for place, one in state["checkpoints"].items() if place not in gone},
        "writes": {key: one for key, one in state["writes"].items() if key[:2] not in gone},
        "blobs": dict(state["blobs"]),
    }
