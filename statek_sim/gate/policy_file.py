"""Reading policy files: TOML as people write it, and what is wrong in it as `path:line: problem`."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from statek_sim.errors import BadPolicy
from statek_sim.gate.policy import Policy, PolicyText, Rule
from statek_sim.harness.preset import BUILT_IN
from statek_sim.input_files import Unreadable, toml_in, why_no_toml, why_unreadable
from statek_sim.scenario.jsonschema import options_of
from statek_sim.scenario.locate import findings_of
from statek_sim.scenario.problem import Finding, Keypath

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
    read, text = read_toml(path, PolicyText, _contradictions)
    lines = lines_of(text, (("rule", number) for number in range(len(read.rule))))
    return Policy(
        path=path,
        rules=read.rule,
        lines=dict(zip([rule.name for rule in read.rule], lines, strict=True)),
        worse_by_percent=read.baseline.worse_by_percent,
        prices=None if read.prices is None else path.parent / read.prices,
    )


T = TypeVar("T", bound=BaseModel)


def read_toml(path: Path, shape: type[T], contradictions: Callable[[T], Iterator[Finding]]) -> tuple[T, str]:
    """Return what a policy file of a shape says, and its text; raises `BadPolicy` as `read_policy` does."""
    text = _text(path)
    try:
        written = toml_in(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPolicy(f"{path}:{why_no_toml(error, text)}") from None
    try:
        read = shape.model_validate(written)
    except ValidationError as error:
        options = partial(options_of, shape.model_json_schema())
        wrong = findings_of(error, written, prefix=(), options=options)
        raise BadPolicy(_placed(path, text, filter(_tells_most(wrong), wrong))) from None
    problems = list(contradictions(read))
    if problems:
        raise BadPolicy(_placed(path, text, problems))
    return read, text


def _tells_most(findings: Sequence[Finding]) -> Callable[[Finding], bool]:
    """Return whether a finding is not about a part of which another one tells what is wrong inside."""
    inside = {finding.keypath[:length] for finding in findings for length in range(len(finding.keypath))}
    return lambda finding: finding.keypath not in inside


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
    lines = lines_of(text, (finding.keypath for finding in findings))
    problems = {(line, finding.message) for line, finding in zip(lines, findings, strict=True)}
    return "\n".join(f"{path}:{line}: {message}" for line, message in sorted(problems))


def _contradictions(policy: PolicyText) -> Iterator[Finding]:
    names: dict[str, int] = {}
    for number, rule in enumerate(policy.rule):
        at: Keypath = ("rule", number)
        if names.setdefault(rule.name, number) != number:
            yield Finding((*at, "name"), f"rule {rule.name!r}: there is another rule of this name")
        if rule.must is None and rule.claims_leak:
            message = "it demands nothing; expected must, or claims_leak = false"
            yield Finding(at, f"rule {rule.name!r}: {message}")
        yield from _misplaced(at, rule)
        yield from _unpriced(at, rule, policy)


_GOES_WITH: Final = {
    "headroom_percent": "finish",
    "within_turns": "stop",
    "within_tokens": "stop",
    "within_cost": "stop",
}


def _unpriced(at: Keypath, rule: Rule, policy: PolicyText) -> Iterator[Finding]:
    if rule.within_cost is not None and policy.prices is None:
        message = f"rule {rule.name!r}: within_cost needs prices; say prices = FOLDER above the rules"
        yield Finding((*at, "within_cost"), message)


def _misplaced(at: Keypath, rule: Rule) -> Iterator[Finding]:
    for key, must in _GOES_WITH.items():
        if getattr(rule, key) is not None and rule.must != must:
            yield Finding((*at, key), f"rule {rule.name!r}: {key} goes with must = {must!r} only")


def lines_of(text: str, keypaths: Iterable[Keypath]) -> list[int]:
    """Return the line, from 1, of the statement that first gives each path a value; `text` is valid TOML.

    A statement of several lines stands at its first. A path that is nowhere stands where its longest known part does.

    TOML is read from the top and nothing is said twice, so that the lines before a statement are a text of their own:
    the statement is where a path first exists in one.
    """
    wanted = list(keypaths)
    found: dict[Keypath, int] = {}
    for begin, read in _beginnings(text):
        for path in wanted:
            for length in range(len(path) + 1):
                if path[:length] not in found and _has(read, path[:length]):
                    found[path[:length]] = begin
    return [
        max((found[path[:n]] for n in range(len(path) + 1) if path[:n] in found), default=1)
        for path in wanted
    ]


def _beginnings(text: str) -> Iterator[tuple[int, object]]:
    """Yield, statement by statement, the line on which it begins and what the text says up to its end."""
    lines = text.splitlines(keepends=True)
    begin = 1
    for end in range(1, len(lines) + 1):
        try:
            yield begin, toml_in("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            # In the middle of a statement, which began after the last line with which the text was whole.
            continue
        begin = end + 1


def _has(value: object, keypath: Keypath) -> bool:
    for part in keypath:
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if isinstance(part, int) and part < len(value):
                value = value[part]
            case _:
                return False
    return True
