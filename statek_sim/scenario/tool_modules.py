"""Checks that a `module:attribute` exists without importing the module, because an import runs its code."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

from statek_sim.did_you_mean import with_suggestion
from statek_sim.scenario.files import problem_at
from statek_sim.scenario.problem import Keypath, Problem
from statek_sim.scenario.schema import Scenario

_ANYTHING: Final = "*"
"""Stands for names that are known only when a module runs."""


def missing_tools(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Yield a problem for each `module:attribute` in a scenario whose module or attribute is not found.

    These are tools, callable replies and harness plugins. Modules that create names at run time (`import *`,
    `__getattr__`, extension modules) count as having every name.
    """
    known: dict[str, str | None] = {}
    for scenario in scenarios:
        missing: set[str] = set()
        for keypath, name in _names(scenario):
            if name not in known:
                known[name] = _problem(name)
            problem = known[name]
            if problem is not None and name not in missing:
                missing.add(name)
                yield problem_at(scenario, keypath, f"{name!r}: {problem}")


def _names(scenario: Scenario) -> Iterator[tuple[Keypath, str]]:
    for role, agent in scenario.agents.items():
        at: Keypath = ("agents", role)
        for position, tool in enumerate(agent.tools):
            if ":" in tool:
                yield (*at, "tools", position), tool
        harness = agent.harness
        for position, guard in enumerate(harness.guards):
            if guard.is_own:
                yield (*at, "harness", "guards", position), guard.guard
        for seam in ("watchers", "gates"):
            for position, name in enumerate(getattr(harness, seam)):
                yield (*at, "harness", seam, position), name
        for seam in ("reader", "chooser", "compactor"):
            name = getattr(harness, seam)
            if name is not None and ":" in name:
                yield (*at, "harness", seam), name
    for title, own in scenario.tools.items():
        if own.call:
            yield ("tools", title, "call"), own.call
    for script, replies in scenario.script.items():
        for position, reply in enumerate(replies):
            if reply.kind == "call":
                yield ("script", script, position, "call"), reply.call


def _problem(name: str) -> str | None:
    module, _, attribute = name.partition(":")
    if module in sys.builtin_module_names:
        return None
    spec = _spec(module)
    if isinstance(spec, str):
        return f"module {spec!r} not found in the current folder or on Python's path"
    first = attribute.partition(".")[0]
    bound = _bound(spec)
    if _ANYTHING in bound or first in bound:
        return None
    return with_suggestion(f"module {module!r} has no {first!r}", first, bound)


def _spec(module: str) -> ModuleSpec | str:
    """Return a module's location, or the first part of its dotted name that is not found."""
    spec: ModuleSpec | None = None
    path: Sequence[str] | None = None
    for depth in range(1, module.count(".") + 2):
        part = ".".join(module.split(".")[:depth])
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            return part
        path = [*(spec.submodule_search_locations or ())]
    assert spec is not None
    return spec


def _bound(spec: ModuleSpec) -> set[str]:
    """Return the names defined in a module's source."""
    if spec.origin is None or not spec.origin.endswith(".py"):
        return {_ANYTHING}
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError):
        # Running it reports the problem.
        return {_ANYTHING}
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(_ANYTHING if name == "__getattr__" else name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found.update((alias.asname or alias.name).partition(".")[0] for alias in names)
    return found
