"""A job's Python workspace (001, The Python Workspace)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from statek_sim.runtime.state.access import missing
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.runtime.stored.containers import put
from statek_sim.runtime.stored.hashing import in_store_order
from statek_sim.runtime.stored.members import Shows, shown_members


class ErrorKind(StrEnum):
    """Where a console error came from."""

    EXECUTION = "EXECUTION"
    HARNESS = "HARNESS"


@dataclass(frozen=True, slots=True)
class ConsoleError:
    """An error shown on the console; from 1.2.7 only EXECUTION errors count against the harness."""

    kind: ErrorKind
    message: str


PERMANENT: Final = "_PERM_CTX"
"""The local variable of a job in which `perm_ctx_set` keeps names."""

Pushed = str | list["Pushed"]
"""What was pushed at one console position: a message, or `[what was there, next message]`."""


@dataclass(slots=True)
class PyEnv:
    """What the agent's code can see and what running it left behind.

    `exceptions` is keyed by console entry (up to 1.2.6: bare texts, by the console position of the chat log's newest
    item), `push_log` by the console's length when the message came. `stores` tells whether dbzero's rules apply,
    `in_block` whether a block runs now: what it binds is in `local_state` when it ends.
    """

    global_state: dict[str, object] = field(default_factory=dict)
    local_state: dict[str, object] = field(default_factory=dict)
    console: list[str] = field(default_factory=list)
    exceptions: dict[int, ConsoleError | str] = field(default_factory=dict)
    push_log: dict[int, Pushed] = field(default_factory=dict)
    exit_status: object = None
    future_result: FutureResult | None = None
    stores: bool = False
    in_block: bool = False

    def __store_members__(self, shows: Shows) -> dict[str, object]:
        """Return what agents are shown of it; what is empty was never made in STATEK."""
        members = {
            "global_state": self.global_state,
            "local_state": self.local_state,
            "console": self.console or None,
            "exceptions": self.exceptions or None,
            "push_log": self.push_log or None,
            "next_instr_id": None,
            "warmup_block_num": None,
            "exit_status": self.exit_status,
            "future_result": self.future_result,
        }
        return shown_members(members, shows)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Refuse an attribute that there is not, in the words of the store."""
            raise missing(self, name)

    @property
    def perm_ctx(self) -> Any:
        """What `perm_ctx_set` keeps with the job, None while that is nothing."""
        return (self.local_state or {}).get(PERMANENT)

    def push(self, position: int, message: str) -> None:
        """Add a pushed message; a further one at the same position is paired with what is there.

        The model then sees the pair as the text of a Python list: STATEK's durable lists are no `list`, which its
        history does not expect. Checked with 1.2.7 and 1.4.2.
        """
        existing = self.push_log.get(position)
        self.push_log[position] = message if existing is None else [existing, message]

    def update_locals(self, **values: object) -> None:
        """Bind names in the workspace; under dbzero's rules a value that they refuse raises its error."""
        if not self.stores:
            self.local_state.update(values)
            return
        for name, value in values.items():
            put(value, partial(self.local_state.__setitem__, name))
        self.local_state = {name: self.local_state[name] for name in in_store_order(self.local_state)}
