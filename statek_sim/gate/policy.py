"""Policies: a team's rules for its presets, the scenarios that each rule applies to, and policy files.

A rule that matches no scenario is an error, because it would always pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue, Strict, ValidationError

from statek_sim.did_you_mean import suggestion, with_suggestion
from statek_sim.errors import BadPolicy, BadScenario
from statek_sim.harness.limits import LimitName
from statek_sim.harness.preset import BUILT_IN
from statek_sim.input_files import read_text, toml_in, why_no_toml
from statek_sim.scenario.locate import findings_of, options_of
from statek_sim.scenario.part import Items, Money, Part
from statek_sim.scenario.problem import Finding, Keypath
from statek_sim.scenario.schema import Scenario

FORMAT: Final = "statek-sim/policy@1"

Percent = Annotated[int, Field(ge=0, le=99)]
Positive = Annotated[int, Field(ge=1)]
Words = Items[Annotated[str, Field(min_length=1)]]


class SelectText(Part):
    """Selects the scenarios that a rule applies to; without conditions, it selects every scenario."""

    tags: Words = Field(default=(), description="Scenarios with one of these tags.")
    scenarios: Words = Field(default=(), description="Scenarios with one of these names: suite/id, or id.")
    without_tags: Words = Field(default=(), description="Exclude scenarios with one of these tags.")


class HeadroomText(Part):
    """Minimum headroom for each limit, in percent; an omitted limit may be used up completely."""

    max_turns: Percent = Field(default=0, description="Percent of the LLM turns.")
    max_exceptions: Percent = Field(default=0, description="Percent of the total exceptions.")
    max_consecutive_exceptions: Percent = Field(
        default=0, description="Percent of the longest streak of failing turns."
    )
    max_token_usage: Percent = Field(default=0, description="Percent of the estimated tokens.")


class Rule(Part):
    """A policy rule; a limit without required headroom may be used up completely."""

    name: Annotated[str, Field(min_length=1)] = Field(description="The requirement, in your own words.")
    select: SelectText = Field(description="The scenarios the rule applies to.")
    must: Literal["finish", "stop"] | None = Field(
        default=None, description="finish: every job ends by itself. stop: a limit stops a job that goes bad."
    )
    headroom_percent: Percent | HeadroomText | None = Field(
        default=None,
        description="With finish: the percentage of a limit that must remain, for all limits or per limit.",
    )
    within_turns: Positive | None = Field(
        default=None, description="With stop: maximum LLM turns, including the one on which the job goes bad."
    )
    within_tokens: Positive | None = Field(
        default=None, description="With stop: maximum measured tokens, from that turn on."
    )
    within_cost: Money | None = Field(
        default=None,
        description='With stop: maximum cost, from that turn on, as a string: "0.05". Requires prices.',
    )
    claims_leak: bool = Field(default=True, description="false: no claim may leak.")

    def headroom(self, limit: LimitName) -> int:
        """Return the required headroom for a limit, in percent."""
        left = self.headroom_percent
        return int(getattr(left, limit.value)) if isinstance(left, HeadroomText) else left or 0

    @property
    def most_cost(self) -> Decimal | None:
        """A job's maximum cost, starting with the turn on which the job goes bad."""
        return None if self.within_cost is None else Decimal(self.within_cost)

    @property
    def counts(self) -> bool:
        """Whether the rule limits a job's usage after it goes bad."""
        return (self.within_turns, self.within_tokens, self.within_cost) != (None, None, None)


class BaselineText(Part):
    """How much worse than the baseline a figure may be."""

    worse_by_percent: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Maximum percentage by which a figure may be worse than the baseline."
    )


class PolicyText(Part):
    """A policy file."""

    version: Literal[1] = Field(default=1, description="Format version.")
    prices: str | None = Field(
        default=None,
        description="The folder that contains STATEK price files, relative to the policy's folder.",
    )
    rule: Annotated[tuple[Rule, ...], Strict(False), Field(min_length=1)] = Field(
        description="The rules; each applies to every scenario it selects."
    )
    baseline: BaselineText = Field(default_factory=BaselineText, description="How to compare with baselines.")


