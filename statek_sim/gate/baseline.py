"""Baselines: a preset's figures for each scenario, their files, and comparison with new figures."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import Field, JsonValue, ValidationError

from statek_sim.errors import BadInput
from statek_sim.gate.gate import Case, GatePlan, judged
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.verdict import GateResult, Remark, Verdict
from statek_sim.harness.limits import LimitName
from statek_sim.input_files import read_text
from statek_sim.scenario.part import Count, Money, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCase:
    """A pending comparison of a scenario with a preset's baseline.

    `cases` are the scenario's current cases; empty if the scenario no longer exists.
    """

    preset: GatedPreset
    scenario: str
    baseline: Baseline
    cases: tuple[Case, ...]
    plan: GatePlan

    @property
    def rule(self) -> str:
        """The rule's name."""
        return RULE

    @property
    def tags(self) -> tuple[str, ...]:
        """The scenario's tags; empty if the scenario no longer exists."""
        return self.cases[0].tags if self.cases else ()

    def verdict(self) -> Verdict:
        """Check the scenario against every rule and compare its figures with the baseline."""
        plan = replace(self.plan, presets=(self.preset,))
        now = GateResult(
            profile=self.baseline.profile,
            presets=(judged(self.preset, plan.policies[self.preset.name]),),
            verdicts=tuple(case.verdict() for case in self.cases),
        )
        [verdict] = [
            verdict
            for verdict in compared(now, {self.preset.name: self.baseline}, plan).verdicts
            if verdict.rule == RULE
        ]
        return verdict


def baseline_cases(
    plan: GatePlan, cases: Iterable[Case], baselines: Mapping[str, Baseline]
) -> Iterator[BaselineCase]:
    """Yield a case for each scenario in each baseline, preset by preset; `cases` are all cases in the plan."""
    every = list(cases)
    for preset in plan.presets:
        if preset.name in baselines:
            yield from _of_preset(
                plan,
                preset,
                [outcome for outcome in every if outcome.preset == preset],
                baselines[preset.name],
            )


def _of_preset(
    plan: GatePlan, preset: GatedPreset, cases: Sequence[Case], baseline: Baseline
) -> Iterator[BaselineCase]:
    for name, figures in baseline.scenarios.items():
        scenario = f"{name}[{baseline.profile}]"
        yield BaselineCase(
            preset=preset,
            scenario=scenario,
            baseline=replace(baseline, scenarios={name: figures}),
            cases=tuple(case for case in cases if case.scenario == scenario),
            plan=plan,
        )


RULE: Final = "no worse than the baseline"
"""The name of the rule that compares scenarios with the baseline."""


class Need(NamedTuple):
    """The smallest value of a limit that lets a scenario finish, and the current limit (None for unlimited)."""

    needed: int
    value: int | None

    @property
    def share(self) -> float:
        """The fraction of the limit that the scenario needs; above 1 if the limit is too small."""
        if not self.needed or self.value is None:
            return 0.0
        return self.needed / self.value if self.value else float("inf")


