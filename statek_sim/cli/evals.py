"""`statek-sim evals`: list and check evals, and measure how each part of a harness affects a model's results."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import (
    check_json,
    check_outputs,
    check_replaceable,
    say,
    write_outputs,
    written_as_json,
)
from statek_sim.cli.options import argument, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from statek_sim.agent.budget import Prices
    from statek_sim.evals.baseline import Baseline
    from statek_sim.evals.experiment import Experiment
    from statek_sim.evals.outcome import Outcome
    from statek_sim.evals.scenario import EvalScenario
    from statek_sim.evals.summary import Summary
    from statek_sim.gate.evals_policy import EvalsPolicy


evals = typer.Typer(
    name="evals", help="Run agent evaluations.\n\nExample: statek-sim evals check", no_args_is_help=True
)
app.add_typer(evals)

EvalPaths = Annotated[
    list[Path] | None, argument("PATH", "Eval files or folders. Default: the built-in evals.")
]
EvalOption = Annotated[list[str] | None, option("ID", "Use only this eval; can be repeated.", "--eval")]
SeedsOption = Annotated[int, option("N", "Number of seeds; the first seed is 0.", min=1, max=1000)]


@evals.command("list")
def list_evals(
    paths: EvalPaths = None,
    json_file: options.JsonOption = None,
) -> None:
    """List evals and the capability each one tests.

    The last line counts the evals in each tier and the scripts that must fail.

    Example: statek-sim evals list
    """
    check_json(json_file)
    suite = loaded_evals(paths)
    rows = [_row(scenario) for scenario in suite]
    if written_as_json(json_file, {"schema": "statek-sim/evals-list@1", "evals": rows}):
        return
    width = max(len(scenario.id) for scenario in suite)
    say(
        f"{scenario.tier:<6}  {scenario.id:<{width}}  {scenario.capability:<18}  {scenario.title}"
        for scenario in suite
    )
    tiers = [
        f"{sum(scenario.tier == tier for scenario in suite)} {tier}" for tier in ("easy", "medium", "hard")
    ]
    wrong = sum(len(scenario.wrong) for scenario in suite)
    typer.echo(f"\n{len(suite)} evals ({', '.join(tiers)}), {wrong} incorrect scripts")


def _row(scenario: EvalScenario) -> dict[str, object]:
    from statek_sim.values import record

    return {
        **record(
            scenario, "id", "tier", "capability", "title", "source", "workflow", "max_iterations", "context"
        ),
        "tools": list(scenario.tools),
        "wrong": [script.id for script in scenario.wrong],
    }


@evals.command()
def check(
    paths: EvalPaths = None,
    only: EvalOption = None,
    seeds: SeedsOption = 3,
) -> None:
    """Check that correct scripts pass and incorrect scripts fail.

    Exits 1 if an eval gives the wrong verdict on a script.

    Example: statek-sim evals check my-evals
    """
    from statek_sim.evals.players import failure_line, proofs

    suite = loaded_evals(paths, only)
    failed = played = 0
    for scenario in suite:
        found = list(proofs(scenario, range(seeds)))
        bad = [proof for proof in found if not proof.as_it_should]
        played += len(found)
        failed += bool(bad)
        say([failure_line(scenario, proof) for proof in bad], err=True)
    typer.echo(
        f"{len(suite) - failed} of {len(suite)} evals gave only correct verdicts: {played} runs, {seeds} per script"
    )
    if failed:
        raise typer.Exit(1)


def loaded_evals(paths: Sequence[Path] | None, only: Sequence[str] | None = None) -> tuple[EvalScenario, ...]:
    """Return the evals at or under the paths, or the built-in evals; `only` selects evals by id."""
    from statek_sim.cli.inputs import builtin_scenarios
    from statek_sim.did_you_mean import with_suggestion
    from statek_sim.evals.suite import EVALS, load_suite

    suite = load_suite(paths or [builtin_scenarios() / EVALS])
    ids = [scenario.id for scenario in suite]
    for name in only or ():
        if name not in ids:
            raise BadInput(with_suggestion(f"--eval {name}: unknown eval", name, ids))
    return tuple(scenario for scenario in suite if not only or scenario.id in only)


ModelOption = Annotated[
    str,
    option(
        "PROFILE",
        "A built-in profile (gemma-4-31b-it, lfm2.5-8b-a1b, ministral-3-8b-instruct), or the path to a .toml file.",
    ),
]
AgentOption = Annotated[
    str | None,
    option(
        "MODULE:ATTR",
        "Your own agent: a callable that takes an Assignment and returns the answer. For comparison, the built-in bare "
        "and full harnesses also run, each with this model and with a model that never fails.",
    ),
]
ArmsOption = Annotated[
    list[str] | None,
    option(
        "ARM",
        "Run this arm: full (all parts), bare (no parts), no-PART (all parts but one), parts joined by +, or ablation "
        "(full, bare and every no-PART; the default). Parts: rescue, nudges, steps, context, protection. Can be "
        "repeated.",
    ),
]
RunsOption = Annotated[int, option("N", "Number of seeds; each eval runs once per seed in each arm.")]
PriceOption = Annotated[
    str | None,
    option("IN:OUT", "The prices per million prompt and completion tokens in US dollars, such as 0.15:0.6."),
]
BaselineOption = Annotated[
    Path | None,
    option("FILE", "Exit 1 if an eval passes less often in an arm than in this baseline, or did not run."),
]
PolicyOption = Annotated[
    Path | None, option("FILE", "Exit 1 if the runs violate a rule in this policy (a .toml file).")
]
UpdateOption = Annotated[
    Path | None,
    option(
        "FILE", "Write the results to this baseline file, replacing any existing file.", "--update-baseline"
    ),
]


@evals.command()
def run(
    paths: EvalPaths = None,
    model: ModelOption = "ministral-3-8b-instruct",
    agent: AgentOption = None,
    arms: ArmsOption = None,
    seeds: RunsOption = 10,
    only: EvalOption = None,
    json_file: options.JsonFileOption = None,
    markdown: options.MarkdownFileOption = None,
    html: options.HtmlOption = None,
    junit: options.JunitOption = None,
    price: PriceOption = None,
    baseline: BaselineOption = None,
    update_baseline: UpdateOption = None,
    policy: PolicyOption = None,
    executor: options.ExecutorOption = None,
) -> None:
    """Run evals in several arms of a harness and compare them.

    An arm is the harness with some of its parts enabled. For a given eval and seed, the simulated model makes the same
    random draws in each arm. Exits 1 if a baseline or a policy rule is not met.

    Example: statek-sim evals run --model gemma-4-31b-it --seeds 3
    """
    from statek_sim.evals.baseline import SCHEMA, baseline_text, read_baseline
    from statek_sim.evals.experiment import run_experiment
    from statek_sim.evals.summary import summarised
    from statek_sim.executors.by_name import executor_for
    from statek_sim.reporting.evals import evals_json, evals_markdown
    from statek_sim.reporting.junit import evals_junit
    from statek_sim.reporting.page.data import render
    from statek_sim.reporting.page.evals import evals_page

    files = {"--json": json_file, "--markdown": markdown, "--html": html, "--junit": junit}
    check_outputs(files, {} if baseline is None else {"--baseline": [baseline]})
    check_outputs({**files, "--update-baseline": update_baseline})
    if update_baseline is not None:
        check_replaceable(update_baseline, key="schema", schema=SCHEMA)
    before = None if baseline is None else read_baseline(baseline)
    prices = _prices(price)
    suite = loaded_evals(paths, only)
    experiment = _experiment(suite, model, arms, seeds, agent)
    demanded = None if policy is None else _demanded(policy, experiment)
    # An agent may have objects that cannot be forked, such as clients, threads and event loops.
    with executor_for(executor or (None if agent is None else "serial")) as working:
        outcomes = run_experiment(experiment, working, progress())
    summary = summarised(experiment, outcomes)
    _print(summary, prices)
    write_outputs(
        (json_file, lambda: evals_json(summary)),
        (markdown, lambda: evals_markdown(summary, prices)),
        (html, lambda: render(evals_page(summary, outcomes, prices))),
        (junit, lambda: evals_junit(summary)),
        (update_baseline, lambda: baseline_text(experiment, outcomes)),
    )
    kept = demanded is None or _obeyed(demanded, experiment, outcomes)
    if before is not None:
        kept &= _held(before, experiment, outcomes, name=str(baseline), arms=bool(arms), only=bool(only))
    if not kept:
        raise typer.Exit(1)


def _experiment(
    suite: tuple[EvalScenario, ...], model: str, arms: Sequence[str] | None, seeds: int, agent: str | None
) -> Experiment:
    from statek_sim.evals.arms import beside_agent, parse_arms
    from statek_sim.evals.experiment import Experiment, load_agent
    from statek_sim.evals.profile import load_profile

    profile = load_profile(model)
    if agent is None:
        return Experiment(suite=suite, model=profile, arms=parse_arms(arms or ["ablation"]), seeds=seeds)
    load_agent(agent)
    chosen = beside_agent(agent, parse_arms(arms or ["full", "bare"]))
    return Experiment(suite=suite, model=profile, arms=chosen, seeds=seeds)


def _demanded(path: Path, experiment: Experiment) -> EvalsPolicy:
    from statek_sim.gate.evals_policy import check_evals_policy, read_evals_policy

    policy = read_evals_policy(path)
    check_evals_policy(policy, experiment)
    return policy


def _obeyed(policy: EvalsPolicy, experiment: Experiment, outcomes: Sequence[Outcome]) -> bool:
    """Print the violated rules; return whether all rules were met."""
    from statek_sim.gate.evals_policy import judge_evals

    verdicts = judge_evals(policy, experiment, outcomes)
    passed = sum(verdict.passed for verdict in verdicts)
    say([line for verdict in verdicts for line in verdict.lines])
    say([f"{policy.path}: {passed} of {len(verdicts)} rules met"])
    return passed == len(verdicts)


def _held(
    before: Baseline,
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    *,
    name: str,
    arms: bool,
    only: bool,
) -> bool:
    """Compare the runs with a baseline and print the result."""
    from statek_sim.evals.baseline import held_against

    # Every run of the baseline has to be repeated unless it was excluded: a missing eval is a regression.
    part = before.only(
        arms=[arm.name for arm in experiment.arms] if arms else None,
        evals=[scenario.id for scenario in experiment.suite] if only else None,
    )
    broken = held_against(part, experiment, outcomes, name=name)
    compared = (
        () if part.size == before.size else (f"{name}: compared {part.size} of its {before.size} runs",)
    )
    say([*broken.lines, *compared])
    return not broken.failed


@evals.command()
def schema() -> None:
    """Print the JSON Schema of the `evals run --json` output.

    Example: statek-sim evals schema > evals.schema.json
    """
    from statek_sim.reporting.artifact import json_text, schema_named

    typer.echo(json_text(schema_named("evals")), nl=False)


def progress() -> Callable[[int, int], None]:
    """Return a progress callback; it prints only if standard error is a terminal."""
    if not sys.stderr.isatty():
        return lambda _done, _of: None

    def show(done: int, of: int) -> None:
        text = f"\r{done:,} of {of:,} runs" if done < of else "\r" + " " * 40 + "\r"
        typer.echo(text, nl=False, err=True)

    return show


def _prices(text: str | None) -> Prices | None:
    from statek_sim.agent.budget import Prices

    if text is None:
        return None
    prompt, colon, completion = text.partition(":")
    try:
        found = Prices(prompt=Decimal(prompt), completion=Decimal(completion))
    except InvalidOperation:
        found = None
    amounts = () if found is None else (found.prompt, found.completion)
    if found is None or not colon or not all(amount.is_finite() and amount >= 0 for amount in amounts):
        raise BadInput(
            f"--price {text!r}: expected two amounts in US dollars per million tokens, such as 0.15:0.6"
        )
    return found


def _print(summary: Summary, prices: Prices | None) -> None:
    from statek_sim.reporting.evals import evals_tables, table_lines

    for table in evals_tables(summary, prices):
        say([*table_lines(table), ""])
