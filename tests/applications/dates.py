"""A calendar: dates and times as tools, stored objects and errors show them."""
# mypy: ignore-errors

from datetime import date, datetime, timedelta

import dbzero as db0
import pytest
from statek import tool
from statek.agents import SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt


@db0.memo
class Meeting:
    def __init__(self, at, day):
        self.at = at
        self.day = day


@db0.memo
class Answer(FutureResult):
    def __init__(self):
        super().__init__(deps=None, state_num=0)


def never(future) -> bool:
    return False


def nothing(future) -> str:
    raise FutureError(future)


@temporal(complement=nothing, condition=never)
@tool
def ask(**kwargs) -> FutureResult:
    """Ask."""
    return Answer()


@tool
def today(**kwargs):
    """Today."""
    return date.today()


@tool
def shown(**kwargs):
    """Dates as text."""
    return [
        repr(date.today()),
        repr(datetime.now()),
        str(date(2026, 1, 2)),
        f"{datetime(2026, 1, 2, 3)!r}",
        type(date.today()).__name__,
    ]


@tool
def meet(at: datetime, day: date = None, **kwargs):
    """Meet."""
    meeting = Meeting(at, day)
    return [
        repr(meeting.at),
        repr(meeting.day),
        isinstance(meeting.at, datetime),
        isinstance(day, date),
        str(at + timedelta(hours=1)),
    ]


def create():
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You plan."),
        _tools=[ask, today, shown, meet],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)
def test_dates_are_dates(statek_app, facts):
    statek_app.script(
        clerk=[
            "print(today())\nprint(shown())",
            "print(meet('2026-02-03T04:05', '2026-02-03'))",
            "print(meet('tomorrow'))",
            "a = ask()\nexit('asked')",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()
    facts["repr"] = [
        repr(date(2026, 1, 1)),
        repr(datetime.now()),
        repr(date.today()),
        repr(datetime.fromisoformat("2026-01-01")),
    ]
    facts["names"] = [type(date(2026, 1, 1)).__name__, type(datetime.now()).__name__]
    facts["stored"] = [repr(Meeting(datetime.now(), date.today()).day)]


def test_errors_name_the_classes_of_futures(statek_app, facts):
    future = ask()
    facts.attempt("value", lambda: future.value)
    facts["module"] = [
        str(FutureError(future)).partition(" instance")[0],
        type(future).__name__.removeprefix("Memo_"),
    ]
