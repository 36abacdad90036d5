"""Reading policy files: TOML as people write it, and what is wrong in it as `path:line: problem`."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from statek_sim.errors import BadPolicy
from statek_sim.gate.policy import Must, Policy, Rule, Selection
from statek_sim.gate.policy_schema import (
    OF_PRESETS,
    Finding,
    HeadroomText,
    Inner,
    Keypath,
    PolicyText,
    RuleText,
    findings_of,
    lines_of,
)
from statek_sim.harness.limits import LimitName
from statek_sim.harness.preset import BUILT_IN
from statek_sim.input_files import Unreadable, toml_in, why_no_toml, why_unreadable

POLICIES_DIR: Final = Path(__file__).parent / "policies"
"""Where the shipped policies are."""

GENERAL: Final = "general"
"""The shipped policy that judges a preset file of one's own."""

MAX_BYTES: Final = 32_000
"""Largest policy file read; a policy is a page."""


def shipped_policy(preset: str) -> Path:
    """Return the policy that judges `preset` when nobody says one: a built-in preset has its own, if it is shipped."""
    own = POLICIES_DIR / f"{preset}.toml"
    return own if preset in BUILT_IN and own.is_file() else POLICIES_DIR / f"{GENERAL}.toml"


def read_policy(path: Path) -> Policy:
    """Return the policy in the file; raises `BadPolicy` with one line `path:line: problem` for all that is wrong."""
    read, text = read_toml(path, PolicyText, OF_PRESETS, _contradictions)
    return Policy(
        path=path,
        rules=tuple(map(_rule, read.rule, lines_of(text, (("rule", n) for n in range(len(read.rule)))))),
        worse_by_percent=read.baseline.worse_by_percent,
        prices=None if read.prices is None else path.parent / read.prices,
    )


T = TypeVar("T", bound=BaseModel)


def read_toml(
    path: Path, shape: type[T], inner: Inner, contradictions: Callable[[T], Iterator[Finding]]
) -> tuple[T, str]:
    """Return what a policy file of a shape says, and its text; raises `BadPolicy` as `read_policy` does."""
    text = _text(path)
    try:
        written = toml_in(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPolicy(f"{path}:{why_no_toml(error, text)}") from None
    try:
        read = shape.model_validate(written)
    except ValidationError as error:
        raise BadPolicy(_placed(path, text, findings_of(error, inner))) from None
    problems = list(contradictions(read))
    if problems:
        raise BadPolicy(_placed(path, text, problems))
    return read, text


_EXPECTED: Final = "expected a policy in TOML, or leave --policy out"


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadPolicy(f"{path}: not a regular file; {_EXPECTED}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except Unreadable as error:
        raise BadPolicy(f"{path}: {why_unreadable(error, path)}; {_EXPECTED}") from None
    if len(content) > MAX_BYTES:
        raise BadPolicy(f"{path}: more than {MAX_BYTES} bytes; a policy is a page")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadPolicy(f"{path}:{line}: not UTF-8 (byte 0x{content[error.start]:02x})") from None


def _placed(path: Path, text: str, found: Iterable[Finding]) -> str:
    findings = list(found)
    lines = lines_of(text, (keypath for keypath, _ in findings))
    problems = {(line, message) for line, (_, message) in zip(lines, findings, strict=True)}
    return "\n".join(f"{path}:{line}: {message}" for line, message in sorted(problems))


def _rule(text: RuleText, line: int) -> Rule:
    select, headroom = text.select, text.headroom_percent
    left = (
        headroom.model_dump()
        if isinstance(headroom, HeadroomText)
        else dict.fromkeys((limit.value for limit in LimitName), headroom or 0)
    )
    return Rule(
        name=text.name,
        line=line,
        selection=Selection(tags=select.tags, scenarios=select.scenarios, without_tags=select.without_tags),
        must=None if text.must is None else Must(text.must),
        headroom_percent={limit: left[limit.value] for limit in LimitName},
        within_turns=text.within_turns,
        within_tokens=text.within_tokens,
        within_cost=None if text.within_cost is None else Decimal(text.within_cost),
        claims_may_leak=text.claims_leak,
        max_crash_tokens=text.max_crash_tokens,
        max_crash_cost=None if text.max_crash_cost is None else Decimal(text.max_crash_cost),
    )


def _contradictions(policy: PolicyText) -> Iterator[Finding]:
    names: dict[str, int] = {}
    for number, rule in enumerate(policy.rule):
        at: Keypath = ("rule", number)
        if names.setdefault(rule.name, number) != number:
            yield (*at, "name"), f"rule {rule.name!r}: there is another rule of this name"
        crashes = (rule.max_crash_tokens, rule.max_crash_cost)
        if rule.must is None and rule.claims_leak and crashes == (None, None):
            message = "it demands nothing; expected must, claims_leak = false, or max_crash_tokens"
            yield at, f"rule {rule.name!r}: {message}"
        yield from _misplaced(at, rule)
        yield from _unpriced(at, rule, policy)


_GOES_WITH: Final = {
    "headroom_percent": "finish",
    "within_turns": "stop",
    "within_tokens": "stop",
    "within_cost": "stop",
}


def _unpriced(at: Keypath, rule: RuleText, policy: PolicyText) -> Iterator[Finding]:
    for key in ("within_cost", "max_crash_cost"):
        if getattr(rule, key) is not None and policy.prices is None:
            message = f"rule {rule.name!r}: {key} needs prices; say prices = FOLDER above the rules"
            yield (*at, key), message


def _misplaced(at: Keypath, rule: RuleText) -> Iterator[Finding]:
    for key, must in _GOES_WITH.items():
        if getattr(rule, key) is not None and rule.must != must:
            yield (*at, key), f"rule {rule.name!r}: {key} goes with must = {must!r} only"
