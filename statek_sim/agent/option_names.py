"""Names shared by scenario files, settings and the agent, so that STATEK scenarios need not import the agent."""

from __future__ import annotations

from typing import Final, Literal, get_args

Access = Literal["read", "write", "host", "command"]
"""How an argument accesses the outside world: a path that is read or written, a host or URL, a command."""

RuleKind = Literal["tool", "read", "write", "host", "command"]
"""The kinds of permission rules."""

PROTECTED: Final = (".git", ".hg", ".svn", ".statek")
"""Names of files and folders that are never written to, because their contents run later or belong to the harness."""

CompactionStepName = Literal["clear", "summarise", "drop", "cut"]
"""The steps that shorten a history; `context.compaction_steps.STEPS` describes each."""

COMPACTION_STEP_NAMES: Final[tuple[CompactionStepName, ...]] = get_args(CompactionStepName)
"""The default order of the steps; each does only as much as necessary."""
