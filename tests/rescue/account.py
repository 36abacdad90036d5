"""Why a case of others is not read as its source reads it: a reason in the case, and what makes the reason checkable.

A case whose answer is not its source's has an `account`:

- `opposite`: with the format unknown nobody can read both this case and another one. `case` names the other by file and
  line, `shape` is a pattern that both texts match. Where it has the groups `key` and `value` the sources read what is
  written there differently (as it is, stripped, a number, ...) while the tools say the same of it; where it has none,
  one source has a call and the other has not.
- `rule`: the source's answer breaks a hard rule of rescue parsing, one of `tests.rescue.rules.RULES`, and its check
  there says so. `left_out` and `changed` name what is left out or changed of what is written.
- `ours`: neither; it may be read one day, and `why` says what is in the way.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from statek_sim.agent.rescue import rescue
from statek_sim.agent.schema import kinds_of
from tests.rescue.scoring import COLLECTIONS, Case, Verdict, load_cases, verdict

PROJECTS: Final = ("vllm", "sglang", "llama.cpp", "json_repair")
"""The projects whose cases the goal of 95 % right and 0.5 % wrong calls is about."""


def project(case: Case) -> str:
    """Return the project that wrote a case; `sglang-router` is SGLang's."""
    name = re.split(r"[ /]", case.source)[0].lower()
    return "sglang" if name == "sglang-router" else name


@cache
def _cases(name: str) -> tuple[Case, ...]:
    return tuple(load_cases(Path(__file__).with_name(name)))


def named(place: str) -> Case:
    """Return the case at `place`: `cases_5.jsonl:22`."""
    name, line = place.rsplit(":", 1)
    return _cases(name)[int(line) - 1]


def all_cases() -> Iterator[tuple[str, Case]]:
    """Yield every stored case with its place."""
    for path in COLLECTIONS:
        for line, case in enumerate(_cases(path.name), 1):
            yield f"{path.name}:{line}", case


def opposed(case: Case, other: Case, shape: str) -> bool:
    """Whether two cases have a shape in common and want what no reader can give both."""
    pattern = re.compile(shape, re.DOTALL)
    if "value" not in pattern.groupindex:
        alike = pattern.search(case.text) and pattern.search(other.text)
        # A call that is read where any name is accepted is one where its tool is listed, too.
        called = case if case.calls else other
        same_tools = called.tools is None or None not in (case.tools, other.tools)
        return bool(alike) and same_tools and bool(case.calls) != bool(other.calls)
    theirs = [reading for reading in _readings(other, pattern) if reading[0] != "another text"]
    return any(
        how not in (that, "another text") and (kinds == those or {how, that} <= _TEXTS)
        for how, kinds in _readings(case, pattern)
        for that, those in theirs
    )


def _readings(case: Case, pattern: re.Pattern[str]) -> Iterator[tuple[str, object]]:
    """Yield how a source reads each value of a shape, and what the tools say of it; calls have them in their order."""
    matches = list(pattern.finditer(case.text))
    for key in dict.fromkeys(match["key"] for match in matches):
        written = [match["value"] for match in matches if match["key"] == key]
        stated = [(call["name"], value) for call in case.calls for value in _stated(call, key)]
        if len(stated) == len(written):
            for text, (name, value) in zip(written, stated, strict=True):
                yield _how(text, value), _schema(case, name, key)


def _stated(call: Mapping[str, Any], key: str) -> Iterator[object]:
    """Yield the values that a source expects under `key`, at any depth, where it says one."""
    todo: list[Any] = [call["arguments"]]
    todo += [{path[0]: value if len(path) == 1 else {}} for path, value in call.get("paths") or []]
    while todo:
        value = todo.pop(0)
        if isinstance(value, dict):
            if key in value:
                yield value[key]
            todo += value.values()


_TEXTS: Final = frozenset(
    ("a text, as written", "a text, stripped", "a text, unescaped", "a text, up to a closing tag in it")
)
"""Readings that no schema tells apart."""


def _how(written: str, value: object) -> str:
    if not isinstance(value, str):
        return "no text"
    if value == written:
        return "a text, as written"
    if value == written.strip():
        return "a text, stripped"
    if written.lstrip().startswith(f"{value}</"):
        return "a text, up to a closing tag in it"
    return "a text, unescaped" if value == html.unescape(written) else "another text"


def _schema(case: Case, name: object, key: str) -> object:
    """Return what the tools say of an argument, whether it may be a text and a container; None: nothing."""
    if case.tools is None:
        return None
    for tool in case.tools:
        spec: Any = tool.get("function", tool)
        properties = (spec.get("parameters") or {}).get("properties") or {}
        if name in (None, spec.get("name")) and key in properties:
            kinds = kinds_of(properties[key])
            return "string" in kinds, bool(kinds & {"object", "array"})
    return "not described"


def answered() -> dict[str, Verdict]:
    """Return the verdict on every stored case, by place, the format unknown."""
    verdicts: dict[str, Verdict] = {}
    for place, case in all_cases():
        calls = rescue(case.text, case.tools).calls
        verdicts[place] = verdict(case, [(call.name, call.arguments) for call in calls])
    return verdicts


LESS: Final = ", without opposites and broken rules"


def counted(verdicts: Mapping[str, Verdict]) -> dict[str, Counter[Verdict]]:
    """Return verdicts by project, of the four, by collection and of all; with `LESS` behind each label, of fewer."""
    names = (*PROJECTS, "all four", *(path.name for path in COLLECTIONS), "all collections")
    totals: dict[str, Counter[Verdict]] = {name + less: Counter() for name in names for less in ("", LESS)}
    for place, case in all_cases():
        labels = [project(case), "all four"] if project(case) in PROJECTS else []
        for label in (*labels, place.split(":")[0], "all collections"):
            totals[label][verdicts[place]] += 1
            totals[label + LESS][verdicts[place]] += case.account.get("kind") not in ("opposite", "rule")
    return totals


def rows(verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield the rows of docs/rescue.md's table of what is read now."""
    totals = counted(verdicts)
    for label, every in totals.items():
        if not label.endswith(LESS):
            meant = totals[label + LESS]
            cells = [label, every.total(), _part(every, "right"), every["refused"], _part(every, "wrong")]
            cells += [meant.total(), _part(meant, "right"), _part(meant, "wrong")]
            yield f"| {' | '.join(map(str, cells))} |"


def _part(seen: Counter[Verdict], which: Verdict) -> str:
    return f"{seen[which]} ({seen[which] / seen.total() * 100:.1f} %)"


if __name__ == "__main__":
    print("\n".join(rows(answered())))
