"""Chat styles: how code, console output and dialog look in a conversation."""

from __future__ import annotations

from enum import StrEnum

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadSetting


class ChatStyle(StrEnum):
    """One of STATEK's four chat styles (behaviour 6.2).

    No style at all is `None` and looks like CONSOLE, but does not filter tools by style.
    """

    CONSOLE = "CONSOLE"
    MARKDOWN = "MARKDOWN"
    MD_DIALOG = "MD_DIALOG"
    DIRECT = "DIRECT"


def parse_chat_style(text: str) -> ChatStyle:
    """Return the style that `text` names, in any letter case; an unknown name is a `BadSetting`."""
    name = text.upper()
    if name in ChatStyle.__members__:
        return ChatStyle[name]
    names = list(ChatStyle.__members__)
    expected = f"expected one of {', '.join(names)}"
    raise BadSetting(f"unknown chat style {text!r}, {expected}.{suggestion(text, names)}")
