"""The reports of `statek-sim run`: JSON, Markdown, and a page with optional sections."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statek_sim.cli.inputs import check_outputs, write_outputs
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.result import Exploration
    from statek_sim.gate.verdict import GateResult
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.result import ScenarioResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The optional sections of a page."""

    gate: GateResult | None = None
    crashes: Exploration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSections:
    """The sections that the command line requests; `policy` belongs to `gate`."""

    gate: Sequence[str]
    policy: Path | None
    crashes: bool

    def check(self, *, page: bool) -> None:
        """Refuse options that have no effect."""
        if self.crashes and not page:
            raise BadInput("--explore requires --html FILE")
        if self.policy is not None and not self.gate:
            raise BadInput("--policy requires --gate PRESET")

    def made(
        self,
        paths: Sequence[Path],
        pairs: Sequence[tuple[Scenario, Profile]],
        profiles: Sequence[str] | None,
        watchdog: WatchdogLimits | None,
    ) -> Sections:
        """Return the requested sections; the gate judges `paths`, or the shipped workloads without any."""
        return Sections(
            gate=self._judged(list(map(str, paths)), profiles, watchdog) if self.gate else None,
            crashes=_crashes(pairs, profiles) if self.crashes else None,
        )

    def _judged(
        self, paths: Sequence[str], profiles: Sequence[str] | None, watchdog: WatchdogLimits | None
    ) -> GateResult:
        """Judge the presets as `gate` does."""
        from statek_sim.gate.gate import gate_plan, has_shipped, judge_presets, workloads
        from statek_sim.suite.run import profile_known

        profile = profile_known(profiles[0] if profiles else "docs")
        plan = gate_plan(self.gate, policy=self.policy, folder=Path.cwd(), on_shipped=has_shipped(paths))
        return judge_presets(plan, workloads(paths), profile=profile, watchdog=watchdog)


def _crashes(pairs: Sequence[tuple[Scenario, Profile]], profiles: Sequence[str] | None) -> Exploration:
    """Crash at each event of each scenario, under its first profile unless profiles are given."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The paths of the requested reports."""

    json_file: Path | None
    html: Path | None
    folder: Path | None

    @property
    def pages(self) -> list[Path]:
        """The pages."""
        return [path for path in (self.html, self.folder and self.folder / "report.html") if path is not None]

    def check(self) -> None:
        """Refuse, before anything runs, paths that cannot be written."""
        folder = self.folder
        if folder is not None and folder.exists() and not folder.is_dir():
            raise BadInput(f"--report {folder}: expected a folder, found a file")
        names = () if folder is None else ("report.json", "report.md", "report.html")
        inside = {f"--report ({name})": folder and folder / name for name in names}
        check_outputs({"--json": self.json_file, "--html": self.html, **inside})

    def write(self, results: Sequence[ScenarioResult], report: Report, sections: Sections) -> None:
        """Write them."""
        if self.json_file is None and self.html is None and self.folder is None:
            return
        from statek_sim.reporting.json import report_json_text
        from statek_sim.reporting.markdown import render

        folder = self.folder
        page = _page(results, report, sections) if self.pages else ""
        write_outputs(
            (self.json_file, lambda: report_json_text(report)),
            (folder and folder / "report.json", lambda: report_json_text(report)),
            (folder and folder / "report.md", lambda: render(report)),
            *((path, lambda: page) for path in self.pages),
        )


def _page(results: Sequence[ScenarioResult], report: Report, sections: Sections) -> str:
    from statek_sim.reporting.gate import gate_json
    from statek_sim.reporting.page.data import crashes_json, page_data
    from statek_sim.reporting.page.template import render

    page = page_data(
        results,
        report,
        gate=None if sections.gate is None else gate_json(sections.gate),
        crashes=None if sections.crashes is None else crashes_json(sections.crashes),
    )
    return render(page)
