"""The lists that `statek-sim list` prints: suites, tools, presets, and profiles with their differences."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Final

from statek_sim import semantics
from statek_sim.backends.reference import tool_api
from statek_sim.harness.preset import BUILT_IN, load_preset
from statek_sim.runtime.execution.toolbox import get_all, get_any
from statek_sim.scenario.schema import Scenario
from statek_sim.semantics import PROFILES, Profile
from statek_sim.tool_names import (
    CLAIM_TOOLS,
    DELEGATION_TOOLS,
    FRAMEWORK_TOOLS,
    ITEM_TOOLS,
    PLAIN_TOOLS,
    RUNTIME_TOOLS,
    WAITING_TOOLS,
)
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import World


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """A rule on which profiles differ; `values` are in the order of `PROFILES`, as text."""

    name: str
    doc: str
    values: tuple[str, ...]


def profile_rules() -> tuple[ProfileRule, ...]:
    """Return every rule on which profiles differ, in the order of `Profile`'s fields.

    The descriptions are the fields' docstrings in `semantics`.
    """
    docs = dict(_field_docs())
    rules = []
    for field in fields(Profile):
        values = tuple(str(getattr(profile, field.name)) for profile in PROFILES.values())
        if field.name != "name" and len(set(values)) > 1:
            rules.append(ProfileRule(field.name, docs.get(field.name, ""), values))
    return tuple(rules)


def _field_docs() -> Iterator[tuple[str, str]]:
    """Yield the name and docstring of each `Profile` field."""
    module = ast.parse(inspect.getsource(semantics))
    classes = (node for node in module.body if isinstance(node, ast.ClassDef))
    body = next(node.body for node in classes if node.name == Profile.__name__)
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())


_TOOLS: Final = {
    "claims on the work queue": CLAIM_TOOLS,
    "items of the queue": ITEM_TOOLS,
    "waiting for events": WAITING_TOOLS,
    "other jobs": DELEGATION_TOOLS,
    "of the runtime itself": RUNTIME_TOOLS,
    "plain ones": PLAIN_TOOLS,
    "about the framework": FRAMEWORK_TOOLS,
}

_WIDTH: Final = 100
"""Maximum width of a line."""


def overview_lines(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Yield the name of each list and a summary of its contents."""
    suites = sorted({scenario.suite for scenario in scenarios})
    tools = sum(map(len, _TOOLS.values()))
    rows = {
        "suites": f"{len(suites)} suites with {len(scenarios):,} scenarios: {', '.join(suites)}",
        "tools": f"{tools} built-in tools that scenarios can use",
        "presets": ", ".join(BUILT_IN),
        "profiles": ", ".join(PROFILES),
        "schema": "of scenario files; --policy, --baseline, --evals: of other files",
    }
    for name, text in rows.items():
        yield from textwrap.wrap(
            f"{name:<10}{text}", _WIDTH, subsequent_indent=" " * 10, break_on_hyphens=False
        )
    yield "`statek-sim list NAME` prints one of these lists"


def suite_lines(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Yield a table of suites with their numbers of scenarios and runs (scenarios times profiles)."""
    suites: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        suites.setdefault(scenario.suite, []).append(scenario)
    width = max(map(len, (*suites, "suite", "total")))
    yield f"{'suite':<{width}}  scenarios  runs"
    for name, members in (*suites.items(), ("total", scenarios)):
        runs = sum(len(scenario.profiles) for scenario in members)
        yield f"{name:<{width}}  {len(members):>9}  {runs:>4}"


def profile_lines() -> Iterator[str]:
    """Yield a table of the rules on which the profiles differ, each with its description."""
    rules = profile_rules()
    rows = [("rule", *PROFILES), *((rule.name, *rule.values) for rule in rules)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, doc in zip(rows, ("", *(rule.doc for rule in rules)), strict=True):
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from textwrap.wrap(doc, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    yield "Behaviour N is section N of docs/statek-behaviour.md."


def tool_lines() -> Iterator[str]:
    """Yield the built-in tools grouped by purpose, each with its arguments and description."""
    found = WorldTools(World(), tool_api({}), extra=(get_any, get_all))
    for title, names in _TOOLS.items():
        yield f"{title}:"
        for name in names:
            parameters = [
                str(parameter).partition(":")[0]
                for parameter in inspect.signature(found[name]).parameters.values()
                if parameter.name != "kwargs"
            ]
            yield f"  {name}({', '.join(parameters)})"
            what = (inspect.getdoc(found[name]) or "").partition("\n\n")[0]
            yield from textwrap.wrap(what, _WIDTH, initial_indent="      ", subsequent_indent="      ")


def preset_lines() -> Iterator[str]:
    """Yield the built-in presets, each with its variables."""
    for name in BUILT_IN:
        yield name
        for variable, value in load_preset(name).values.items():
            yield f"  {variable}={value}"
