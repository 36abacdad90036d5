from __future__ import annotations

import pytest

from statek_sim.errors import BadSetting
from statek_sim.runtime.state.chat_style import ChatStyle, parse_chat_style


def test_a_style_is_found_in_any_letter_case() -> None:
    assert parse_chat_style("md_dialog") is ChatStyle.MD_DIALOG
    assert parse_chat_style("DIRECT") is ChatStyle.DIRECT


def test_a_misspelt_style_gets_a_suggestion() -> None:
    expected = (
        r"^unknown chat style 'markdwn'; expected one of CONSOLE, MARKDOWN, MD_DIALOG, DIRECT\. "
        r"Did you mean 'MARKDOWN'\?$"
    )
    with pytest.raises(BadSetting, match=expected):
        parse_chat_style("markdwn")


def test_a_name_like_no_style_gets_the_list_only() -> None:
    with pytest.raises(BadSetting, match=r"^unknown chat style 'xyz'; expected one of [A-Z_, ]+\.$"):
        parse_chat_style("xyz")
