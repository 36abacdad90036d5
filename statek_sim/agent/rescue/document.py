"""Variant `document`: the cascade of document 004, section 6, component 1, as its code runs.

Strategy 1 parses the reply, 2 what is between the first brace and the last, 3 the whole reply after three
replacements. Strategy 4, asking a model, is `rescue`'s optional last stage.
"""

from __future__ import annotations

import json
import re
from typing import Final

from statek_sim.agent.rescue.values import Call, Reason, Refusal, Rescued, Span
from statek_sim.values import JSON

_TRAILING: Final = re.compile(r",\s*([}\]])")
_MOST_DIGITS: Final = 4300
"""Digits that Python turns into an integer unless it is told otherwise (`sys.int_info.default_max_str_digits`)."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def cleaned(text: str) -> str:
    """Return `text` after the document's three replacements, which know no strings."""
    text = _TRAILING.sub(r"\1", text)
    text = text.replace("\u201c", '"').replace("\u201d", '"')
    return _CONTROL.sub("", text)


def greedy(text: str) -> Rescued:
    """Return what the document's parser makes of a reply: `value` is what it returns, whatever that is.

    A value with `name` and an object `parameters` or `arguments` is also a call, since that is what the document's
    nudge asks for. An integer of more than 4,300 digits is no JSON: what the document's code does with one, end in a
    ValueError or take it, is a setting of the interpreter. Raises RecursionError where the document's code does.
    """
    size = len(text.encode(errors="surrogatepass"))
    between = re.search(r"\{.*\}", text, re.DOTALL)
    tries = [("direct", text)]
    if between is not None:
        tries.append(("first_object", between.group()))
    for stage, candidate in (*tries, ("cleaned", cleaned(text))):
        try:
            value: JSON = json.loads(candidate, parse_int=_whole)
        except ValueError:
            continue
        return _result(value, stage, size)
    why = "no strategy of the document gave JSON"
    return Rescued(
        text=text, refused=(Refusal(reason=Reason.BROKEN, why=why, span=Span(0, size)),), steps=len(text)
    )


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > _MOST_DIGITS:
        raise ValueError("the integer has too many digits")
    return int(digits)


def _result(value: JSON, stage: str, size: int) -> Rescued:
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        arguments = value.get("parameters", value.get("arguments"))
        if isinstance(arguments, dict):
            call = Call(name=str(value["name"]), arguments=arguments, stages=(stage,), span=Span(0, size))
            return Rescued(calls=(call,), value=value, steps=size)
    why = f"the document's parser returns {type(value).__name__}, which is no call"
    return Rescued(
        value=value, refused=(Refusal(reason=Reason.NOT_A_CALL, why=why, span=Span(0, size)),), steps=size
    )
