"""A real model on evals: asked once, recorded, and replayed from then on without it.

The conversation of a run is FOLDER/EVAL/ARM.SEED.yaml, a cassette as all others. What the model did wrong on a turn is
told as far as a recording shows it, in the classes that simulated models have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.agent.replies.reading import read_model_reply
from statek_sim.backends.recorded import CassetteExchanges, recorded_environment
from statek_sim.cassettes.document import read
from statek_sim.cassettes.jsontext import NotJson, parsed
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.nearest import Advice
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.errors import BadCassette, BadInput, CassetteMiss
from statek_sim.evals.arms import Arm, parse_arms
from statek_sim.evals.models.noticing import NoticedTurn, RecordedTurn, noticed
from statek_sim.evals.models.weak import Act
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.runner import Played, run_with
from statek_sim.evals.scenario import EvalScenario
from statek_sim.providers.access import access_from
from statek_sim.providers.http_transport import HttpTransport
from statek_sim.providers.over_http import HttpLLM
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


def recordings_in(folder: Path, suite: Sequence[EvalScenario], arms: Sequence[str] = ()) -> Recordings:
    """Return what is recorded of these evals, in these arms or in those of the first eval.

    `BadInput` when there is nothing, or when a run is missing that others have.
    """
    evals = tuple(one for one in suite if (folder / one.id).is_dir())
    names = [path.stem.rpartition(".") for one in evals[:1] for path in (folder / one.id).glob("*.yaml")]
    if not names:
        raise BadInput(f"{folder}: no recordings of evals in it; make them with statek-sim evals record")
    seeds = max(int(seed) for _, _, seed in names if seed.isdecimal()) + 1
    chosen = parse_arms(arms or sorted({arm for arm, _, _ in names}, key=lambda arm: (arm != "full", arm)))
    model = RecordedModel(_model_of(next((folder / evals[0].id).glob("*.yaml"))), folder)
    for path in (model.path(one.id, arm.name, n) for one in evals for arm in chosen for n in range(seeds)):
        if not path.is_file():
            raise BadInput(f"{path}: not recorded; expected every eval in every arm with {seeds} seeds")
    return Recordings(model=model, evals=evals, arms=chosen, seeds=seeds)


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
    """Ask the real model and keep its conversation; what came of the run, and how many exchanges are new."""
    session = CassetteSession(model.path(scenario.id, arm.name, seed), mode, Matching(), advice=_ADVICE)
    exchanges = CassetteExchanges(session, environment, live)
    try:
        played = _heard(scenario, seed, arm, model, exchanges, environment)
    except BaseException as failure:
        session.close(failed=True)
        if isinstance(failure, CassetteMiss):
            raise BadInput(f"{failure}; or record it anew with --mode rewrite") from None
        raise
    return played.outcome, session.close().recorded


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
    """A provider whose replies are listened to. `acts` are what was noticed in them, turn by turn."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self._turns: list[tuple[int, RecordedTurn]] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request."""
        raw = self._inner.complete(request)
        reply = read_model_reply(raw.body, "openai")
        turn = RecordedTurn(messages=tuple(request.messages), tools=request.tools, reply=reply)
        self._turns.append((request.turn, turn))
        return raw

    @property
    def acts(self) -> list[Act]:
        """What was noticed; nothing on a turn that offered no tools."""
        found = noticed(turn for _, turn in self._turns)
        return [
            _act(number, next(found)) if turn.tools else _act(number, None) for number, turn in self._turns
        ]


def _act(number: int, found: NoticedTurn | None) -> Act:
    failure = None if found is None else found.failure
    corrected = found is not None and found.corrected
    return Act(
        turn=number, place="", failure=failure, corrected=corrected, heeded=corrected and failure is None
    )
