"""The hard rules of rescue parsing that a source's answer may break, and how a case shows that it does.

What is checked is what the case says: its text, its tools and the calls that its source wants. What ours refused counts
only where the reason is the rule itself (cut, too large, a key that is there twice, arguments that do not fit).
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from statek_sim.agent.rescue import Reason, Rescued
from statek_sim.agent.rescue.offered import Misfit, Offered
from statek_sim.agent.rescue.rendering import RENDERINGS
from statek_sim.values import JSON
from tests.rescue.scoring import Case, verdict

RULES: Final = {
    "offered": "only tools that were offered are called, by the name that is written",
    "schema": "arguments fit the tool's schema",
    "cut": "what is cut is not completed: neither a value nor arguments nor a name",
    "guessed": "what is broken in more than one way that could be meant is not guessed",
    "whole": "a reply is read whole: no call, no argument and no value of it is left out",
    "written": "a value is the one that is written: no character of it changes but by its format's escapes",
    "bounds": "depth, size and number are bounded",
    "twice": "a key that is there twice is refused: the last one does not win",
    "repaired": "quotes, commas and keys that JSON does not know have one meaning, and are repaired",
    "thinking": "what stands in thinking is no call",
    "rendered": "a call as its format's own template writes it gives that call or a refusal",
}
_REPAIRS: Final = frozenset(("single_quotes", "trailing_commas", "bare_keys"))
_MOST_LEVELS: Final = 64
_THINKING: Final = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def breaks(rule: str, case: Case, result: Rescued) -> bool:
    """Whether the calls that a case's source wants break a rule, by what the case says."""
    reasons = {refusal.reason for refusal in result.refused}
    match rule:
        case "offered":
            return _not_offered(case)
        case "schema":
            return not _fits(case) or Reason.SCHEMA in reasons
        case "cut":
            return Reason.CUT in reasons or _is_cut(case)
        case "bounds":
            return Reason.LIMIT in reasons or _depth(case.text) > _MOST_LEVELS
        case "twice":
            return any("twice" in refusal.why for refusal in result.refused)
        case "repaired":
            return not case.calls and any(set(call.stages) & _REPAIRS for call in result.calls)
        case "thinking":
            names = [
                call["name"]
                for call in case.calls
                if isinstance(call["name"], str) and call["name"] in case.text
            ]
            return any(name not in _THINKING.sub("", case.text) for name in names)
        case "whole":
            return _left_out(case, result)
        case "written":
            kept = all(_is_written(case.text, text) for text in _texts(case))
            return not kept or _is_typed(case) or _is_changed(case)
        case "rendered":
            return any(re.search(rf'>\s*"{re.escape(text)}"\s*<', case.text) for text in _texts(case))
    return rule == "guessed" and _is_guessed(case, result)


def _not_offered(case: Case) -> bool:
    """Whether a call names no tool that was offered, or none that is written; where any is, what is not written."""
    offered = Offered(case.tools)
    for call in case.calls:
        name = call["name"] if isinstance(call["name"], str) else ""
        if offered.anything:
            if not _is_written(case.text, name):
                return True
            continue
        known = [tool for tool in offered.schemas if tool == name or (not name and tool in case.text)]
        if not known or any(tool not in case.text for tool in known):
            return True
    return False


def _fits(case: Case) -> bool:
    offered = Offered(case.tools)
    for call in case.calls:
        names = [call["name"]] if call["name"] else [name for name in offered.schemas if name in case.text]
        for name in names:
            try:
                offered.check(offered.the_name(str(name)), call["arguments"])  # type: ignore[arg-type]
            except Misfit:
                return False
    return True


def _is_cut(case: Case) -> bool:
    """Whether a text ends with the name of its last call, or with brackets open."""
    text = case.text.rstrip()
    last = str(case.calls[-1]["name"]) if case.calls else ""
    return bool(last and text.endswith(last)) or text.count("{") > text.count("}")


def _depth(text: str) -> int:
    """Return how many brackets stand inside each other at most."""
    depth = most = 0
    for sign in text:
        depth += (sign in "[{") - (sign in "]}")
        most = max(most, depth)
    return most


def _left_out(case: Case, result: Rescued) -> bool:
    """Whether a source leaves out calls that stand beside those it has, or the key that its account names."""
    of_ours = Counter(_same(call.name, call.arguments) for call in result.calls)
    of_theirs = Counter(_same(str(call["name"]), call["arguments"]) for call in case.calls)
    if case.calls and of_theirs < of_ours:
        return True
    key = case.account.get("left_out")
    if key is None or not case.calls:
        return False
    written = re.search(rf"""[<"'=]{re.escape(key)}["'>]""", case.text)
    return bool(written) and all(key not in _keys(call["arguments"]) for call in case.calls)


def _same(name: str, arguments: object) -> str:
    return json.dumps([name, arguments], sort_keys=True)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
        for member in value.values():
            yield from _keys(member)
    elif isinstance(value, list):
        for member in value:
            yield from _keys(member)


def _texts(case: Case) -> Iterator[str]:
    """Yield the texts among the values that a source wants, at any depth."""
    todo: list[Any] = []
    for call in case.calls:
        paths: Any = call.get("paths") or []
        todo += [call["arguments"], *(value for _, value in paths)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            todo += value.values() if isinstance(value, dict) else value


def _is_written(text: str, value: str) -> bool:
    """Whether a value stands in a text, as it is or with the escapes of JSON or of XML."""
    escaped = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    return value in text or value in html.unescape(text) or any(form in text for form in escaped)


def _is_changed(case: Case) -> bool:
    """Whether what the account says is changed is a key or a text that is written between quotes, and not wanted."""
    changed = case.account.get("changed", "")
    wanted = {*_texts(case), *(key for call in case.calls for key in _keys(call["arguments"]))}
    return bool(changed) and f'"{changed}"' in case.text and changed not in wanted


def _is_typed(case: Case) -> bool:
    """Whether a source makes something else of what the format says is a text."""
    for call in case.calls:
        arguments: Any = call["arguments"]
        for key, value in arguments.items():
            if f'name="{key}" string="true"' in case.text and not isinstance(value, str):
                return True
    return False


def _is_guessed(case: Case, result: Rescued) -> bool:
    """Whether ours has not all the calls, and no format writes one of those that it has not as the text does."""
    if verdict(case, [(call.name, call.arguments) for call in result.calls]) != "refused":
        return False
    of_ours = {_same(call.name, call.arguments) for call in result.calls}
    text = _squeezed(case.text)
    missing = [call for call in case.calls if _same(str(call["name"]), call["arguments"]) not in of_ours]
    return any(not any(form in text for form in _forms(call)) for call in missing)


def _forms(call: Mapping[str, JSON]) -> Iterator[str]:
    name, arguments = call["name"], call["arguments"]
    if (
        isinstance(name, str)
        and isinstance(arguments, dict)
        and not call.get("partial")
        and not call.get("paths")
    ):
        for render in RENDERINGS.values():
            form = render(name, arguments)
            if form is not None:
                yield _squeezed(form)


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)
