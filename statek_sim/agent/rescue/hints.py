"""What a team that knows its model may say: the format that is expected, so that no other is read.

A format with a token of its own is then read where the token stands, and bare JSON or Python only where the reply
begins with it: models forget the token at times, and after words bare JSON is more likely to be shown than meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.agent.rescue.openings import FAMILIES
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """The format that a reply is expected in.

    `readers`: names in `openings.OPENINGS` that are read beside JSON and Python; `bare`: where JSON counts that nothing
    wraps; `python`: where Python calls count, whatever their names.
    """

    name: str
    readers: frozenset[str]
    bare: Literal["first", "anywhere"] = "first"
    python: Literal["first", "anywhere"] = "first"
    keys: bool = False
    """Whether a wrapper may hold a name with keys behind it, GLM's way."""

    def expects(self, kind: str, *, leads: bool) -> bool:
        """Whether what a reader of `openings` opens may be a call. `leads`: only thinking and calls stand before it."""
        if kind not in _BARE:
            return kind in self.readers or kind not in FAMILIES
        return leads or self.bare == "anywhere" or (kind == "bracket" and self.python == "anywhere")


_BARE: Final = ("brace", "bracket", "fence")


def _hint(
    name: str,
    *readers: str,
    bare: Literal["first", "anywhere"] = "first",
    python: Literal["first", "anywhere"] = "first",
    keys: bool = False,
) -> Hint:
    return Hint(name=name, readers=frozenset(readers), bare=bare, python=python, keys=keys)


HINTS: Final = {
    hint.name: hint
    for hint in (
        _hint("beam", "beam"),
        _hint("cline", "tag"),
        _hint("cohere", "wrapper"),
        _hint("deepseek", "deepseek", "invoke"),
        _hint("functionary", "function", "all_name", "recipient"),
        _hint("functools", "wrapper"),
        _hint("gemma", "gemma"),
        _hint("glm", "wrapper", keys=True),
        _hint("harmony", "harmony", "recipient_only"),
        _hint("hermes", "wrapper", "calling"),
        _hint("json", "wrapper", "calling", bare="anywhere"),
        _hint("kimi", "kimi", "kimi3"),
        _hint("lfm2", "wrapper", "calling"),
        _hint("llama", "wrapper", "function", bare="anywhere"),
        _hint("minimax", "wrapper", "invoke", "minimax", "calling"),
        _hint("mistral", "wrapper", "mistral"),
        _hint("olmo", "wrapper"),
        _hint("plamo", "plamo"),
        _hint("python", "wrapper", python="anywhere"),
        _hint("qwen-agent", "qwen_agent"),
        _hint("qwen-coder", "wrapper", "function", "param", "calling"),
        _hint("react", "react", "wrapper"),
        _hint("tool_calls", "wrapper"),
    )
}
"""What `dialect` may be. `hermes` is Qwen 2.5 and 3 as well; `tool_calls` is Jamba, Hunyuan, MiniMax M1, Nemotron."""


def hint_called(name: str | None) -> Hint | None:
    """Return the hint called `name`, None for none, or raise BadInput."""
    if name is not None and name not in HINTS:
        raise BadInput(f"no dialect is called {name!r}: {', '.join(HINTS)}.{suggestion(name, HINTS)}")
    return None if name is None else HINTS[name]