class Figures(Part):
    """A scenario's figures under a preset in a baseline file; omitted values are zero or empty.

    `needs` contains the limits that the scenario needs, if a rule requires it to finish. The `bad` figures count from
    the turn on which a job goes bad.
    """

    stopped_by: LimitName | None = Field(default=None, description="The first limit that stopped a job.")
    needs: dict[LimitName, Need] = Field(
        default_factory=dict,
        description="[needed value of a limit, actual value or null for unlimited].",
    )
    bad_turns: Count | None = Field(default=None, description="LLM turns after a job went bad.")
    bad_tokens: Count | None = Field(default=None, description="Measured tokens after a job went bad.")
    bad_cost: Money | None = Field(
        default=None, description="Cost after a job went bad, as a decimal string."
    )
    leaked: Count = Field(default=0, description="Leaked claims.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A preset's figures under a profile, keyed by scenario (`suite/scenario`), in alphabetical order.

    `path` is the baseline file.
    """

    preset: str
    profile: str
    scenarios: Mapping[str, Figures]
    path: Path = field(default=Path(), compare=False)


def baseline_of(result: GateResult, preset: str) -> Baseline:
    """Return a preset's baseline from a gate result."""
    found: dict[str, Figures] = {}
    for verdict in result.verdicts:
        if verdict.preset == preset and verdict.rule != RULE:
            name = _unprofiled(verdict.scenario)
            found[name] = _merged(found.get(name), _figures(verdict))
    return Baseline(preset=preset, profile=result.profile, scenarios=dict(sorted(found.items())))


def compared(result: GateResult, baselines: Mapping[str, Baseline], plan: GatePlan) -> GateResult:
    """Return the result with a verdict for each scenario in the baselines, and a remark for each new scenario.

    The plan's policies set the percentage by which a figure may be worse.
    """
    verdicts, remarks = list(result.verdicts), list(result.remarks)
    for preset in plan.presets:
        if preset.name in baselines:
            percent = plan.policies[preset.name].worse_by_percent
            before, now = baselines[preset.name], baseline_of(result, preset.name)
            verdicts += _verdicts(result, preset, before, now, percent)
            remarks += _new(preset, before, now)
    files = tuple((name, baseline.path) for name, baseline in baselines.items())
    return replace(result, verdicts=tuple(verdicts), remarks=tuple(remarks), baselines=files)


def worse(before: Figures, now: Figures, percent: int) -> Iterator[tuple[LimitName | None, str]]:
    """Yield the limit and a description of each figure that got worse by more than `percent`."""
    if before.stopped_by is None and now.stopped_by is not None:
        yield now.stopped_by, f"now stopped by {now.stopped_by}, not stopped before"
    if before.bad_turns is not None and before.stopped_by is not None and now.stopped_by is None:
        yield before.stopped_by, f"stopped by {before.stopped_by} before, not stopped now"
    if before.needs and now.needs:
        for limit in LimitName:
            yield from _worse_need(limit, before.needs.get(limit), now.needs.get(limit), percent)
    for clause in (
        *_more("turns since it went bad", before.bad_turns, now.bad_turns, percent),
        *_more("measured tokens since it went bad", before.bad_tokens, now.bad_tokens, percent),
        *_more("of cost since it went bad", _cost(before), _cost(now), percent),
    ):
        yield now.stopped_by, clause
    for clause in _more("leaked claims", before.leaked, now.leaked, 0):
        yield None, clause


def _cost(figures: Figures) -> Decimal | None:
    return None if figures.bad_cost is None else Decimal(figures.bad_cost)


def _worse_need(
    limit: LimitName, before: Need | None, now: Need | None, percent: int
) -> Iterator[tuple[LimitName, str]]:
    """Yield the limit and a description if a larger fraction of the limit is needed than before."""
    if now is None:
        return
    was = Need(0, now.value) if before is None else before
    if now.share * 100 > was.share * (100 + percent):
        yield (
            limit,
            f"needs {now.needed:,} of {_limited(now)} {limit}, {was.needed:,} of {_limited(was)} in the baseline",
        )


def _limited(need: Need) -> str:
    return "unlimited" if need.value is None else f"{need.value:,}"


def _more(what: str, before: int | Decimal | None, now: int | Decimal | None, percent: int) -> Iterator[str]:
    if before is not None and now is not None and now * 100 > before * (100 + percent):
        yield f"{now:,} {what}, {before:,} in the baseline"


def _figures(verdict: Verdict) -> Figures:
    burnt = verdict.burnt
    return Figures(
        stopped_by=None if verdict.stop is None else verdict.stop.limit,
        needs={
            figure.limit: Need(figure.needed, figure.value)
            for figure in verdict.figures
            if figure.needed and not figure.stated
        },
        bad_turns=None if burnt is None else burnt.turns,
        bad_tokens=None if burnt is None else burnt.tokens,
        bad_cost=None if burnt is None or burnt.cost is None else f"{burnt.cost:f}",
        leaked=len(verdict.leaked),
    )


def _merged(known: Figures | None, other: Figures) -> Figures:
    """Combine two rules' figures for the same run: return those with needs, which not all rules compute."""
    if known is None:
        return other
    return known if known.needs or not other.needs else other


def _verdicts(
    result: GateResult, preset: GatedPreset, before: Baseline, now: Baseline, percent: int
) -> Iterator[Verdict]:
    samples = {
        _unprofiled(verdict.scenario): verdict for verdict in result.verdicts if verdict.preset == preset.name
    }
    for name, figures in before.scenarios.items():
        if name in samples:
            yield _verdict(samples[name], preset, list(worse(figures, now.scenarios[name], percent)))
        else:
            yield _vanished(preset, f"{name}[{now.profile}]")


def _verdict(sample: Verdict, preset: GatedPreset, found: Sequence[tuple[LimitName | None, str]]) -> Verdict:
    sentence = "; ".join(clause for _, clause in found) or "as good as the baseline"
    limit = found[0][0] if found else None
    return replace(
        sample,
        rule=RULE,
        passed=not found,
        reason=f"`{preset.name}`: `{_id(sample.scenario)}`: {sentence}",
        limit=limit,
        place=preset.place(limit),
    )


def _vanished(preset: GatedPreset, scenario: str) -> Verdict:
    missing = "in the baseline, but not checked; to remove it, use --update-baseline"
    return Verdict(
        preset=preset.name,
        scenario=scenario,
        tags=(),
        rule=RULE,
        passed=False,
        reason=f"`{preset.name}`: `{_id(scenario)}`: {missing}",
        place=preset.place(None),
    )


def _new(preset: GatedPreset, before: Baseline, now: Baseline) -> Iterator[Remark]:
    for name in now.scenarios:
        if name not in before.scenarios:
            message = f"`{_id(name)}` is not in the baseline; to add it, use --update-baseline"
            yield Remark(preset=preset.name, place=preset.place(None), message=message)


def _unprofiled(scenario: str) -> str:
    return scenario.partition("[")[0]


def _id(scenario: str) -> str:
    return _unprofiled(scenario).rpartition("/")[2]


FORMAT: Final = "statek-sim/baseline@1"
SUFFIX: Final = ".json"


class BaselineText(Part):
    """A baseline file."""

    format: Literal["statek-sim/baseline@1"] = Field(description="Format name.")
    preset: str = Field(description="The preset, as given on the command line.")
    profile: str = Field(description="Behaviour profile.")
    scenarios: dict[str, Figures] = Field(description="Figures by suite/scenario, in alphabetical order.")


def baseline_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema for baseline files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **BaselineText.model_json_schema(),
        "title": FORMAT,
    }


