"""Option names for scenario files and the agent, in a module that STATEK scenarios can import by itself."""

from __future__ import annotations

from typing import Final, Literal, get_args

Access = Literal["read", "write", "host", "command"]
"""How an argument accesses the outside world: a path to read or write, a host or URL, or a command."""

RuleKind = Literal["tool", "read", "write", "host", "command"]
"""The kinds of permission rules."""

PROTECTED: Final = (".git", ".hg", ".svn", ".statek")
"""Files and folders that are never written to, because their contents run later or belong to the harness."""

CompactionStepName = Literal["clear", "summarise", "drop", "cut"]
"""The names of the steps that shorten a history, implemented in `context.compaction_steps`."""

COMPACTION_STEP_NAMES: Final[tuple[CompactionStepName, ...]] = get_args(CompactionStepName)
"""The names in their default order; each step removes only as much as necessary."""
