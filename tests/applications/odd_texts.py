"""A museum whose things say of themselves what is no text: agents that echo, print and format them."""
# mypy: ignore-errors

from collections import Counter
from datetime import date

import dbzero as db0
import pytest
from statek import error_handler, get_current_job, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

from statek_sim import tool_call

LOG = []


@db0.memo
class Piece:
    def __init__(self, kind):
        self.kind = kind

    def __llm_repr__(self):
        return ODD[self.kind]()


ODD = {
    "big": lambda: 2**70,
    "bytes": lambda: b"x",
    "counter": lambda: Counter("a"),
    "date": lambda: date(2026, 1, 1),
    "dict": lambda: {"b": 1, "a": [1]},
    "empty": lambda: "",
    "list": lambda: [1, 2],
    "none": lambda: None,
    "nul": lambda: "a\0b",
    "number": lambda: 5,
    "piece": lambda: Piece("number"),
    "true": lambda: True,
    "tuple": lambda: (1, "a"),
}
"""What a piece says of itself."""
CODES = {
    "echo": "q",
    "echo after a line": "print('one')\nprint('two')\nq\nprint('three')",
    "print": "print(q)",
    "print with a text": "print('x', q)",
    "echo in a list": "[q]",
    "print in collections": "print([q], {'k': q})",
    "format": "x = f'{q}'\nprint(len(x) > 0)",
    "str": "print(str(q) != '')",
    "print with an end": "print(q, end='')",
    "caught": "try:\n    print(q)\nexcept TypeError as error:\n    print('caught', error)",
}


@tool
def piece(kind: str, **kwargs):
    """Get a piece."""
    get_current_job().add_error_handler(_closed, kind)
    return Piece(kind)


@error_handler
def _closed(context, error=None):
    LOG.append(f"{context}: {error}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.not_what_was_sent
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (code, kind)
        for code in CODES
        for kind in (sorted(ODD) if code in ("echo", "print") else ("dict", "none", "number", "piece"))
    ],
)
@pytest.mark.statek(
    storage="warn",
    limits={"max_turns": 9, "max_exceptions": 30, "max_consecutive_exceptions": 30, "max_token_usage": None},
)
def test_what_is_no_text(statek_app, facts, code, kind):
    LOG.clear()
    guide = SupervisedAgent(
        role="guide",
        _system_prompt=make_system_prompt("You show."),
        _tools=[piece],
        _metadata={"MODEL": "openai/gpt-4o", "LLM_TOOLS_SCOPE": "APPLICATION"},
    )
    last = tool_call("piece", kind="empty")
    crashes = code.startswith("echo") and code != "echo in a list" and kind not in ("empty", "nul", "counter")
    statek_app.script(guide=[f"q = piece('{kind}')", CODES[code], *([] if crashes else [last, "exit(1)"])])
    statek_app.create_job(guide)
    statek_app.run()
    facts["log"] = list(LOG)
