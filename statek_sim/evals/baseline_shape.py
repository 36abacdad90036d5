"""What the file of a baseline has to look like, and what is wrong with one that does not, in words for people."""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError
from pydantic_core import ErrorDetails

from statek_sim.scenario.locate import shown

SCHEMA: Final = "statek-sim/evals-baseline@1"

Run = Annotated[tuple[Literal[0, 1], str], Strict(False)]
"""Whether it was right, and digests of its turns with spaces between them."""


class BaselineText(BaseModel):
    """A baseline as it is written: runs by arm and eval, seeds from 0."""

    model_config = ConfigDict(strict=True)

    # `schema` is a method of pydantic's models.
    named: Literal["statek-sim/evals-baseline@1"] = Field(alias="schema")
    model: str
    profile: str
    arms: dict[str, list[str]]
    runs: dict[str, dict[str, list[Run]]]


class NoBaseline(ValueError):
    """A text is no baseline: what was found, and what was expected."""


def written(text: str) -> BaselineText:
    """Return what a text says; `NoBaseline` for the first thing in it that is not as expected."""
    try:
        found = BaselineText.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise NoBaseline(f"line {error.lineno}: expected JSON, got what is none ({error.msg})") from None
    except RecursionError:
        raise NoBaseline("expected an object, got lists within lists without end") from None
    except ValidationError as error:
        raise NoBaseline(_problem(error.errors(include_url=False)[0])) from None
    except ValueError:
        # Python's limit of digits, the only other thing that its parser refuses.
        raise NoBaseline("expected 1, 0 and texts, got a number of thousands of digits") from None
    for arm in found.runs:
        if arm not in found.arms:
            raise NoBaseline(f"runs has the arm {arm!r}; expected the parts of it in arms, too")
    return found


_WHOLE: Final = "an object with schema, model, profile, arms and runs"
_RUN: Final = "a run, [1, DIGESTS] or [0, DIGESTS]"
_EXPECTED: Final = {
    "string_type": "text",
    "dict_type": "an object",
    "list_type": "a list",
    "tuple_type": _RUN,
    "too_long": _RUN,
    "model_type": _WHOLE,
}


def _problem(details: ErrorDetails) -> str:
    """Return where it is, what was expected there, and what there is."""
    kind, place = details["type"], list(map(str, details["loc"]))
    if kind == "missing" and len(place) == 1:
        return f"it has no {place[0]!r}; expected {_WHOLE}"
    if kind == "missing":
        return f"{'.'.join(place[:-1])}: expected {_RUN}, got {shown(details['input'])}"
    if kind == "literal_error":
        expected = repr(SCHEMA) if place == ["schema"] else "1 or 0"
    else:
        expected = _EXPECTED.get(kind, details["msg"])
    where = f"{'.'.join(place)}: " if place else ""
    return f"{where}expected {expected}, got {shown(details['input'], mapping='an object')}"
