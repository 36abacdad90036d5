"""Builds an experiment's HTML page: arms with intervals, each scenario in each arm, mistakes, and transcripts.

A cell is a scenario in an arm. To get transcripts, each cell's first failed and first passed runs are run again, with
the same results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from statek_sim.agent.budget import Prices
from statek_sim.evals.experiment import play_one
from statek_sim.evals.model_simulator import TOKENIZER_OF
from statek_sim.evals.outcome import MEANINGS, Count, FailureClass, Outcome
from statek_sim.evals.profile import Profile
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.summary import ArmSummary, Comparison, Summary
from statek_sim.reporting.evals import answer_words, rates_json
from statek_sim.reporting.page.data import PageData, embedded
from statek_sim.reporting.page.details import transcript_json
from statek_sim.reporting.text_format import Excerpts
from statek_sim.values import JSON, record

ROOM: Final = 6_000_000
"""The maximum number of transcript characters on a page. Beyond it, transcripts are omitted, for cells without failures
first.
"""
_OF_A_RUN: Final = 30_000


def evals_page(
    summary: Summary, outcomes: Sequence[Outcome], prices: Prices | None = None, *, room: int = ROOM
) -> PageData:
    """Return an experiment's page; equal experiments give equal pages."""
    cells = _cells(summary, outcomes)
    details = dict(sorted(_details(summary, cells, room)))
    index = evals_index(summary, cells, outcomes, prices, shown=frozenset(details))
    return PageData(
        title=str(index["title"]),
        index=embedded(index),
        details=details,
        name="STATEK evals",
        view="view/evals.js",
    )


def _cells(summary: Summary, outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Return each cell's runs, ordered by scenario and arm."""
    found: dict[tuple[str, str], list[Outcome]] = {
        (scenario.id, arm.arm.name): [] for scenario in summary.experiment.suite for arm in summary.arms
    }
    for outcome in outcomes:
        found[outcome.scenario, outcome.arm].append(outcome)
    return list(found.values())


def evals_index(
    summary: Summary,
    cells: Sequence[Sequence[Outcome]],
    outcomes: Sequence[Outcome],
    prices: Prices | None,
    *,
    shown: frozenset[int],
) -> dict[str, JSON]:
    """Return the data that the page shows before a cell is opened.

    `runs` has an entry per cell, like scenario pages have an entry per run.
    """
    experiment = summary.experiment
    return {
        "title": f"{experiment.model.name}: {len(outcomes):,} runs of {len(experiment.suite)} evals",
        "model": _model(experiment.model),
        "seeds": experiment.seeds,
        "rates": [*rates_json(experiment.model)],
        "arms": [_arm(arm, prices) for arm in summary.arms],
        "tests": [_test(comparison) for comparison in summary.comparisons],
        "scenarios": [record(scenario, "id", "tier", "capability", "title") for scenario in experiment.suite],
        "runs": [
            {
                "n": n,
                "name": f"{runs[0].scenario}[{runs[0].arm}]",
                **record(runs[0], "scenario", "arm"),
                "runs": len(runs),
                "completed": sum(run.completed for run in runs),
                "passed": sum(run.passed for run in runs),
            }
            for n, runs in enumerate(cells)
        ],
        "left_out": len(cells) - len(shown),
        "meanings": {failure.value: MEANINGS[failure] for failure in FailureClass},
    }


def _model(model: Profile) -> dict[str, JSON]:
    # Requests in transcripts have this model's name, although the simulated model answered them.
    title = f"{model.title}; its requests name {TOKENIZER_OF}, whose tokenizer counts tokens"
    return {"name": model.name, "title": title, "asks": TOKENIZER_OF}


def _arm(arm: ArmSummary, prices: Prices | None) -> dict[str, JSON]:
    tokens = arm.tokens
    return {
        "name": arm.arm.name,
        "parts": [*arm.arm.listed],
        **record(arm, "runs", "completion", "score", "interval", "calls", "wasted"),
        "requests": arm.model_calls,
        "tokens": {name: count.total / arm.runs for name, count in tokens._asdict().items()},
        "cost": None if prices is None else _cost(tokens.measured, arm.runs, prices),
        "powers": {str(k): power for k, power in arm.powers.items() if power is not None and k > 1},
        "flow": [
            {
                "class": row.failure,
                **record(row, "turns", "runs"),
                "rescued": sum(count for _, count in row.rescued),
                "nudged": sum(count for _, count in row.nudged),
                "right": row.passed,
            }
            for row in arm.flow
        ],
    }


def _cost(count: Count, runs: int, prices: Prices) -> float:
    return float(prices.cost(count.prompt, count.completion) * 1000 / Decimal(runs))


def _test(comparison: Comparison) -> dict[str, JSON]:
    return {
        "arms": [comparison.first, comparison.second],
        "difference": comparison.seen.difference,
        "interval": [*comparison.interval],
        "only": [comparison.seen.first, comparison.seen.second],
        "p": comparison.adjusted,
        "answer": comparison.answer,
        "says": answer_words(comparison),
    }


# -- details ---------------------------------------------------------------------------------------------------


def _details(summary: Summary, cells: Sequence[Sequence[Outcome]], room: int) -> Iterator[tuple[int, str]]:
    """Yield the number and details of each cell that fits, cells with failures first."""
    scenarios = {scenario.id: scenario for scenario in summary.experiment.suite}
    for n in sorted(range(len(cells)), key=lambda n: (all(run.passed for run in cells[n]), n)):
        text = embedded(_cell(summary, scenarios[cells[n][0].scenario], cells[n]))
        room -= len(text)
        if room < 0:
            return
        yield n, text


def _cell(summary: Summary, scenario: EvalScenario, runs: Sequence[Outcome]) -> dict[str, JSON]:
    chosen = [next((run for run in runs if run.passed == passed), None) for passed in (False, True)]
    return {
        "seeds": [
            {**record(run, "seed", "passed", "completed", "stop", "problems"), "turns": run.model_calls}
            for run in runs
        ],
        # A user's own agent is not run again, because it may behave differently.
        "transcripts": [
            _transcript(summary, scenario, run) for run in chosen if run is not None and run.seconds is None
        ],
    }


def _transcript(summary: Summary, scenario: EvalScenario, outcome: Outcome) -> dict[str, JSON]:
    arm = next(arm.arm for arm in summary.arms if arm.arm.name == outcome.arm)
    again = play_one(scenario, outcome.seed, arm, summary.experiment.model)
    return {
        **record(outcome, "seed", "passed", "answer"),
        "task": scenario.instance(outcome.seed).task,
        "turns": [
            {"turn": turn.number, **record(turn, "failure", "how", "corrected", "heeded", "stage", "nudged")}
            for turn in outcome.turns
        ],
        "entries": [*transcript_json(again.events, Excerpts(_OF_A_RUN))],
    }
