"""What the packages import is what the project declares, and the other way round."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = ("pytest_statek", "statek_sim")
FOREIGN: Final = {
    *("dbzero", "statek", "forge", "httpx2", "openai", "pydantic_ai"),
    *("agents", "anthropic", "langchain", "langchain_core", "langchain_openai"),
}
"""The package under imitation and its store, which whoever chooses the `installed` backend has; and harnesses that
guests bring with them."""

STATEK_BRINGS: Final = {
    "RestrictedPython",
    "annotated_types",
    "dotenv",
    "httpx",
    "pydantic",
    "pydantic_core",
    "pydantic_settings",
    "typing_extensions",
    "typing_inspection",
}
"""What STATEK's own dependencies install, as far as we import it in the process that has the package."""


def modules() -> list[str]:
    """Return our modules, without those that are for the real STATEK, or that are where an extra is used."""
    apart = (
        "backends.installed",
        "__main__",
        "examples.search",
        "evals.guest_agents",
        "executors.dask_cluster",
        "strategies",
        "guests.",
        "mcp.connection",
        "providers.live",
    )
    paths = sorted(path for package in OURS for path in (ROOT / package).rglob("*.py"))
    names = [path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in paths]
    return [name.removesuffix(".__init__") for name in names if not any(part in name for part in apart)]


def imported() -> set[str]:
    """Return the names of all modules outside the standard library that our packages import."""
    names: set[str] = set()
    for path in (path for package in OURS for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - set(OURS)


def project() -> dict[str, Any]:
    """Return what the project says about itself."""
    said: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return said


def distributions(requirements: Iterable[str]) -> set[str]:
    """Return the names in requirements."""
    return {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in requirements}


def declared() -> set[str]:
    """Return the distributions that an installation of ours brings along."""
    return distributions(project()["dependencies"])


def optional() -> dict[str, set[str]]:
    """Return the distributions of every extra."""
    return {name: distributions(needs) for name, needs in project()["optional-dependencies"].items()}


def test_every_import_is_declared_and_every_declaration_is_imported() -> None:
    homes = packages_distributions()
    needed = {homes[name][0].lower().replace("_", "-") for name in imported() - FOREIGN}
    extras = set().union(*(needs for name, needs in optional().items() if name != "dev"))
    # These come with what we declare, and their names belong to its interface.
    assert needed - {"click", "pydantic-core", "referencing"} - extras == declared()


def test_whoever_develops_has_every_extra() -> None:
    assert {name: needs - optional()["dev"] for name, needs in optional().items() if name != "dev"} == {
        name: set() for name in optional() if name != "dev"
    }


def test_no_extra_is_imported_unless_it_is_used() -> None:
    extras = ("anyio", "distributed", "docker", "hypothesis", "mcp", "mistral_common", "tokenizers")
    said = f"import sys, {', '.join(modules())}; print([name for name in {extras} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def imports_of(path: Path) -> set[str]:
    """Return our own modules that one imports."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    found = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in found if name.startswith("statek_sim.")}


def test_what_runs_beside_the_real_statek_needs_nothing_that_it_does_not_bring() -> None:
    peer = "statek_sim.backends.installed"
    there, ours, left = set(), set(), {f"{peer}.scenario_run"}
    while left:
        there.add(name := left.pop())
        wanted = imports_of(ROOT / (name.replace(".", "/") + ".py")) - {peer}
        ours |= {module for module in wanted if not module.startswith(peer)}
        left |= {module for module in wanted if module.startswith(peer)} - there
    said = (
        f"import sys; before = set(sys.modules); import {', '.join(sorted(ours))}; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("_sysconfigdata")}
    assert loaded - set(sys.stdlib_module_names) <= STATEK_BRINGS | {"statek_sim"}


def test_the_real_statek_is_no_dependency() -> None:
    assert declared().isdisjoint(FOREIGN)
