"""The distribution as users get it: in an empty environment, and beside the real STATEK."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from email import message_from_bytes
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from statek_sim.reporting.artifact import published
from tests.packaging.environment import ROOT, Environment, output_of
from tests.tables import table_test

pytestmark = pytest.mark.slow


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@cache
def report_of(environment: Environment) -> dict[str, Any]:
    """Return the report of all built-in suites, run there once."""
    file = environment.folder / "report.json"
    environment.run("statek-sim", "run", "--quiet", "--json", file)
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


@table_test(
    "file",
    [
        "pytest_statek/plugin.py",
        "pytest_statek/py.typed",
        "statek_sim/agent/context/models.json",
        "statek_sim/harness/presets/batch.env",
        "statek_sim/usage/vocab/cl100k_base.tokens",
        "statek_sim/usage/vocab/o200k_base.tokens",
        "statek_sim/py.typed",
        "statek_sim/reporting/page/charts.js.xz",
        "statek_sim/reporting/page/page.html.j2",
        "statek_sim/reporting/page/page_schema.json",
        "statek_sim/reporting/page/evals_page_schema.json",
        "statek_sim/reporting/page/view/page.js",
        *(f"statek_sim/reporting/{name}_schema.json" for name in published()),
        "statek_sim/runtime/tools/system_tools_1_4.json",
        "statek_sim/suites_data/statements.yaml",
    ],
)
def test_the_wheel_carries(file: str, wheel: Path) -> None:
    assert file in files_in(wheel)


def test_the_wheel_carries_every_file_of_the_packages_and_suites_and_no_other(wheel: Path) -> None:
    homes = {
        "pytest_statek": "pytest_statek",
        "statek_sim": "statek_sim",
        "scenarios": "statek_sim/suites_data",
    }
    expected = {
        f"{home}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, home in homes.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in files_in(wheel) if ".dist-info/" not in name} == expected


def test_the_wheel_carries_the_licence_and_notices(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
        folder = name.removesuffix("METADATA") + "licenses"
        assert archive.read(f"{folder}/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert archive.read(f"{folder}/NOTICE") == (ROOT / "NOTICE").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_what_is_uploaded_passes_the_checks_of_the_index(wheel: Path) -> None:
    (source,) = wheel.parent.glob("*.tar.gz")
    output_of(sys.executable, "-m", "twine", "check", "--strict", wheel, source, cwd=ROOT)


def test_in_an_empty_environment_the_built_in_suites_pass(empty: Environment) -> None:
    summary = report_of(empty)["summary"]
    assert summary["total"] >= 60
    assert summary["passed"] == summary["total"]


def test_in_an_empty_environment_one_scenario_runs_under_pytest(empty: Environment) -> None:
    one = report_of(empty)["scenarios"][0]
    name = f"{one['suite']}/{one['id']}"
    printed = empty.run("pytest", "--statek-scenarios", "--statek-profile", one["profile"], "-q", "-k", name)
    assert re.search(r"^[1-9]\d* passed(, \d+ deselected)? in ", printed, re.MULTILINE), printed


def test_type_checkers_see_the_types(empty: Environment) -> None:
    empty.run("python", "-c", "import statek_sim, pytest_statek; statek_sim.Runtime")
    empty.add("mypy")
    (empty.folder / "empty" / "uses.py").write_text(
        "from statek_sim.jobs import JobStatus\nreveal_type(JobStatus.DONE)\n", encoding="utf-8"
    )
    printed = empty.run("mypy", "--strict", "uses.py")
    assert "Any" not in printed
    assert "JobStatus.DONE" in printed


def test_it_brings_no_pytest_plugin_but_its_own(empty: Environment) -> None:
    # Each one costs every pytest run of the user: anyio's, which httpx brings, takes 0.3 s.
    asked = (
        "from importlib.metadata import entry_points as e; print([one.name for one in e(group='pytest11')])"
    )
    assert empty.run("python", "-c", asked) == "['statek']\n"


def test_what_it_needs_fits_together(empty: Environment) -> None:
    assert "No broken requirements found." in empty.run("python", "-m", "pip", "check")


def test_beside_the_real_statek_nothing_changes_for_it(beside_statek: Environment) -> None:
    assert "No broken requirements found." in beside_statek.run("python", "-m", "pip", "check")
    versions = "import importlib.metadata as m; print(m.version('statek'), m.version('pydantic'))"
    assert beside_statek.run("python", "-c", versions).split() == ["1.4.2", "2.12.5"]
    beside_statek.run("python", "-c", "import statek, statek_sim; assert statek.tool is not statek_sim.tool")


def test_beside_the_real_statek_the_built_in_suites_give_the_same_traces(
    beside_statek: Environment, empty: Environment
) -> None:
    assert report_of(beside_statek) == report_of(empty)


def test_beside_the_real_statek_one_scenario_runs_under_pytest(beside_statek: Environment) -> None:
    one = report_of(beside_statek)["scenarios"][0]
    printed = beside_statek.run("pytest", "--statek-scenarios", "-q", "-k", f"{one['suite']}/{one['id']}")
    assert re.search(r"^[1-9]\d* passed(, \d+ deselected)? in ", printed, re.MULTILINE), printed


def test_beside_the_real_statek_scenarios_run_on_it_on_two_workers(beside_statek: Environment) -> None:
    printed = beside_statek.run(
        "pytest", "--statek-scenarios", "--statek-backend=installed", "-n", "2", "-k", "warmup"
    )
    assert "statek: scenarios and applications run on the installed statek 1.4.2 (profile 1.4)" in printed
    assert re.search(r"^=+ [1-9]\d* passed in ", printed, re.MULTILINE), printed


def test_beside_the_real_statek_the_example_leaves_the_same_jobs_on_both_backends(
    beside_statek: Environment,
) -> None:
    (beside_statek.folder / "empty" / "dump_jobs.py").write_text(DUMP_JOBS, encoding="utf-8")
    left = {}
    for backend in ("reference", "installed"):
        file = beside_statek.folder / f"{backend}.json"
        printed = beside_statek.run(
            "python", "-m", "pytest", ROOT / "examples" / "support_desk", f"--statek-backend={backend}",
            "-p", "dump_jobs", f"--dump-jobs={file}", "-p", "no:cacheprovider",
            # The installed package has a store of its own.
            f"--ignore={ROOT / 'examples' / 'support_desk' / 'tests' / 'test_durability.py'}",
        )  # fmt: skip
        assert "15 passed" in printed, printed
        left[backend] = json.loads(file.read_text(encoding="utf-8"))
    assert len(left["installed"]) == 15
    assert left["reference"] == left["installed"]


def test_beside_the_real_statek_the_corners_pass_on_it(beside_statek: Environment) -> None:
    project = beside_statek.folder / "corners"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (project / ".env").write_text("MAX_TURNS=2\n", encoding="utf-8")
    shutil.copy(ROOT / "tests" / "applications" / "corners.py", project / "test_corners.py")
    command = ("env", "STATEK_MAX_TURNS=1", beside_statek.folder / "venv" / "bin" / "pytest", "-n", "2")
    printed = output_of(*command, "--statek-backend=installed", cwd=project)
    assert re.search(r"=+ 25 passed", printed), printed


def test_beside_the_real_statek_a_failed_test_shows_what_became_of_its_jobs(
    beside_statek: Environment,
) -> None:
    project = beside_statek.folder / "failing"
    project.mkdir()
    (project / "test_failing.py").write_text(FAILING, encoding="utf-8")
    pytest_there = beside_statek.folder / "venv" / "bin" / "pytest"
    command = ("sh", "-c", f"{pytest_there} --statek-backend=installed || true")
    printed = output_of(*command, cwd=project)
    assert (
        "worker-1 of worker: DONE, 1 requests, 0 exceptions\n"
        "  stop     exit\n"
        "  exit     3\n"
        "  console  hello\n"
    ) in printed


def test_the_stand_ins_have_no_name_that_the_real_packages_lack_there(beside_statek: Environment) -> None:
    assert beside_statek.run("python", "-W", "ignore", "-c", NAMES_THAT_LACK).split() == []


FAILING = """\
from statek.agents import SupervisedAgent

def test_failing(statek_app):
    agent = SupervisedAgent(
        role="worker", _system_prompt=None, _tools=[], _metadata={"MODEL": "openai/gpt-4o"}
    )
    statek_app.script(worker=["print('hello')\\nexit(3)"])
    statek_app.create_job(agent, name="worker-1")
    statek_app.run()
    assert not statek_app.jobs
"""

DUMP_JOBS = """\
import dataclasses
import json

import pytest

LEFT = {}

def pytest_addoption(parser):
    parser.addoption("--dump-jobs")

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    yield
    LEFT[item.name] = [dataclasses.asdict(job) for job in item.funcargs["statek_app"].jobs]

def pytest_sessionfinish(session):
    with open(session.config.getoption("--dump-jobs"), "w") as file:
        json.dump(LEFT, file, default=dict)
"""
"""A plugin that writes down what every test of an application left behind."""

NAMES_THAT_LACK = """\
from importlib import import_module

from statek_sim.shim.covered_names import MODULES

for module, names in MODULES.items():
    real = import_module(module)
    print(*(f"{module}.{name}" for name in names if not hasattr(real, name)))
"""
