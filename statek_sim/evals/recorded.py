"""A real model on evals: asked once, recorded, and replayed from then on without it.

The conversation of a run is FOLDER/EVAL/ARM.SEED.yaml, a cassette as all others. A recording does not say what
would have been right, so that its turns have no class of failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.backends.recorded import CassetteExchanges, recorded_environment
from statek_sim.cassettes.bodies import NotJson, parsed
from statek_sim.cassettes.document import read
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tape import Advice
from statek_sim.errors import BadCassette, BadInput, CassetteMiss, ProviderFailure, ProviderHTTPError
from statek_sim.evals.arms import Arm, parse_arms
from statek_sim.evals.failures import Act
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.prompt_calls import is_corrected
from statek_sim.evals.runner import Played, run_with
from statek_sim.evals.scenario import EvalScenario
from statek_sim.providers.http_provider import (
    HttpLLM,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    access_from,
    check_status,
)
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply

API: Final = "OPENAI"
"""Whose format is spoken, and whose variables say where the endpoint is: OPENAI_API_URL and OPENAI_API_KEY."""


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A real model by its name, and where its conversations are."""

    name: str
    folder: Path

    def path(self, scenario: str, arm: str, seed: int) -> Path:
        """Return the cassette of one run."""
        return self.folder / scenario / f"{arm}.{seed}.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recordings:
    """What a folder has of a model: the evals, arms and seeds that can be replayed."""

    model: RecordedModel
    evals: tuple[EvalScenario, ...]
    arms: tuple[Arm, ...]
    seeds: int


def recordings_in(
    folder: Path, suite: Sequence[EvalScenario], arms: Sequence[str] = (), seeds: int | None = None
) -> Recordings:
    """Return what is recorded of these evals, in these arms or in those of the first eval, on the first `seeds`.

    Without `seeds`, on all that the first eval has. `BadInput` when there is nothing, or a run of these is missing.
    """
    evals = tuple(scenario for scenario in suite if (folder / scenario.id).is_dir())
    runs = dict(_runs_in(folder / evals[0].id)) if evals else {}
    if not runs:
        raise BadInput(f"{folder}: no recordings of evals in it; make them with statek-sim evals record")
    recorded = max(seed for _, seed in runs) + 1
    if seeds is None:
        seeds = recorded
    elif seeds > recorded:
        raise BadInput(f"--seeds {seeds}: {folder} has {recorded}; expected no more, or more recordings")
    chosen = parse_arms(arms or sorted({arm for arm, _ in runs}, key=lambda arm: (arm != "full", arm)))
    model = RecordedModel(_model_of(next(iter(runs.values()))), folder)
    for path in (
        model.path(scenario.id, arm.name, n) for scenario in evals for arm in chosen for n in range(seeds)
    ):
        if not path.is_file():
            raise BadInput(f"{path}: not recorded; expected every eval in every arm with {seeds} seeds")
    return Recordings(model=model, evals=evals, arms=chosen, seeds=seeds)


def _runs_in(folder: Path) -> Iterator[tuple[tuple[str, int], Path]]:
    """Yield arm and seed of each run that is recorded of an eval; what else is there is somebody's own."""
    for path in sorted(folder.glob("*.yaml")):
        arm, _, seed = path.stem.rpartition(".")
        # A re-recording that failed is put beside the recording, as ARM.SEED.new.yaml.
        if arm and seed.isdecimal():
            yield (arm, int(seed)), path


def _model_of(path: Path) -> str:
    for exchange in read(path):
        try:
            body = parsed(exchange.request.body)
        except NotJson:
            continue
        if isinstance(body, dict) and isinstance(body.get("model"), str):
            return str(body["model"])
    raise BadCassette(f"{path}: no request in it names a model; expected a recording of evals record")


def replayed_run(scenario: EvalScenario, seed: int, arm: Arm, model: RecordedModel) -> Played:
    """Return what came of a recorded run; `BadInput` when the harness asks something else than it did then."""
    path = model.path(scenario.id, arm.name, seed)
    session = CassetteSession(path, RecordMode.NONE, Matching(), advice=_ADVICE)
    exchanges = CassetteExchanges(session, recorded_environment(session.recordings()))
    try:
        return _heard(scenario, seed, arm, model, exchanges, exchanges.environment)
    except CassetteMiss as miss:
        raise BadInput(str(miss)) from None


def recorded_run(
    scenario: EvalScenario,
    seed: int,
    arm: Arm,
    model: RecordedModel,
    *,
    mode: RecordMode,
    environment: Mapping[str, str],
    live: HttpTransport,
) -> tuple[Outcome, int]:
    """Ask the real model and keep its conversation; what came of the run, and how many exchanges are new.

    `BadInput` when the endpoint gave no answer: that says nothing about the model, and is not kept.
    """
    session = CassetteSession(model.path(scenario.id, arm.name, seed), mode, Matching(), advice=_ADVICE)
    answering = _Answering(live)
    exchanges = CassetteExchanges(session, environment, answering)
    # The session is closed, and by that written, only behind a whole run: the next one would take half of one for all.
    try:
        played = _heard(scenario, seed, arm, model, exchanges, environment)
    except CassetteMiss as miss:
        raise BadInput(f"{miss}; or record it anew with --mode rewrite") from None
    if answering.problem is not None:
        raise BadInput(
            f"{session.path}: not recorded: {answering.problem}; what was recorded before is kept, the same command "
            "goes on from there"
        )
    return played.outcome, session.close().recorded


_ABOUT_THE_REQUEST: Final = (400, 413, 422)
"""Statuses by which an endpoint refuses what it was asked, such as too long a prompt: so it will each time."""


class _Answering:
    """A live transport that knows whether its last request was answered, also after a harness asked again.

    `problem` says why it was not, None when it was.
    """

    def __init__(self, inner: HttpTransport) -> None:
        self._inner = inner
        self.problem: str | None = None

    def send(self, request: HttpRequest) -> HttpResponse:
        """Send one request."""
        try:
            response = self._inner.send(request)
            if response.status not in _ABOUT_THE_REQUEST:
                check_status(request, response)
        except ProviderHTTPError as failure:
            self.problem = str(failure)
            return response
        except ProviderFailure as failure:
            self.problem = f"{request.url}: {str(failure) or 'no answer in time'}"
            raise
        self.problem = None
        return response


_ADVICE: Final = Advice(
    record="statek-sim evals record", ignore="change the eval or the harness back ({field})"
)


def _heard(
    scenario: EvalScenario,
    seed: int,
    arm: Arm,
    model: RecordedModel,
    transport: HttpTransport,
    environment: Mapping[str, str],
) -> Played:
    access = access_from(environment, API)
    heard = _Heard(HttpLLM(transport, lambda _provider: access))
    return run_with(scenario.instance(seed), arm, heard, model=model.name)


class _Heard:
    """A provider that notes on which turns it was corrected."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self.acts: list[Act] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request."""
        raw = self._inner.complete(request)
        self.acts.append(Act(request.turn, "", None, corrected=is_corrected(request.messages), heeded=False))
        return raw
