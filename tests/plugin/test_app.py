"""`statek_app` and `--statek-backend=reference`: an application's own code on the reference runtime."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from statek_sim.shim.covered_names import MODULES
from tests.tables import table_test

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "your-own-app.md").read_text(encoding="utf-8")

APPLICATION = """\
import dbzero as db0
from statek import error_handler, get_current_job, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

@db0.memo(singleton=True)
class Shop:
    def __init__(self):
        self.sold = []

@tool
def sell(what: str, **kwargs):
    Shop().sold.append(what)
    return f"{what} sold"

def create_clerk():
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You sell."),
        _tools=[sell],
        _metadata={"MODEL": "openai/gpt-4o"},
    )
"""

TEST = """\
import json
from dataclasses import asdict

import pytest
from shop import Shop, create_clerk
from statek_sim.errors import BadInput

def test_something_is_sold(statek_app):
    statek_app.script(clerk=["print(sell('tea'))\\nexit('done')"])
    job = statek_app.create_job(create_clerk(), name="sale")
    assert statek_app.run().settled
    assert list(Shop().sold) == ["tea"]
    assert statek_app.job("sale") == statek_app.job(job) == statek_app.job_of("clerk") == statek_app.jobs[0]
    assert statek_app.job(job).console[0] == "tea sold"
    assert not statek_app.job(job).tool_calls("print_locals")
    assert [use["name"] for use in json.loads(json.dumps(asdict(statek_app.job(job))["tools"]))] == ["sell"]
    with pytest.raises(BadInput, match="Did you mean 'sell'"):
        statek_app.job(job).tool_calls("sel")

def test_the_next_test_finds_an_empty_store(statek_app):
    assert list(Shop().sold) == []
    assert statek_app.jobs == ()
    assert statek_app.now == 0.0
"""

REFERENCE = "--statek-backend=reference"
HEADER = "statek: `import statek` and `import dbzero` find the reference runtime, not the real packages"

without_statek = pytest.mark.skipif(
    any(one.name == "statek" for one in distributions()), reason="statek is installed here"
)


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a small application and its tests."""
    pytester.makeini("[pytest]\npythonpath = .\n")
    pytester.makepyfile(shop=APPLICATION, test_shop=TEST)
    return pytester


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_an_application_runs_unchanged_and_the_header_says_on_what(
    shop: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = shop.runpytest(REFERENCE, *workers)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([HEADER])


def test_a_conftest_may_import_the_application_already(shop: pytest.Pytester) -> None:
    shop.makeconftest("import shop, statek\n")
    shop.runpytest(REFERENCE).assert_outcomes(passed=2)


def test_the_configuration_file_may_ask_for_it(shop: pytest.Pytester) -> None:
    shop.makeini("[pytest]\npythonpath = .\nstatek_backend = reference\n")
    result = shop.runpytest()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([HEADER])


@without_statek
def test_without_statek_an_application_runs_on_the_reference_runtime_and_the_run_says_so(
    shop: pytest.Pytester,
) -> None:
    result = shop.runpytest()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["statek: statek_app runs on the reference runtime: statek is not installed"])


@without_statek
def test_the_installed_package_is_used_when_it_was_asked_for_and_its_lack_is_said(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("def test_one(statek_app): pass")
    result = pytester.runpytest("--statek-backend=installed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*statek is not installed for {sys.executable}; install it with: *"])


@without_statek
def test_a_run_without_applications_says_nothing_and_has_nothing_of_ours_in_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        "import sys\n\ndef test_one(): assert not [name for name in sys.modules if name.startswith('statek')]"
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("statek: *")


