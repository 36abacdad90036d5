"""`statek-sim jobs`: list and show the jobs in a run store, and resume interrupted runs."""
# ruff: noqa: PLC0415  # each command imports what it needs

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_json, say, written_as_json
from statek_sim.cli.options import argument, option
from statek_sim.errors import BadInput, BadStore, Damaged, Fenced, NotOurs

if TYPE_CHECKING:
    from statek_sim.durability.session import JobView
    from statek_sim.store.protocol import Lease, Listed, Store

SCHEMA: Final = "statek-sim/jobs@1"
"""The schema of the `list --json` output."""

JOB_SCHEMA: Final = "statek-sim/job@1"
"""The schema of the `show --json` output."""

jobs = typer.Typer(
    help="List, show and resume the jobs in a store.\n\nExample: statek-sim jobs list --store sqlite:runs.db",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(jobs, name="jobs")

StoreOption = Annotated[
    str,
    option("ADDRESS", "The store: sqlite:PATH, files:FOLDER or postgresql://USER@HOST/DATABASE.", "--store"),
]
RunArgument = Annotated[
    list[str] | None, argument("RUN", "The runs to resume. Default: all interrupted runs.")
]
RestartOption = Annotated[
    float,
    option("SECONDS", "The virtual seconds that pass between the last commit and the resumption.", min=0.0),
]
LeaseOption = Annotated[
    float,
    option(
        "SECONDS",
        "The real seconds without a heartbeat after which another worker may take over a run.",
        min=1.0,
    ),
]
DEFAULT_LEASE = 60.0


@jobs.command("list")
def list_jobs(store: StoreOption, json_file: options.JsonOption = None) -> None:
    """List the jobs in all runs in a store.

    Exits 2 if a run cannot be read.

    Example: statek-sim jobs list --store sqlite:runs.db
    """
    check_json(json_file)
    with closing(_opened(store, read_only=True)) as opened:
        listed = [(listed_run, *_readable(opened, listed_run.run)) for listed_run in opened.runs()]
    rows = [
        {
            **asdict(listed_run),
            "jobs": [{"id": job.id, "role": job.role, "status": job.status} for job in found],
            "problem": problem,
        }
        for listed_run, found, problem in listed
    ]
    if not written_as_json(json_file, {"schema": SCHEMA, "runs": rows}):
        say([f"{store}: no runs"] if not listed else [])
        for listed_run, found, problem in listed:
            say(_lines(listed_run, found, problem))
    if any(problem is not None for _, _, problem in listed):
        raise typer.Exit(2)


@jobs.command("show")
def show_job(
    store: StoreOption,
    job: Annotated[str, argument("JOB", "A job id, or RUN:ID.")],
    json_file: options.JsonOption = None,
) -> None:
    """Show a job's variables, console, chat and handlers.

    Example: statek-sim jobs show main --store sqlite:runs.db
    """
    check_json(json_file)
    with closing(_opened(store, read_only=True)) as opened:
        runs = [(opened_run.run, *_readable(opened, opened_run.run)) for opened_run in opened.runs()]
    every = [(run, shown) for run, jobs, _ in runs for shown in jobs]
    found = [shown for run, shown in every if job in (shown.id, f"{run}:{shown.id}")]
    if not found:
        known = ", ".join(f"{run}:{shown.id}" for run, shown in every[:20]) or "none"
        unread = "".join(f"; cannot be read: {problem}" for _, _, problem in runs if problem is not None)
        raise BadStore(f"{store}: no job {job!r}; jobs: {known}{unread}")
    if len(found) > 1:
        named = ", ".join(f"{found_job.run}:{found_job.id}" for found_job in found)
        raise BadStore(f"{store}: {len(found)} jobs have the id {job!r}; choose one: {named}")
    if not written_as_json(json_file, {"schema": JOB_SCHEMA, **asdict(found[0])}):
        say(_shown_lines(found[0]))


@jobs.command("resume")
def resume_jobs(
    store: StoreOption,
    run: RunArgument = None,
    restart: RestartOption = 0.0,
    lease: LeaseOption = DEFAULT_LEASE,
) -> None:
    """Resume interrupted runs and finish them.

    You can run this command several times in parallel; the processes share the work. Runs held by a live worker are
    listed but not resumed.

    Example: statek-sim jobs resume --store sqlite:runs.db
    """
    from statek_sim.suite.stored import finish

    failed = resumed = bad = 0
    with closing(_opened(store, lease=lease)) as opened:
        besides: set[str] = set()
        for claimed in _claims(opened, run or (), besides):
            try:
                result = finish(opened, claimed, restart=restart)
            except BadInput as error:
                if run:
                    raise
                besides.add(claimed.run)
                bad += not isinstance(error, NotOurs | Fenced)
                say([f"left     {claimed.run}", f"         {error}"])
                continue
            resumed += 1
            failed += bool(result.mismatches)
            say([f"{'FAILED' if result.mismatches else 'ok':8} {claimed.run}"])
            say(f"         {line}" for line in _problems(result))
        leased = [] if run else [one for one in opened.runs() if one.status == "running" and one.worker]
    say(f"leased   {one.run}\n         by worker {one.worker}, {one.left:.0f} s left" for one in leased)
    counts = (f"{resumed} resumed", f"{failed} failed")
    more = ((bad, "cannot be resumed"), (len(leased), "still leased"))
    say([", ".join((*counts, *(f"{count} {what}" for count, what in more if count)))])
    if bad:
        raise typer.Exit(2)
    if failed:
        raise typer.Exit(1)


def _claims(opened: Store, names: Sequence[str], besides: Collection[str]) -> Iterator[Lease]:
    from statek_sim.store.worker import worker_name

    for name in names:
        yield opened.claim(name, worker=worker_name())
    while not names and (lease := opened.claim_next(worker=worker_name(), besides=besides)) is not None:
        yield lease


def _problems(result: Any) -> Iterator[str]:
    if result.record.error is not None:
        yield f"{result.record.error.type}: {result.record.error.message}"
    yield from map(str, result.mismatches)


def _opened(address: str, *, lease: float = DEFAULT_LEASE, read_only: bool = False) -> Store:
    from statek_sim.store.open import open_store
    from statek_sim.store.worker import real_seconds

    return open_store(address, clock=real_seconds, lease=lease, must_exist=True, read_only=read_only)


def _shown(opened: Store, run: str) -> list[JobView]:
    from statek_sim.durability.session import job_views

    return job_views(opened.load(run))


def _readable(opened: Store, run: str) -> tuple[list[JobView], str | None]:
    """Return a run's jobs, or why the run cannot be read."""
    try:
        return _shown(opened, run), None
    except Damaged as error:
        return [], str(error)


def _lines(listed: Listed, found: Sequence[JobView], problem: str | None) -> Iterator[str]:
    held = f", held by {listed.worker}" if listed.worker else ""
    yield f"{listed.run}  {listed.status}, revision {listed.revision}{held}"
    if problem is not None:
        yield f"  cannot be read: {problem}"
    for job in found:
        reason = job.stop or ("waits" if job.waits else "")
        yield f"  {job.id:20} {job.role:16} {job.status:11} {job.turns:4} turns  {reason}".rstrip()


def _shown_lines(job: JobView) -> Iterator[str]:
    yield f"job {job.id} of run {job.run}, agent {job.role}"
    yield f"  status    {job.status}" + (f" ({job.stop})" if job.stop else "")
    yield f"  at        virtual second {job.at:g}"
    if job.parent is not None:
        yield f"  parent    {job.parent}"
    if job.exit is not None:
        yield f"  exit      {json.dumps(job.exit)}"
    for title, lines in (
        ("variables", [f"{name} = {json.dumps(value)}" for name, value in job.locals.items()]),
        ("console", list(job.console)),
        ("chat", [json.dumps(item) for item in job.chat]),
        ("handlers", [json.dumps(item) for item in job.handlers]),
    ):
        if lines:
            yield f"  {title}"
            yield from (f"    {line}" for entry in lines for line in (entry.splitlines() or [""]))
    if job.inbox:
        yield f"  inbox     {job.inbox} to come"
