"""The prompt (004 §4): one system block in layers, then the history; tools are a request's parameter, never text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SEPARATOR: Final = "\n\n---\n\n"
"""What stands between the layers (004 §4, `_build_system_block`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The layers of the system block, from the most general to the most specific; later ones override earlier ones.

    They are set once: whatever changes between turns (the time, say) would make every prompt a new one for the
    provider's cache, so it belongs into the history.
    """

    rules: str = ""
    project: str = ""
    session: str = ""
    environment: str = ""

    def block(self) -> str:
        """Return the system block: the layers that say something, in this order."""
        parts = (self.rules, self.project, self.session, self.environment)
        return SEPARATOR.join(part for part in parts if part)
