"""Names of tools that scenarios may use without importing them.

`statek_sim.world.tools` implements the tools, and `statek_sim.scenario.check` checks the names.
"""

from __future__ import annotations

from typing import Final

CLAIM_TOOLS: Final = (
    "fetch_next_item",
    "claim_or_release",
    "claim_unguarded",
    "claim_with_failing_cleanup",
    "claim_without_cleanup",
    "fetch_status",
    "wait_for_next_item",
)
"""Tools that claim items from the work queue, with cleanup if the job fails."""

ITEM_TOOLS: Final = ("process_item", "add_item", "item_status")
"""Tools that work on items in the queue."""

WAITING_TOOLS: Final = ("wait_for", "wait_for_pair", "wait_for_any", "wait_for_all", "is_waiting")
"""Tools that wait for external events in the world."""

PLAIN_TOOLS: Final = (
    "note",
    "echo",
    "say",
    "fail",
    "note_and_refuse",
    "slow_echo",
    "slow_note",
    "read_clock",
    "reset_everything",
    "read_records",
)
"""Tools that need only the ledger and the clock."""

FRAMEWORK_TOOLS: Final = ("make_tool_with_handler", "harness_limit")
"""Tools that use STATEK's own functions."""

DELEGATION_TOOLS: Final = ("start_subtask", "finish_subtask", "delegate")
"""Tools that start and finish subtasks and child jobs."""

RUNTIME_TOOLS: Final = ("get_any", "get_all")
"""The runtime's own tools; an agent has them only if its `tools` list includes them."""

BUILT_IN_TOOLS: Final = (
    *RUNTIME_TOOLS,
    *CLAIM_TOOLS,
    *ITEM_TOOLS,
    *WAITING_TOOLS,
    *PLAIN_TOOLS,
    *FRAMEWORK_TOOLS,
    *DELEGATION_TOOLS,
)
"""Every name allowed in an agent's `tools`, besides `module:attribute`."""
