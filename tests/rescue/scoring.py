"""Cases of rescue parsing that others wrote, and how an answer to one is judged.

Ten collections, `cases.jsonl` and later `cases_2.jsonl` to `cases_10.jsonl`, have one case a line: `source` (project
and test), `licence`, `half`, the `text` and `tools` that the source's parser was given, and the `calls` that the source
expects: a name (null: it is not looked at) and arguments (`partial`: only these are looked at, and the values that
`paths` names by keys and numbers). `differs` says why the
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

The seventh was read out of the source of tests: those in Rust of the gateways of SGLang (`sglang-router`) and of its
successor SMG and of vLLM's parsers, llama.cpp's `test-chat.cpp` at three versions, json_repair's asserts as arguments.
The calls are those that they assert, often only a few of the arguments. Texts of the other collections were left out.

The eighth was copied out of tests of TensorRT-LLM, LMDeploy, FastDeploy, OpenVINO's model server, mistral.rs and
transformers, before any of ours read it; the SHA-256 of an `id` says the half. No tools in a request are no tools.

The ninth was copied out of tests of fourteen further projects and committed before any of ours read it; it was all
held out. Where a test looks at a few arguments or at names only, so does the case. Roo Code's parser knows its tools:
they are listed with the arguments that its tests name, typed where the test wants no text. Tests that only look at a
parser's state, and texts that are another case already, were left out.

The tenth was copied out of tests of seventeen further projects, all of it held out; it was committed before any of
ours read it, with `differs` on the cases that break a stated rule or want the opposite of a stored case. CrewAI's
broken JSON stands behind `Action Input:`, where its parser reads it. What LangChain and CrewAI give a tool as one text,
which is no object of arguments, was left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from statek_sim.values import JSON

CASES: Final = Path(__file__).with_name("cases.jsonl")
SECOND: Final = Path(__file__).with_name("cases_2.jsonl")
THIRD: Final = Path(__file__).with_name("cases_3.jsonl")
FOURTH: Final = Path(__file__).with_name("cases_4.jsonl")
FIFTH: Final = Path(__file__).with_name("cases_5.jsonl")
SIXTH: Final = Path(__file__).with_name("cases_6.jsonl")
SEVENTH: Final = Path(__file__).with_name("cases_7.jsonl")
EIGHTH: Final = Path(__file__).with_name("cases_8.jsonl")
NINTH: Final = Path(__file__).with_name("cases_9.jsonl")
TENTH: Final = Path(__file__).with_name("cases_10.jsonl")
COLLECTIONS: Final = (CASES, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH, TENTH)

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
    account: Mapping[str, str] = field(default_factory=dict)
    """Why the answer is not the source's, see `tests.rescue.account`."""


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
                account=record.get("account", {}),
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
    paths: Any = expected.get("paths") or []
    if not all(_has(dict(arguments), path, value) for path, value in paths):
        return False
    return _same(seen) == _same(wanted)


def _has(value: JSON, path: Sequence[str | int], wanted: JSON) -> bool:
    """Whether `wanted` stands at `path` in a value; null also stands where nothing does, as serde_json has it."""
    for key in path:
        if isinstance(value, Mapping) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            value = None
    return _same(value) == _same(wanted)


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
    """Yield rows of what is read now: of all cases, of those that want what is wanted, and with the dialect named."""
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
    for collection in COLLECTIONS:
        print("\n".join(counted(collection)).replace("%)", " %)"))