def policy_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (draft 2020-12) for policy files, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':').replace('@', ':')}",
        **PolicyText.model_json_schema(),
        "title": f"{FORMAT}: a team's requirements for its presets",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy file's rules, in order, and a mapping from rule names to line numbers.

    `worse_by_percent` is the maximum percentage by which a figure may be worse than the baseline. `prices` is the
    folder that contains the price files.
    """

    path: Path
    rules: tuple[Rule, ...]
    lines: Mapping[str, int]
    worse_by_percent: int = 0
    prices: Path | None = None


def selected(
    policy: Policy, rule: Rule, scenarios: Sequence[Scenario], left_out: Sequence[Scenario] = ()
) -> tuple[Scenario, ...]:
    """Return the scenarios that `rule` selects, in the order given.

    `left_out` are scenarios that do not support the requested profile; they are not selected, but a rule may name them
    and their tags. Raises `BadPolicy` (`path:line`) if the rule selects nothing or names an unknown scenario or tag,
    and `BadScenario` if a scenario lacks the turn from which the rule counts.
    """
    place = f"{policy.path}:{policy.lines[rule.name]}: rule {rule.name!r}"
    problems = list(_unknown(rule.select, scenarios, left_out))
    if problems:
        raise BadPolicy("\n".join(f"{place}: {problem}" for problem in problems))
    found = tuple(scenario for scenario in scenarios if _fits(rule.select, scenario))
    if not found and (elsewhere := [scenario for scenario in left_out if _fits(rule.select, scenario)]):
        raise BadPolicy(
            f"{place}: matches none of the {len(scenarios)} scenarios: {_only_elsewhere(elsewhere)}"
        )
    if not found:
        raise BadPolicy(
            f"{place}: matches none of the {len(scenarios)} scenarios, so it would always pass; "
            "change select or pass other scenarios"
        )
    for scenario in found:
        _require_goes_bad(rule, scenario)
    return found


def _fits(selection: SelectText, scenario: Scenario) -> bool:
    if not set(selection.without_tags).isdisjoint(scenario.tags):
        return False
    if not selection.tags and not selection.scenarios:
        return True
    named = not {scenario.id, _name(scenario)}.isdisjoint(selection.scenarios)
    return named or not set(selection.tags).isdisjoint(scenario.tags)


_TAG_OR_RULE: Final = "tag the intended scenarios, or pass your own rules with --policy FILE"


def _only_elsewhere(left_out: Sequence[Scenario]) -> str:
    """Return a clause that says the selected scenarios do not support the profile, with advice."""
    first = left_out[0]
    those = f" and {len(left_out) - 1} more do" if len(left_out) > 1 else " does"
    return (
        f"{_name(first)}{those} not list the requested profile; use --profile {first.profiles[0]}, or "
        "--policy FILE with rules for the requested profile"
    )


def _unknown(
    selection: SelectText, scenarios: Sequence[Scenario], left_out: Sequence[Scenario]
) -> Iterable[str]:
    tags = {tag for scenario in scenarios for tag in scenario.tags}
    for tag in selection.tags:
        if tag not in tags and (tagged := [scenario for scenario in left_out if tag in scenario.tags]):
            yield f"selects the tag {tag!r}: {_only_elsewhere(tagged)}"
        elif tag not in tags:
            hint = suggestion(tag, tags)
            yield f"no scenario has the tag {tag!r}" + (f".{hint}" if hint else f"; {_TAG_OR_RULE}")
    for name in selection.scenarios:
        known = {_name(scenario) if "/" in name else scenario.id for scenario in scenarios}
        if name in known:
            continue
        if meant := [scenario for scenario in left_out if name in (scenario.id, _name(scenario))]:
            yield f"selects {name!r}: {_only_elsewhere(meant)}"
        else:
            yield with_suggestion(f"unknown scenario {name!r}", name, known)


def _require_goes_bad(rule: Rule, scenario: Scenario) -> None:
    if rule.must == "stop" and rule.counts and not scenario.goes_bad:
        raise BadScenario(
            f"{scenario.place}: rule {rule.name!r} counts from the turn on "
            "which a job goes bad; expected goes_bad, like {main: 3}"
        )


def _name(scenario: Scenario) -> str:
    return f"{scenario.suite}/{scenario.id}"


POLICIES_DIR: Final = Path(__file__).parent / "policies"
"""The folder with the built-in policies."""

GENERAL: Final = "general"
"""The name of the built-in policy for users' preset files."""

MAX_BYTES: Final = 32_000
"""A policy file's maximum size in bytes."""


def shipped_policy(preset: str) -> Path:
    """Return the built-in policy file for `preset`: its own file if there is one, or else the general policy."""
    own = POLICIES_DIR / f"{preset}.toml"
    return own if preset in BUILT_IN and own.is_file() else POLICIES_DIR / f"{GENERAL}.toml"


def read_policy(path: Path) -> Policy:
    """Read a policy file; raises `BadPolicy` with a `path:line: problem` line per problem."""
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
    """Return a TOML file's content as a `shape`, and its text; raises `BadPolicy` as `read_policy` does.

    `contradictions` yields further problems in valid contents.
    """
    text = read_text(
        path, BadPolicy, most=MAX_BYTES, remedy="; expected a TOML policy file, or omit --policy"
    )
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
    """Return a filter that drops a problem with a value if there is also a problem inside that value."""
    inside = {finding.keypath[:length] for finding in findings for length in range(len(finding.keypath))}
    return lambda finding: finding.keypath not in inside


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
            yield Finding((*at, "name"), f"rule {rule.name!r}: duplicate name")
        if rule.must is None and rule.claims_leak:
            message = "no requirement; expected must or claims_leak = false"
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
        message = f"rule {rule.name!r}: within_cost requires prices; set prices = FOLDER above the rules"
        yield Finding((*at, "within_cost"), message)


def _misplaced(at: Keypath, rule: Rule) -> Iterator[Finding]:
    for key, must in _GOES_WITH.items():
        if getattr(rule, key) is not None and rule.must != must:
            yield Finding((*at, key), f"rule {rule.name!r}: {key} requires must = {must!r}")


def lines_of(text: str, keypaths: Iterable[Keypath]) -> list[int]:
    """Return the one-based line number of the statement, in valid TOML, that first gives each path a value.

    A multi-line statement has the number of its first line. A path that does not exist has the line of its longest
    existing prefix.

    The lines before a statement are valid TOML on their own, so the statement is where a path first exists.
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
    """Yield each statement's first line and the parsed text up to its end."""
    lines = text.splitlines(keepends=True)
    begin = 1
    for end in range(1, len(lines) + 1):
        try:
            yield begin, toml_in("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            # This line is in the middle of a statement.
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
