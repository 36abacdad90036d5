"""`statek.prompt_config`: system prompts as STATEK keeps them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from statek_sim.stand_in.memo import memo
from statek_sim.stand_in.not_covered import NotCovered

_SECTION: Final = re.compile(
    r"^[ \t]*(-{3,}[ \t]*\S.*?-{3,}|\*{3,}[ \t]*\S.*?\*{3,}|#{2,6}[ \t]+\S.*|<[A-Za-z_][\w.-]*(\s[^<>]*)?>\s*)$",
    re.MULTILINE,
)
"""Lines that STATEK takes for titles of sections, which it formats anew."""
_TOOLS: Final = re.compile(r"\{(tools|brief_tools|detailed_tools|shared_var_names)\}")


@memo
@dataclass(eq=False)
class SystemPrompt:
    """A prompt: `intro`, and `sections` of which the reference runtime has none."""

    intro: str
    sections: Any = field(default_factory=list)


def make_system_prompt(prompt: str | SystemPrompt) -> SystemPrompt:
    """Return a prompt; one with sections or lists of tools is not covered, because STATEK rewrites it."""
    if isinstance(prompt, SystemPrompt):
        return prompt
    if not isinstance(prompt, str):
        raise NotCovered(f"statek.prompt_config.make_system_prompt({type(prompt).__name__})")
    for pattern, what in ((_SECTION, "the section"), (_TOOLS, "the placeholder")):
        if found := pattern.search(prompt):
            raise NotCovered(f"a system prompt with {what} {found.group().strip()!r}")
    return SystemPrompt(prompt.strip())
