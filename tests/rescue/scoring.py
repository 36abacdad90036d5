"""Cases of rescue parsing that others wrote, and how an answer to one is judged.

`cases.jsonl`: one case a line: `source` (project and test), `licence`, `half`, the `text` and `tools` that the source's
parser was given, and the `calls` that the source expects: a name (null: the source does not look at it) and arguments
(`partial`: the source looks at these only). `differs` says why the source's answer is not the one wanted here: it
completes or guesses what rescue parsing refuses. See NOTICE for the projects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from statek_sim.values import JSON

CASES: Final = Path(__file__).with_name("cases.jsonl")

Verdict = Literal["right", "refused", "wrong"]
Said = Sequence[tuple[str, Mapping[str, JSON]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case; `differs` is empty where the source's answer is the one wanted here."""

    source: str
    half: Literal["build", "measure"]
    text: str
    tools: Sequence[Mapping[str, JSON]] | None
    calls: Sequence[Mapping[str, JSON]]
    differs: str


def load_cases(path: Path = CASES) -> list[Case]:
    """Return the cases in `path`."""
    made = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        made.append(
            Case(
                source=record["source"],
                half=record["half"],
                text=record["text"],
                tools=record["tools"],
                calls=record["calls"],
                differs=record.get("differs", ""),
            )
        )
    return made


def verdict(case: Case, said: Said) -> Verdict:
    """Return `right` for the source's calls, `refused` for some or none of them, `wrong` for any other call."""
    if len(said) == len(case.calls) and all(map(_is, case.calls, said)):
        return "right"
    if len(said) < len(case.calls) and all(any(_is(call, one) for call in case.calls) for one in said):
        return "refused"
    return "wrong"


def _is(expected: Mapping[str, JSON], said: tuple[str, Mapping[str, JSON]]) -> bool:
    name, arguments = said
    wanted = expected["arguments"]
    if expected["name"] not in (None, name) or not isinstance(wanted, dict):
        return False
    seen = {key: arguments.get(key) for key in wanted} if expected.get("partial") else dict(arguments)
    # Text, because 1, 1.0 and True are equal in Python and not in JSON.
    return json.dumps(seen, sort_keys=True) == json.dumps(wanted, sort_keys=True)
