"""`statek-sim fuzz`: examples that nobody thought of, until the time is over."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statek_sim.cli.app import ExecutorOption, Paths, ProfileOption, SelectOption, TagOption, app
from statek_sim.cli.inputs import check_outputs, loaded, say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.fuzz.corpus import Corpus
    from statek_sim.fuzz.player import Player

SECONDS: Final = 60.0

HoursOption = Annotated[float | None, typer.Option(metavar="N", min=0, help="Hours to go on for.")]
SecondsOption = Annotated[
    float | None,
    typer.Option(metavar="N", min=0, help="Seconds to go on for; default: 60, without any limit."),
]
RunsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Examples to play; the same ones with the same seed.")
]
CorpusOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep the search in this folder, and go on with the one that is there."),
]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, help="Which examples.")]
InvariantOption = Annotated[
    list[str] | None,
    typer.Option("--invariant", metavar="MODULE:NAME", help="An invariant of yours, too (repeatable)."),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="NAME", help="A built-in invariant not to ask (repeatable)."),
]
SaveOption = Annotated[Path, typer.Option("--save", metavar="DIR", help="Where found cases are written.")]
StatekOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PYTHON", help="An interpreter that has statek: drawn examples are compared with it, too."
    ),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
]
WatchdogLimitsOption = Annotated[
    str, typer.Option(metavar="LIMITS|off", help="What one example may use of this machine.")
]


@app.command()
def fuzz(
    paths: Paths = None,
    hours: HoursOption = None,
    seconds: SecondsOption = None,
    runs: RunsOption = None,
    seed: SeedOption = 0,
    corpus: CorpusOption = None,
    profile: ProfileOption = None,
    select: SelectOption = None,
    tag: TagOption = None,
    invariant: InvariantOption = None,
    ignore: IgnoreOption = None,
    save: SaveOption = Path("found"),
    statek: StatekOption = None,
    json_file: JsonOption = None,
    executor: ExecutorOption = None,
    watchdog: WatchdogLimitsOption = "cpu=20,wall=60,memory=1024m",
) -> None:
    """Look for what nobody thought of.

    Without PATH in drawn examples, else in deviations of your scenarios.
    """
    from statek_sim.cli.fuzz_progress import FuzzProgress, fuzz_json_text, fuzz_lines
    from statek_sim.executors.choose import executor_for
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.fuzz.corpus import save_corpus
    from statek_sim.fuzz.search import Report, search
    from statek_sim.reporting.artifact import write_artifact

    check_outputs({"--json": json_file})
    limits = parse_watchdog(watchdog)
    player = _player(paths, profile, select, tag or (), invariant or (), ignore or (), save, statek)
    report = Report(_corpus(corpus, player, seed))
    allowed = _allowed(hours, seconds, runs)
    started, before = time.monotonic(), report.corpus.seconds
    shown = FuzzProgress(allowed, runs)

    def go_on() -> bool:
        return allowed is None or time.monotonic() - started < allowed

    try:
        with executor_for(executor) as runs_it:
            rounds = search(player, report, runs_it, limits=limits, go_on=go_on, most=runs)
            for _ in rounds:
                report.corpus.seconds = before + time.monotonic() - started
                shown.update(report, time.monotonic() - started)
                if corpus is not None:
                    save_corpus(report.corpus, corpus)
    except KeyboardInterrupt:
        report.stopped = True
    finally:
        shown.close()
    passed = time.monotonic() - started
    say(fuzz_lines(report, passed))
    if json_file is not None:
        write_artifact(json_file, fuzz_json_text(report, passed))
    if report.finds or report.killed:
        raise typer.Exit(1)
    if report.stopped:
        raise typer.Exit(130)


def _corpus(folder: Path | None, player: Player, seed: int) -> Corpus:
    """Return the search that goes on, None: a new one that is not kept."""
    from statek_sim.fuzz.corpus import Corpus, about_of, load_corpus

    about = about_of(player)
    if folder is None:
        return Corpus(seed, about)
    return load_corpus(folder, seed=seed, about=about, scenarios=len(player.subjects))


def _allowed(hours: float | None, seconds: float | None, runs: int | None) -> float | None:
    """Return the seconds to go on for; None where only the number of examples ends it."""
    if hours is not None and seconds is not None:
        raise BadInput("--hours and --seconds: expected one of them")
    if hours is not None:
        return hours * 3600
    if seconds is not None:
        return seconds
    return SECONDS if runs is None else None


def _player(
    paths: Sequence[Path] | None,
    profile: Sequence[str] | None,
    select: str | None,
    tags: Sequence[str],
    own: Sequence[str],
    ignored: Sequence[str],
    save: Path,
    statek: Path | None,
) -> Player:
    from statek_sim.cli.explore import pairs_of
    from statek_sim.explore.running import own_invariants
    from statek_sim.fuzz.player import PROFILE, Player, asked
    from statek_sim.suite.run import profile_known

    own_invariants(own)
    if not paths:
        if select or tags:
            raise BadInput("--select and --tag choose among scenarios: name files or folders")
        under = profile_known(profile[0]) if profile else PROFILE
        if statek is not None:
            under = _profile_of(statek)
        return Player(
            own=tuple(own),
            ignored=asked(drawn=True, ignored=ignored),
            profile=under,
            python=None if statek is None else str(statek),
            folder=save.as_posix(),
        )
    if statek is not None:
        raise BadInput(
            "--statek: only drawn examples are compared; `statek-sim explore --statek` compares yours"
        )
    subjects = tuple(pairs_of(loaded(paths), profile or (), select, tags))
    return Player(
        subjects=subjects, own=tuple(own), ignored=asked(drawn=False, ignored=ignored), folder=save.as_posix()
    )


def _profile_of(python: Path) -> str:
    from statek_sim.backends.installed.peer import Peer, profile_of_peer

    with Peer(str(python)) as peer:
        return profile_of_peer(peer)
