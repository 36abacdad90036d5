"""A desk whose agent works over several turns with what the turns before it kept: plain Python, no tools."""
# mypy: ignore-errors

from pathlib import Path

import pytest
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

LIMITS = {"max_exceptions": 40, "max_consecutive_exceptions": 40, "max_turns": 40, "max_token_usage": None}


def _programs():
    """Programs by name: `=== name` begins one, `---` alone on a line ends a turn."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for part in text.split("=== ")[1:]:
        name, _, codes = part.partition("\n")
        yield pytest.param([code.strip("\n") for code in codes.split("\n---\n")], id=name.strip())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("codes", list(_programs()))
@pytest.mark.statek(limits=LIMITS, storage="warn")
def test_values_are_kept_over_turns(statek_app, facts, codes):
    desk = SupervisedAgent(
        role="desk",
        _system_prompt=make_system_prompt("You keep notes."),
        _tools=[],
        _metadata={"MODEL": "openai/gpt-4o"},
    )
    statek_app.script(desk=[*codes, *([] if "exit(" in codes[-1] else ["exit('done')"])])
    statek_app.create_job(desk)
    statek_app.run()
