"""Cases of rescue parsing that others wrote, and how an answer to one is judged.

Six collections, `cases.jsonl` and later `cases_2.jsonl` to `cases_6.jsonl`, have one case a line: `source` (project
and test), `licence`, `half`, the `text` and `tools` that the source's parser was given, and the `calls` that the source
expects: a name (null: it is not looked at) and arguments (`partial`: only these are looked at). `differs` says why the
source's answer is not the one wanted here: it completes or guesses what rescue parsing refuses.

The later ones also have an `id`, the `commit` or `url` where the source has one, the `dialect` that the source's parser
was told, and `needs_format` where the text alone does not say whether it is a call. The SHA-256 of an `id` says the
half in the second, fourth and fifth collection; the third was all held out. See NOTICE for the projects.

The fourth was recorded while the projects' own tests ran and passed: texts, tools and what their parsers gave, for at
most 12 texts of a test. Its parsers read several formats each, so that no `dialect` was told. The fifth was recorded
in the same way from vLLM's tests of its newer parsers, at most 4 texts of a test, and read out of the source of its
parsers in Rust; `differs` and `needs_format` were set by rules before its held-out half was looked at.

The sixth was copied out of SGLang's tests in three parts, each after the changes that the one before it led to, and
each measured once when it was complete; cases that are in the others were left out. `half` is `measure` for the last
part. Its calls are those that the tests assert, or those of SGLang 0.5.23 on the same text where a test asserts less.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from statek_sim.values import JSON

CASES: Final = Path(__file__).with_name("cases.jsonl")
SECOND: Final = Path(__file__).with_name("cases_2.jsonl")
THIRD: Final = Path(__file__).with_name("cases_3.jsonl")
FOURTH: Final = Path(__file__).with_name("cases_4.jsonl")
FIFTH: Final = Path(__file__).with_name("cases_5.jsonl")
SIXTH: Final = Path(__file__).with_name("cases_6.jsonl")

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
    dialect: str | None = None
    needs_format: bool = False


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
                dialect=record.get("dialect"),
                needs_format="needs_format" in record,
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
    return _same(seen) == _same(wanted)


def _same(value: JSON) -> str:
    """Return a text that two values share when JSON holds them for equal: 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_numbers(value), sort_keys=True)


def _numbers(value: JSON) -> JSON:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _numbers(member) for key, member in value.items()}
    return [_numbers(member) for member in value] if isinstance(value, list) else value


def counted(path: Path) -> Iterator[str]:
    """Yield rows of docs/rescue.md's table of what is read now: of all cases, and of those that want what is wanted."""
    # Imported here: parsers of others are scored without ours.
    from statek_sim.agent.rescue import rescue

    cases = load_cases(path)
    meant = [case for case in cases if not case.differs and not case.needs_format]
    rows = {"": cases, f", without {len(cases) - len(meant)} that want something else": meant}
    if any(case.dialect for case in cases):
        rows[", dialect named"] = cases
    for label, chosen in rows.items():
        verdicts: Counter[Verdict] = Counter()
        for case in chosen:
            dialect = case.dialect if "named" in label else None
            calls = rescue(case.text, case.tools, dialect=dialect).calls
            verdicts[verdict(case, [(call.name, call.arguments) for call in calls])] += 1
        right, wrong = (f"{verdicts[one]} ({verdicts[one] / len(chosen):.1%})" for one in ("right", "wrong"))
        yield f"| `{path.name}`{label} | {len(chosen)} | {right} | {verdicts['refused']} | {wrong} |"


if __name__ == "__main__":
    for collection in (CASES, SECOND, THIRD, FOURTH, FIFTH, SIXTH):
        print("\n".join(counted(collection)).replace("%)", " %)"))
