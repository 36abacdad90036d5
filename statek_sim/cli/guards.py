"""`statek-sim guards`: measure guards on labelled text, or print their verdicts on your own text."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for JSON Schema

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs, show, write_outputs
from statek_sim.cli.options import argument, option
from statek_sim.errors import BadInput
from statek_sim.input_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statek_sim.agent.guards.efficacy import Corpus, Efficacy
    from statek_sim.agent.guards.guard import Guard
    from statek_sim.agent.guards.pipeline import GuardSet

CorpusArgument = Annotated[
    list[Path] | None,
    argument(
        "FILE",
        'Corpora for --guard, with one {"id", "text", "bad"} object per line. Default: the built-in corpora.',
    ),
]
GuardOption = Annotated[
    str | None, option("NAME", "Measure only this guard: personal-data, secrets or injection.")
]
CheckOption = Annotated[
    Path | None,
    option(
        "FILE", 'Print a verdict for each {"id", "text", "point"} line in this file, instead of measuring.'
    ),
]
FileOption = Annotated[
    Path | None,
    option(
        "FILE", "With --check: use the guards in this TOML file instead of the built-in guards.", "--file"
    ),
]
TierOption = Annotated[str, option("TIER", "With --file: the user's tier. Default: guards for all tiers.")]
EnvironmentOption = Annotated[
    str,
    option("NAME", "With --file: the environment, such as production. Default: guards for all environments."),
]


@app.command()
def guards(
    corpus: CorpusArgument = None,
    guard: GuardOption = None,
    check: CheckOption = None,
    file: FileOption = None,
    tier: TierOption = "",
    environment: EnvironmentOption = "",
    report: options.JsonFileOption = None,
) -> None:
    """Measure guards on attacks and harmless text.

    Example: statek-sim guards --guard injection
    """
    from statek_sim.reporting.guards import guard_lines, guards_json

    check_outputs({"--json": report})
    if file is not None and (check is None or guard is not None):
        raise BadInput("--file: requires --check, and cannot be used with --guard")
    if check is not None:
        for line in _verdicts(check, _guard_set(guard, file, environment), tier):
            typer.echo(line)
        return
    chosen = _chosen(guard)
    corpora = list(_corpora(corpus or (), guard))
    measured = list(_measured(chosen, corpora))
    if not measured:
        raise BadInput(f'no corpus for {", ".join(chosen)}; pass a file with lines {{"id", "text", "bad"}}')
    show(lambda width: guard_lines(measured, width=width))
    write_outputs((report, lambda: guards_json(measured)))


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


def _verdicts(file: Path, together: GuardSet, tier: str) -> Iterator[str]:
    from statek_sim.agent.guards.efficacy import checked, entry_of

    for number, line in enumerate(read_text(file).split("\n"), start=1):
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
            raise BadInput(f"{file}: requires --guard NAME, the guard to measure")
        yield corpus_file(file, guard)
    if not files:
        yield from own_corpora()


def _measured(chosen: Mapping[str, Guard], corpora: Sequence[Corpus]) -> Iterator[Efficacy]:
    from time import process_time

    from statek_sim.agent.guards.efficacy import measure

    for corpus in corpora:
        if corpus.guard in chosen:
            yield measure(chosen[corpus.guard], corpus, process_time)
