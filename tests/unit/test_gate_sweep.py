"""A sweep: the frontier, what it runs and what not, and the same result over any number of processes."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Generator
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from statek_sim.cli import main
from statek_sim.errors import BadInput
from statek_sim.executors.processes import ProcessExecutor
from statek_sim.executors.serial import SerialExecutor
from statek_sim.gate.gated_preset import gated_preset
from statek_sim.gate.sweep import Cell, Outcome, Setting, Sweep, Tried, frontier, settings, sweep
from statek_sim.gate.sweep_ranges import Axis
from statek_sim.gate.sweep_run import SweepStopped, run_sweep
from statek_sim.gate.watched_harness import WatchedHarness
from statek_sim.gate.workloads import workloads
from statek_sim.harness.harness import LLM_HarnessError
from statek_sim.harness.limits import ExtensionRule, HarnessLimits, LimitName
from statek_sim.reporting.sweep_json import sweep_json, sweep_json_text, sweep_schema
from statek_sim.reporting.sweep_terminal import SweepProgress, short, sweep_lines
from statek_sim.scenario.schema import Scenario
from statek_sim.usage.pricing import PriceList, load_prices

TURNS = Axis(LimitName.MAX_TURNS, (2, 3, 5, 12))
TOKENS = Axis(LimitName.MAX_TOKEN_USAGE, (5_000, 10_000))
FEW = ("short-task", "slow-but-useful", "blind-retry", "same-code-again", "prints-the-whole-ledger")
PRICES = "PROVIDER,MODEL,MODEL_FAMILY,INPUT_PRICE_PER_M,INPUT_PRICE_PER_CACHED_M,OUTPUT_PRICE_PER_M\n"


def few() -> list[Scenario]:
    return [scenario for scenario in workloads(()) if scenario.id in FEW]


def swept(*axes: Axis, workers: int = 1, prices: PriceList | None = None) -> Sweep:
    return run_sweep(
        gated_preset("default"), few(), "docs", axes, executor=ProcessExecutor(workers), prices=prices
    )


def exit_code(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["gate", *words])
    return ended.value.code


def outcome(tokens: int, *, stopped: bool = False, unstopped: bool = False) -> Outcome:
    return Outcome(stopped=stopped, unstopped=unstopped, tokens=tokens, cost=None)


def cell(killed: int, tokens: int) -> Cell:
    names = tuple(f"s/{number}" for number in range(killed))
    return Cell(setting=Setting(1), killed=names, unstopped=(), tokens=tokens, cost=None)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([(0, 9), (1, 5), (2, 1)], (0, 1, 2)),
        ([(0, 9), (1, 9), (2, 9)], (0,)),
        ([(2, 1), (1, 1), (0, 1)], (2,)),
        ([(1, 5), (1, 5), (0, 9), (0, 9)], (2, 0)),
        ([(3, 3)], (0,)),
    ],
)
def test_the_frontier_has_the_cells_that_no_other_beats(
    cells: list[tuple[int, int]], expected: tuple[int, ...]
) -> None:
    assert frontier([cell(*one) for one in cells]) == expected


def test_settings_go_through_the_first_axis_row_by_row_of_the_second() -> None:
    assert settings(Axis(LimitName.MAX_TURNS, (1, 2)), TOKENS) == (
        Setting(1, 5_000),
        Setting(2, 5_000),
        Setting(1, 10_000),
        Setting(2, 10_000),
    )
    assert settings(Axis(LimitName.MAX_TURNS, (1, 2)), None) == (Setting(1), Setting(2))


def test_a_cell_names_what_it_stops_and_what_it_does_not() -> None:
    tried = [
        Tried(name="s/good", runaway=False, outcomes=(outcome(0, stopped=True), outcome(0))),
        Tried(name="s/bad", runaway=True, outcomes=(outcome(5, stopped=True), outcome(90, unstopped=True))),
    ]
    axis = Axis(LimitName.MAX_TURNS, (3, 5))
    found = sweep(tried, HarnessLimits(), axis, None, preset="default", profile="docs")
    assert [(one.killed, one.unstopped, one.tokens) for one in found.cells] == [
        (("s/good",), (), 5),
        ((), ("s/bad",), 90),
    ]
    assert (found.frontier, found.current) == ((1, 0), 1)


def test_a_sweep_shows_what_turns_cost_and_save() -> None:
    found = swept(TURNS, TOKENS)
    assert [len(one.killed) for one in found.cells] == [2, 1, 1, 1, 2, 1, 1, 0]
    assert found.cells[found.frontier[0]].setting == Setting(12, 10_000)
    burnt = [one.tokens for one in found.cells]
    assert burnt[:4] == sorted(burnt[:4])
    assert all(low <= high for low, high in zip(burnt[:4], burnt[4:], strict=True))


def test_the_result_is_the_same_over_any_number_of_processes() -> None:
    alone = sweep_json_text(swept(TURNS, TOKENS))
    assert sweep_json_text(swept(TURNS, TOKENS, workers=2)) == alone
    assert sweep_json_text(swept(TURNS, TOKENS, workers=5)) == alone


def test_money_is_counted_where_prices_are_known(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PRICES + "OPENROUTER,gpt-4o,,2.5,1.25,10\n", encoding="utf-8")
    found = swept(TURNS, prices=load_prices(tmp_path))
    costs = [one.cost for one in found.cells if one.cost is not None]
    assert len(costs) == len(TURNS.values)
    assert Decimal() < costs[0] < costs[-1]


def test_a_sweep_needs_healthy_scenarios_and_runaways() -> None:
    only = [scenario for scenario in few() if "healthy" in scenario.tags]
    with pytest.raises(
        BadInput, match=r"^--sweep: none of 2 scenarios has the tag 'runaway' under profile docs; .*$"
    ):
        run_sweep(gated_preset("default"), only, "docs", [TURNS], executor=SerialExecutor())


class Job:
    """A job as the harness sees it."""

    num_turns = exception_count = max_consecutive_exceptions = approx_token_usage = 0
    difficulty_token_extension = 0
    num_completions: int | None = None


def test_a_stop_that_others_saw_is_the_same_only_with_the_same_message() -> None:
    harness, job = WatchedHarness(HarnessLimits(max_turns=3), ExtensionRule.ADDITIVE), Job()
    job.num_turns = 4
    with pytest.raises(LLM_HarnessError, match=r"^Maximum number of turns exceeded: 4/3$"):
        harness.check_before_step(job)
    assert harness.checks().same_run(HarnessLimits(max_turns=2), message_matters=False)
    assert not harness.checks().same_run(HarnessLimits(max_turns=2))
    harness.check_before_step(Job())
    assert not harness.checks().same_run(HarnessLimits(max_turns=2), message_matters=False)
    assert harness.checks().same_run(HarnessLimits(max_turns=3))


def test_a_run_whose_tools_read_limits_is_never_the_same() -> None:
    harness = WatchedHarness(HarnessLimits(), ExtensionRule.ADDITIVE)
    assert harness.checks().same_run(HarnessLimits())
    assert harness.max_turns == 5
    assert not harness.checks().same_run(HarnessLimits())


def test_the_json_is_what_its_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(sweep_schema())
    for found in (swept(TURNS), swept(TURNS, TOKENS)):
        jsonschema.validate(sweep_json(found), sweep_schema())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_maps_fit_the_terminal_and_mark_the_frontier(width: int) -> None:
    found = swept(TURNS, TOKENS)
    lines = [line.plain for line in sweep_lines(found, width=width)]
    assert max(map(len, lines)) <= width
    assert sum(line.count("*") for line in lines if "better" not in line) == 2 * len(found.frontier)
    assert "Healthy scenarios stopped" in lines


def test_numbers_in_maps_are_short() -> None:
    values = (0, 999, 1_000, 1_499, 59_500, 999_499, 999_500, 12_300_000)
    assert list(map(short, values)) == ["0", "999", "1k", "1k", "60k", "999k", "1.0M", "12.3M"]


def test_gate_sweep_prints_maps_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "batch",
        "--sweep",
        "max_turns=5",
        "max_token_usage=10k",
        "--workers",
        "1",
        "--json",
        str(tmp_path / "s"),
    ]
    assert exit_code(*words) == 0
    assert "Sweep of batch [docs] over max_turns and max_token_usage" in capsys.readouterr().out
    assert '"schema": "statek-sim/sweep@1"' in (tmp_path / "s").read_text(encoding="utf-8")


def test_hash_seeds_and_processes_change_no_byte(tmp_path: Path) -> None:
    written = []
    for seed, workers in (("1", "1"), ("2", "2")):
        file = tmp_path / seed
        words = ["--sweep", "max_turns=3,6", "max_token_usage=8k", "--workers", workers, "--json", str(file)]
        command = [sys.executable, "-m", "statek_sim.cli", "gate", "batch", *words]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "80"}
        ran = subprocess.run(
            command, env=environment, capture_output=True, check=True, timeout=300, cwd=tmp_path
        )
        written.append((file.read_bytes(), ran.stdout))
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["--sweep", "max_turns=x"],
            "--sweep 'max_turns=x': 'x' is no number; expected one like 8, 5k or 1M",
        ),
        (["batch", "local", "--sweep", "max_turns=3"], "--sweep: expected one preset, got batch, local; "),
        (["--sweep", "max_turns=3", "--github"], "--github: a sweep gives no verdicts to write; "),
        ([], "expected a preset: default, local, interactive, batch, or a .env file"),
    ],
)
def test_gate_sweep_refuses_what_makes_no_sense(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*words) == 2
    assert problem in capsys.readouterr().err


class Interrupted(SerialExecutor):
    """Does some pieces of work, and then somebody presses Ctrl-C."""

    def __init__(self, after: int) -> None:
        self._after = after

    def map(self, function: Any, tasks: Any, **_: Any) -> Generator[Any, None, None]:
        for number, arguments in enumerate(tasks):
            if number == self._after:
                raise KeyboardInterrupt
            yield function(*arguments)


def test_a_sweep_that_is_stopped_is_one_of_what_was_tried() -> None:
    heard: list[tuple[int, int]] = []
    stopped = run_sweep(
        gated_preset("default"),
        few(),
        "docs",
        [TURNS],
        executor=Interrupted(4),
        progressed=lambda *told: heard.append(told),
    )
    assert heard == [(1, 5), (2, 5), (3, 5), (4, 5)]
    assert (stopped.runaways, stopped.healthy, stopped.left) == (3, 1, 1)
    assert str(next(sweep_lines(stopped, width=80))).startswith(
        "stopped: 1 scenario not tried under every setting; the others follow"
    )
    assert swept(TURNS).left == 0


def test_a_sweep_that_is_stopped_at_once_has_nothing_to_weigh() -> None:
    with pytest.raises(
        SweepStopped, match=r"^stopped: 2 of 5 scenarios were tried under every setting, which is"
    ):
        run_sweep(gated_preset("default"), few(), "docs", [TURNS], executor=Interrupted(2))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_how_much_of_a_sweep_is_done_and_has_nothing_of_it_afterwards(
    *, terminal: bool
) -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=terminal, legacy_windows=False, _environ={})
    shown = SweepProgress(console)
    run_sweep(
        gated_preset("default"), few(), "docs", [TURNS], executor=SerialExecutor(), progressed=shown.update
    )
    shown.close()
    shown.close()
    shown.update(5, 5)
    written = file.getvalue()
    assert ("5/5" in written) is terminal
    # The line is erased, and the cursor is there again.
    assert written.endswith("\x1b[2K") is terminal
    assert written.count("\x1b[?25h") == written.count("\x1b[?25l") == terminal


def test_ctrl_c_takes_the_progress_of_a_sweep_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("statek_sim.executors.choose.executor_for", lambda *_, **__: Interrupted(1))
    assert exit_code("--sweep", "max_turns=2..3") == 130
    told = capsys.readouterr()
    assert re.search(r" 1/\d+ ", re.sub(r"\x1b\[[0-9;]*m", "", told.err))
    assert told.err.endswith("\x1b[2K")
    assert "1/" not in told.out.partition("stopped")[0]


def test_ctrl_c_in_a_sweep_writes_no_file_and_exits_as_a_shell_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statek_sim.executors.choose.executor_for", lambda *_, **__: Interrupted(1))
    file = tmp_path / "sweep.json"
    assert exit_code("--sweep", "max_turns=2..3", "--json", str(file)) == 130
    assert capsys.readouterr().out.startswith("stopped: 1 of ")
    assert not file.exists()
