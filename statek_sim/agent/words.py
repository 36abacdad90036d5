"""Words that scenario files, settings and the agent itself share; a scenario of STATEK loads nothing else of agents."""

from __future__ import annotations

from typing import Final, Literal, get_args

Access = Literal["read", "write", "host", "command"]
"""What an argument is to the world outside: a path that is read or written, a host or URL, a command."""

RuleKind = Literal["tool", "read", "write", "host", "command"]
"""What a rule of permissions is about."""

PROTECTED: Final = (".git", ".hg", ".svn", ".statek")
"""Names of places that are never written to, wherever they are: what is in them runs later, or is the harness's."""

TierName = Literal["clear", "summarise", "drop", "cut"]
"""The steps that make a history shorter; `context.steps.STEPS` has what each does."""

STEP_NAMES: Final[tuple[TierName, ...]] = get_args(TierName)
"""The steps in their order, unless it is said otherwise; each goes only as far as it has to."""
