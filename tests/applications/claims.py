"""Claims of every kind: what their error handlers are called with, and what cannot be claimed at all."""
# mypy: ignore-errors

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

import pytest
from statek import error_handler, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

LOG = []


@dataclass
class Parcel:
    weight: int = 1


CLAIMS = {
    "dict": {"z": 1, "a": 2},
    "tuple": (1, {"z": 1, "a": 2}),
    "list": [3, "x"],
    "set": {1},
    "NUL": "a\0b",
    "none": None,
    "decimal": Decimal("1E+6"),
    "class": Parcel,
    "dataclass": Parcel(),
    "counter": Counter("aab"),
    "error": ValueError("no"),
    "list of dataclass": [Parcel()],
    "large": 2**70,
    "list of large": [2**70],
}


@error_handler
def _put_back(context, error=None):
    LOG.append(f"{type(context).__name__} {context!r}")


@tool(error_handler=_put_back)
def claim(kind: str, **kwargs) -> object:
    """Claim something."""
    return CLAIMS[kind]


def clerk():
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You claim."),
        _tools=[claim],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@pytest.mark.parametrize("kind", CLAIMS)
def test_a_handler_gets_what_the_store_keeps_of_a_claim(kind, statek_app, facts):
    LOG.clear()
    statek_app.script(clerk=[f"claim({kind!r})\nprint('claimed')", b"no answer"])
    job = statek_app.create_job(clerk())
    statek_app.run()
    facts["called"] = list(LOG)
    facts["console"] = str(job.py_env.console[0])
    facts["counted"] = job.exception_count
