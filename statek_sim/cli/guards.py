"""`statek-sim guards`: what guards are worth, and what they say of texts."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for JSON Schema

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statek_sim.cli.app import JsonFileOption, app
from statek_sim.cli.inputs import check_outputs, show, write_outputs
from statek_sim.errors import BadInput
from statek_sim.input_files import Unreadable, text_of, why_unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statek_sim.agent.guards.efficacy import Corpus, Efficacy
    from statek_sim.agent.guards.guard import Guard
    from statek_sim.agent.guards.pipeline import GuardSet

CorpusArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help='Corpora: lines {"id", "text", "bad"}, which --guard is for. None: those that are shipped.',
    ),
]
GuardOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this guard: personal-data, secrets or injection.")
]
CheckOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help='Print a verdict for each line {"id", "text", "point"} instead of measuring.'
    ),
]
VariantsOption = Annotated[bool, typer.Option("--variants", help="Show what disguises do to the recall.")]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="With --check: the guards of this TOML file instead of the shipped ones.",
    ),
]
TierOption = Annotated[
    str, typer.Option(metavar="TIER", help="With --file: the user's tier; none: guards of all tiers.")
]
EnvironmentOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="With --file: where the application runs; none: guards of everywhere."),
]
WhatIfOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH",
        help="Say how the runs of these scenarios would have ended if warnings of guards had been blocks.",
    ),
]
CassettesOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="With --what-if: runs whose model was recorded here.")
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Fail when a guard got worse than in this --json file."),
]


@app.command()
def guards(
    corpus: CorpusArgument = None,
    guard: GuardOption = None,
    check: CheckOption = None,
    variants: VariantsOption = False,
    file: FileOption = None,
    tier: TierOption = "",
    environment: EnvironmentOption = "",
    what_if: WhatIfOption = None,
    cassettes: CassettesOption = None,
    report: JsonFileOption = None,
    baseline: BaselineOption = None,
) -> None:
    """Measure guards on attacks and on harmless texts.

    Exits 1 when a guard got worse than the baseline, 2 when a file is wrong.

    Example: statek-sim guards --guard injection
    """
    from statek_sim.reporting.guards import guard_lines, guards_json

    check_outputs({"--json": report})
    if what_if:
        _show_what_if(what_if, cassettes, report)
        return
    if cassettes is not None:
        raise BadInput("--cassettes goes with --what-if PATH, the scenarios that were recorded")
    if file is not None and (check is None or guard is not None):
        raise BadInput("--file goes with --check, and without --guard")
    if check is not None:
        for line in _verdicts(check, _guard_set(guard, file, environment), tier):
            typer.echo(line)
        return
    before = None if baseline is None else _before(baseline)
    chosen = _chosen(guard)
    corpora = list(_corpora(corpus or (), guard))
    measured = list(_measured(chosen, corpora))
    if not measured:
        raise BadInput(f'no corpus for {", ".join(chosen)}; name a file of lines {{"id", "text", "bad"}}')
    show(lambda width: guard_lines(measured, width=width))
    if variants:
        _show_variants(chosen, corpora)
    write_outputs((report, lambda: _text(guards_json(measured))))
    if baseline is not None and before is not None and _got_worse(baseline, before, measured):
        raise typer.Exit(1)


def _chosen(name: str | None) -> Mapping[str, Guard]:
    from statek_sim.agent.guards.shipped import texts
    from statek_sim.did_you_mean import suggestion

    known = {guard.name: guard for guard in texts()}
    if name is None:
        return known
    if name not in known:
        raise BadInput(f"--guard {name!r} is unknown; expected {', '.join(known)}{suggestion(name, known)}")
    return {name: known[name]}


def _guard_set(name: str | None, file: Path | None, environment: str) -> GuardSet:
    from statek_sim.agent.guards.pipeline import GuardSet
    from statek_sim.agent.guards.settings import guards_file

    guards = _chosen(name).values() if file is None else guards_file(file)
    return GuardSet(guards, environment=environment)


def _show_what_if(paths: Sequence[Path], cassettes: Path | None, report: Path | None) -> None:
    from statek_sim.reporting.guards import what_if_json
    from statek_sim.scenario.load import load_or_fail
    from statek_sim.suite.counterfactual import what_if_warnings_block
    from statek_sim.suite.recorded import Cassettes

    recorded = None if cassettes is None else Cassettes(cassettes)
    runs = [
        what_if_warnings_block(scenario, profile, recorded)
        for scenario in load_or_fail(paths)
        if scenario.engine == "agent"
        for profile in scenario.profiles
    ]
    if not runs:
        raise BadInput("no run in these scenarios, expected engine: agent")
    for run in runs:
        for line in (*(f"warned: {warning}" for warning in run.warnings), *run.changed):
            typer.echo(f"{run.scenario}[{run.variant}] {line}")
    warned, changed = sum(bool(run.warnings) for run in runs), sum(bool(run.changed) for run in runs)
    typer.echo(f"{len(runs)} runs, {warned} with warnings, {changed} would have ended otherwise")
    write_outputs((report, lambda: _text(what_if_json(runs))))


def _verdicts(file: Path, together: GuardSet, tier: str) -> Iterator[str]:
    from statek_sim.agent.guards.efficacy import checked, entry_of

    try:
        lines = text_of(file).split("\n")
    except Unreadable as error:
        raise BadInput(f"{file}: {why_unreadable(error, file)}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            place = f"{file}:{number}"
            name, outcome = checked(together, entry_of(line, place), place, tier)
            records = [
                {"guard": record.guard, "action": record.action, "rules": list(record.rules)}
                for record in outcome.records
            ]
            verdict = {"id": name, "verdict": outcome.action, "reason": outcome.reason, "text": outcome.text}
            yield json.dumps({**verdict, "guards": records}, ensure_ascii=False)


def _corpora(files: Sequence[Path], guard: str | None) -> Iterator[Corpus]:
    from statek_sim.agent.guards.efficacy import corpus_file, own_corpora

    for file in files:
        if guard is None:
            raise BadInput(f"{file}: say with --guard which guard the corpus is for")
        yield corpus_file(file, guard)
    if not files:
        yield from own_corpora()


def _measured(chosen: Mapping[str, Guard], corpora: Sequence[Corpus]) -> Iterator[Efficacy]:
    from time import process_time

    from statek_sim.agent.guards.efficacy import measure

    for corpus in corpora:
        if corpus.guard in chosen:
            yield measure(chosen[corpus.guard], corpus, process_time)


def _show_variants(chosen: Mapping[str, Guard], corpora: Sequence[Corpus]) -> None:
    from statek_sim.agent.guards.efficacy import disguised

    for corpus in corpora:
        if corpus.guard in chosen:
            typer.echo(f"\n{corpus.guard} on {corpus.name}: found still when disguised")
            for name, (found, of) in disguised(chosen[corpus.guard], corpus).items():
                typer.echo(f"  {name:<16} {found:>4} of {of}")


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _before(file: Path) -> Mapping[tuple[str, str], tuple[set[str], set[str]]]:
    """Return what guards missed and what they warned of wrongly when a baseline was written."""
    from statek_sim.reporting.guards import SCHEMA

    advice = f"`statek-sim guards --json {file}` writes one"
    try:
        before = json.loads(text_of(file))
    except Unreadable as error:
        raise BadInput(f"{file}: {why_unreadable(error, file)}") from None
    except ValueError as error:
        raise BadInput(f"{file}: is no baseline, for it is no JSON: {error}; {advice}") from None
    schema = before.get("schema") if isinstance(before, dict) else None
    if schema != SCHEMA:
        raise BadInput(f"{file}: is no baseline: schema is {_short(schema)}, expected {SCHEMA!r}; {advice}")
    try:
        return {
            (row["name"], row["corpus"]): (set(row["missed"]), set(row["wrong"])) for row in before["guards"]
        }
    except (KeyError, TypeError):
        expected = 'a list of {"name", "corpus", "missed", "wrong"}'
        raise BadInput(f"{file}: is no baseline: `guards` is not {expected}; {advice}") from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _got_worse(
    file: Path, known: Mapping[tuple[str, str], tuple[set[str], set[str]]], measured: Sequence[Efficacy]
) -> bool:
    """Print what got worse than the baseline; return whether anything did."""
    worse = []
    for efficacy in measured:
        if (efficacy.name, efficacy.corpus) not in known:
            typer.echo(f"not in {file}: {efficacy.name} on {efficacy.corpus}; write it anew with --json")
            continue
        missed, wrong = known[efficacy.name, efficacy.corpus]
        worse += [
            f"{efficacy.name} on {efficacy.corpus}: misses {text}"
            for text in efficacy.missed
            if text not in missed
        ]
        worse += [
            f"{efficacy.name} on {efficacy.corpus}: flags {text}"
            for text in efficacy.wrong
            if text not in wrong
        ]
    for line in worse:
        typer.echo(f"worse than {file}: {line}")
    return bool(worse)
