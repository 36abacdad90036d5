"""What `statek-sim run` writes: JSON, Markdown, and a page with further sections on request."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statek_sim.cli.inputs import check_outputs, check_writable
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.analysis.corpus_model import CorpusTable
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.result import Exploration
    from statek_sim.gate.verdict import GateResult
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.result import ScenarioResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """What a page shows beside the runs."""

    gate: GateResult | None = None
    crashes: Exploration | None = None
    corpus: CorpusTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSections:
    """Which sections a page is to have; `policy` and `workload` belong to `gate`."""

    gate: Sequence[str]
    policy: Path | None
    workload: Sequence[str]
    crashes: bool
    corpus: bool

    def check(self, *, page: bool) -> None:
        """Refuse options that have no effect."""
        sections = {"--gate": self.gate, "--explore": self.crashes, "--corpus": self.corpus}
        for option, wanted in sections.items():
            if wanted and not page:
                raise BadInput(f"{option}: adds a section to the page; name its file with --html FILE")
        for option, value in {"--policy": self.policy, "--workload": self.workload}.items():
            if value and not self.gate:
                raise BadInput(f"{option}: it is about the gate; name a preset with --gate")

    def made(
        self,
        pairs: Sequence[tuple[Scenario, Profile]],
        profiles: Sequence[str] | None,
        watchdog: WatchdogLimits | None,
    ) -> Sections:
        """Return the wanted sections."""
        return Sections(
            gate=self._judged(profiles, watchdog) if self.gate else None,
            crashes=_crashes(pairs, profiles) if self.crashes else None,
            corpus=_corpus() if self.corpus else None,
        )

    def _judged(self, profiles: Sequence[str] | None, watchdog: WatchdogLimits | None) -> GateResult:
        """Judge the presets as `gate` does."""
        from statek_sim.gate.gate import gate_plan, has_shipped, judge_presets, workloads
        from statek_sim.suite.run import profile_known

        profile = profile_known(profiles[0] if profiles else "docs")
        shipped = has_shipped(self.workload)
        plan = gate_plan(self.gate, policy=self.policy, folder=Path.cwd(), on_shipped=shipped)
        return judge_presets(plan, workloads(self.workload), profile=profile, watchdog=watchdog)


def _crashes(pairs: Sequence[tuple[Scenario, Profile]], profiles: Sequence[str] | None) -> Exploration:
    """Kill the worker at every place of each scenario, under its first profile where none was asked for."""
    from statek_sim.executors.executor import executor_for
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.explorer import Bounds
    from statek_sim.explore.result import Exploration
    from statek_sim.explore.workers import explore_all

    first: dict[str, tuple[Scenario, Profile]] = {}
    for scenario, profile in pairs:
        first.setdefault(f"{scenario.id} {profile if profiles else ''}", (scenario, profile))
    bounds = Bounds(kinds=("crashes",), transcripts=True)
    limits = WatchdogLimits(cpu=600, wall=1200)
    with executor_for(None) as executor:
        found = explore_all([*first.values()], bounds=bounds, limits=limits, executor=executor)
        return Exploration(tuple(found))


def _corpus() -> CorpusTable:
    """Run the same dialogue in all languages and kinds of text."""
    from statek_sim.analysis.corpus_model import corpus_scenarios, corpus_table
    from statek_sim.analysis.run_usage import analyse
    from statek_sim.suite.run import run_one

    return corpus_table(analyse(run_one(scenario, "docs") for scenario in corpus_scenarios()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where the reports go that were asked for."""

    json_file: Path | None
    html: Path | None
    folder: Path | None

    @property
    def pages(self) -> list[Path]:
        """The pages."""
        return [path for path in (self.html, self.folder and self.folder / "report.html") if path is not None]

    def check(self) -> None:
        """Refuse what could not be written after everything has run."""
        check_writable(json_file=None, folder=self.folder)
        check_outputs({"--json": self.json_file, "--html": self.html, **self._in_folder()})

    def _in_folder(self) -> dict[str, Path | None]:
        if self.folder is None:
            return {}
        return {"--report": self.folder / "report.json", "--report (page)": self.folder / "report.html"}

    def write(self, results: Sequence[ScenarioResult], report: Report, sections: Sections) -> None:
        """Write them."""
        folder = self.folder
        files = [path for path in (self.json_file, folder and folder / "report.json") if path is not None]
        if files:
            from statek_sim.reporting.json import write_json

            for path in files:
                write_json(report, path)
        if folder is not None:
            from statek_sim.reporting.markdown import write_markdown

            write_markdown(report, folder / "report.md")
        if self.pages:
            self._write_pages(results, report, sections)

    def _write_pages(self, results: Sequence[ScenarioResult], report: Report, sections: Sections) -> None:
        from statek_sim.reporting.gate import gate_json
        from statek_sim.reporting.page.data import crashes_json, page_data
        from statek_sim.reporting.page.template import write_page

        page = page_data(
            results,
            report,
            corpus=sections.corpus,
            gate=None if sections.gate is None else gate_json(sections.gate),
            crashes=None if sections.crashes is None else crashes_json(sections.crashes),
        )
        for path in self.pages:
            write_page(page, path)
