"""Summarizes a run's scenarios in a terminal section, and in a report as JSON, Markdown and HTML."""

from __future__ import annotations

import io
import pickle
from collections.abc import Generator
from dataclasses import replace
from typing import Final

import pytest
from rich.console import Console

from pytest_statek.item import told_once
from pytest_statek.plan import Plan
from pytest_statek.tokenizers import tokenizers
from statek_sim.errors import BadInput
from statek_sim.reporting.artifact import json_text, write_artifact
from statek_sim.reporting.model import Report, build_report, report_json
from statek_sim.reporting.page.data import page_data
from statek_sim.reporting.page.data import render as render_page
from statek_sim.reporting.report_text import markdown_report, report_lines
from statek_sim.suite.result import Outcome, ScenarioResult

_ATTACHED: Final = "statek_scenario_result"
"""The test report attribute that carries a result from a pytest-xdist worker to the controller."""


RESULTS: Final = pytest.StashKey[dict[str, ScenarioResult]]()
"""The key in `config.stash` for the results, keyed by id. If an item ran twice, its last result is used."""


def attach(report: pytest.TestReport, result: ScenarioResult) -> None:
    """Attach `result` to a worker's report."""
    vars(report)[_ATTACHED] = pickle.dumps(result)


class ScenarioSummary:
    """Collects results, including those from pytest-xdist workers, and prints and writes the summary."""

    def __init__(self, plan: Plan, results: dict[str, ScenarioResult], config: pytest.Config) -> None:
        self._config = config
        self._plan = plan
        self._results = results
        self._lines: list[str] = []
        self._report: Report | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the result from a worker's report; describe a failure in full only under the first profile."""
        attached: bytes | None = vars(report).pop(_ATTACHED, None)
        if attached is not None:
            result = pickle.loads(attached)
            self._results[result.id] = result
            # The failure of a hook keeps its traceback instead of text.
            if result.outcome is Outcome.FAILED and isinstance(report.longrepr, str):
                report.longrepr = told_once(self._config, result)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Write the report files before the terminal summary, and fail the run if that fails."""
        written = self._sum_up(session.config)
        yield
        if not written:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _sum_up(self, config: pytest.Config) -> bool:
        if not self._results:
            return True
        self._report = build_report(
            list(self._results.values()), preset=self._plan.preset, seed=self._plan.seed
        )
        folder = self._plan.report
        if folder is None:
            return True
        page = page_data(list(self._results.values()), self._report, tokenizers=tokenizers(config))
        files = {
            folder / "report.json": json_text(report_json(self._report)),
            folder / "report.md": markdown_report(self._report),
            folder / "report.html": render_page(page),
        }
        try:
            for path, text in files.items():
                write_artifact(path, text)
        except BadInput as error:
            self._lines.append(f"statek: {error}")
            return False
        self._lines.append(f"wrote {', '.join(map(str, files))}")
        return True

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Print counts by suite and the verdict. pytest has already shown the failures."""
        if self._report is None:
            return
        terminalreporter.section("STATEK scenarios")
        width = config.get_terminal_writer().fullwidth
        console = Console(
            file=io.StringIO(),
            width=width,
            force_terminal=terminalreporter.hasmarkup,
            color_system="standard" if terminalreporter.hasmarkup else None,
            legacy_windows=False,
        )
        for line in report_lines(replace(self._report, failures=()), self._results.values(), width=width):
            with console.capture() as printed:
                console.print(line, soft_wrap=True, highlight=False)
            terminalreporter.write(printed.get())
        for written in self._lines:
            terminalreporter.write_line(written)