def baseline_paths(path: Path, presets: Sequence[str]) -> dict[str, Path]:
    """Return each preset's baseline file: `path` if it ends in .json, else `path/NAME.json`.

    Raises `BadInput` if several presets would share a file, and for a file with another suffix.
    """
    if path.suffix != SUFFIX and path.is_file():
        raise BadInput(
            f"--baseline {path}: expected a file that ends in {SUFFIX}, or a folder, found a different file"
        )
    if path.suffix == SUFFIX and not path.is_dir():
        if len(presets) > 1:
            raise BadInput(
                f"--baseline {path}: one file for {len(presets)} presets; pass a folder of NAME.json files"
            )
        return {presets[0]: path}
    found = {preset: path / f"{Path(preset).stem}{SUFFIX}" for preset in presets}
    if len(set(found.values())) < len(found):
        raise BadInput(
            f"--baseline {path}: two presets have the same file name and would share a baseline; check them separately"
        )
    return found


_ANEW: Final = "delete it and write a new one with --update-baseline"


def read_baseline(path: Path, *, profile: str) -> Baseline:
    """Read a baseline file; raises `BadInput` (`path:line: ...`) if it is invalid or for another profile."""
    remedy = _ANEW if path.is_file() else "to write it, use --update-baseline"
    text = read_text(path, remedy=f"; {remedy}")
    try:
        written = BaselineText.model_validate_json(text)
    except ValidationError as error:
        raise BadInput("\n".join(_problems(path, text, error))) from None
    if written.profile != profile:
        raise BadInput(
            f"{path}:{_line_of(text, 'profile')}: baseline is for profile {written.profile}, expected {profile}; use "
            "that --profile or a different baseline"
        )
    return Baseline(preset=written.preset, profile=written.profile, scenarios=written.scenarios, path=path)


def baseline_text(baseline: Baseline) -> str:
    """Return a baseline file's text; equal baselines give equal text."""
    rows = [
        f"    {json.dumps(name)}: {json.dumps(figures.model_dump(mode='json', exclude_defaults=True))}"
        for name, figures in baseline.scenarios.items()
    ]
    head = {"format": FORMAT, "preset": baseline.preset, "profile": baseline.profile}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    return "\n".join(["{", *lines, '  "scenarios": {', ",\n".join(rows), "  }", "}"]) + "\n"


def baseline_diff(path: Path, new: str) -> list[str]:
    """Return the unified diff lines from a file, which may not exist, to its new text."""
    old = read_text(path) if path.is_file() else ""
    name = path.as_posix()
    before = name if old else "/dev/null"
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), before, name, lineterm="", n=1))


def _problems(path: Path, text: str, error: ValidationError) -> Iterator[str]:
    for details in error.errors(include_url=False):
        loc = [str(part) for part in details["loc"]]
        invalid = re.search(r"at line (\d+)", details["msg"])
        first = int(invalid[1]) if invalid else 1
        where = next((line for part in reversed(loc) if (line := _line_of(text, part, missing=0))), first)
        place = f"{'.'.join(loc)}: " if loc else ""
        problem = f"{details['msg'][:1].lower()}{details['msg'][1:]}"
        yield f"{path}:{where}: {place}{problem}; {_ANEW}"


def _line_of(text: str, key: str, *, missing: int = 1) -> int:
    """Return the line number of the first entry with this key, or `missing`."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(f"{json.dumps(key)}:"):
            return number
    return missing