@without_statek
def test_where_only_dbzero_is_there_nothing_stands_in_for_statek(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        dbzero="",
        test_one="import importlib.util\n\ndef test_one(): assert importlib.util.find_spec('statek') is None",
    )
    pytester.makeini("[pytest]\npythonpath = .\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_after_the_run_the_real_import_is_back(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_inside="import statek\nfrom statek.agents import Agent\n\n"
        "def test_inside(): assert statek.__spec__.origin == 'the reference runtime of pytest-statek'"
    )
    pytester.makeconftest(
        "import atexit, sys\n"
        "def after():\n"
        "    try:\n"
        "        import statek\n"
        "        left = getattr(statek, '__file__', 'a stand-in')\n"
        "    except ImportError as error:\n"
        "        left = str(error)\n"
        "    open('after.txt', 'w').write(left)\n"
        "atexit.register(after)\n"
    )
    pytester.runpytest_subprocess(REFERENCE).assert_outcomes(passed=1)
    left = (pytester.path / "after.txt").read_text("utf-8")
    assert left == "No module named 'statek'" or left.endswith("__init__.py")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "from statek import add_provider",
            "statek.add_provider: the reference runtime does not support it; run these tests on the real package: "
            "pip install 'statek[[]dbzero]' and pytest --statek-backend=installed",
        ),
        (
            "import statek.provider_config",
            "statek.provider_config: the reference runtime does not support it; run *",
        ),
        ("from dbzero import locked", "dbzero.locked: the reference runtime does not support it; run *"),
        (
            "import dbzero as db0; db0.snapshot",
            "dbzero.snapshot: the reference runtime does not support it; run *",
        ),
        (
            "from statek import temporal",
            "cannot import 'temporal' from 'statek': in STATEK, it is in statek.future",
        ),
    ],
)
def test_a_name_that_is_not_covered_is_an_import_error_that_names_it(
    pytester: pytest.Pytester, line: str, message: str
) -> None:
    pytester.makepyfile(line)
    result = pytester.runpytest(REFERENCE)
    result.stdout.fnmatch_lines([f"E   *{message}"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_an_installed_statek_is_not_shadowed_silently(
    shop: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("statek", "dbzero"):
        info = shop.path / "site" / f"{name}-9.9.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    monkeypatch.setenv("PYTHONPATH", str(shop.path / "site"))
    result = shop.runpytest_subprocess(REFERENCE)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [f"{HEADER}; the installed statek 9.9 and dbzero 9.9 SHADOWED until the run ends"]
    )


def test_a_statek_that_was_imported_too_early_is_an_error(
    shop: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = shop.mkdir("site")
    (site / "statek.py").write_text("")
    (site / "eager.py").write_text("import statek\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    result = shop.runpytest_subprocess(REFERENCE, "-p", "eager")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: statek: {REFERENCE}: statek was imported from {site}/statek.py before it could be "
            f"replaced; disable the pytest plugin that imports it (`-p no:NAME`), or choose the installed backend"
        ]
    )


def test_the_test_of_an_application_fails_like_any_other(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        test_shop="from shop import create_clerk\n"
        "def test_left(statek_app):\n"
        "    statek_app.script(clerk=['exit(1)', 'exit(2)'])\n"
        "    statek_app.create_job(create_clerk())\n"
        "    statek_app.run()\n"
        "def test_unknown(statek_app):\n"
        "    statek_app.job('nobody')\n"
        "def test_none(statek_app):\n"
        "    statek_app.job_of('clerk')\n"
    )
    result = shop.runpytest(REFERENCE)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "  reply 2 of 'clerk': code 'exit(2)'",
            "*STATEK conversation*",
            "E *BadInput: there is no job 'nobody'; jobs: none",
            "E *BadInput: there are 0 jobs of agent 'clerk', expected one; jobs: none",
        ]
    )


def test_the_example_passes_on_the_reference_runtime() -> None:
    command = f"pytest examples/support_desk {REFERENCE}"
    assert f"$ {command}\n" in GUIDE
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "examples/support_desk",
            REFERENCE,
            "-p",
            "no:cacheprovider",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "18 passed" in done.stdout, done.stdout + done.stderr
    assert HEADER in done.stdout


def test_the_corners_pass_on_the_reference_runtime(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    corners = (ROOT / "tests" / "applications" / "corners.py").read_text(encoding="utf-8")
    pytester.makepyfile(test_corners=corners)
    (pytester.path / ".env").write_text("MAX_TURNS=2\n")
    monkeypatch.setenv("STATEK_MAX_TURNS", "1")
    pytester.runpytest_subprocess(REFERENCE).assert_outcomes(passed=25)


def test_the_guide_shows_a_test_of_the_example_and_messages_as_they_are(pytester: pytest.Pytester) -> None:
    shown = GUIDE.partition("```python\n")[2].partition("```")[0]
    assert shown in (ROOT / "examples/support_desk/tests/test_claims.py").read_text(encoding="utf-8")
    pytester.makepyfile("from statek import add_provider")
    printed = pytester.runpytest(REFERENCE).stdout.str()
    (message,) = [line for line in GUIDE.splitlines() if line.startswith("ImportError: ")]
    assert f"E   statek_sim.shim.covered_names.NotCovered: {message.removeprefix('ImportError: ')}" in printed


@table_test("module", [module for module in MODULES if module != "statek.executors"])
def test_the_guide_names_every_module_that_is_covered(module: str) -> None:
    short = module if module in ("statek", "statek.agents", "dbzero") else module.removeprefix("statek")
    assert f"`{short}`" in GUIDE
