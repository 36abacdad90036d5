"""From recordings of one's own model to a profile: what they show is fitted, what they do not is called assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Final

from statek_sim.agent.replies.reading import read_model_reply
from statek_sim.cassettes.document import read_decoded
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.files import cassette_files
from statek_sim.cassettes.jsontext import NotJson, parsed
from statek_sim.errors import BadInput, BadRequest
from statek_sim.evals.models.failures import FailureClass
from statek_sim.evals.models.fitting import Counted, fit_beta, fit_share
from statek_sim.evals.models.noticing import SEEN, NoticedTurn, RecordedTurn, noticed
from statek_sim.evals.models.profile import HEEDS, NATIVE, Profile
from statek_sim.evals.models.rates import ClassRate, Origin, Rate
from statek_sim.providers.wire.formats import format_at

_REFUSED: Final = 400
_UNSEEN: Final = "recordings do not show it; taken over from "


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A fitted profile, and what it was fitted to: `turns` of `tasks`; `counts` are turns by class."""

    profile: Profile
    tasks: int
    turns: int
    counts: Mapping[FailureClass, int]


def calibrated(folder: Path, *, name: str, base: Profile) -> Calibrated:
    """Return the profile of the model whose recordings are in a folder; `BadInput` where it has no turns with tools."""
    exchanges = [exchange for file in cassette_files(folder) for exchange in read_decoded(file)]
    models, turns = _turns(exchanges)
    if not turns:
        raise BadInput(
            f"{folder}: no answered request in it offers tools; expected recordings of an agent that calls tools"
        )
    return calibrated_on(
        list(noticed(turns)), name=name, model=models[-1], base=base, source=f"recordings {folder.name}"
    )


def _turns(exchanges: Iterable[Exchange]) -> tuple[list[str], list[RecordedTurn]]:
    models, turns = [], []
    for model, turn in _read(exchanges):
        models.append(model)
        turns.append(turn)
    return models, turns


def _read(exchanges: Iterable[Exchange]) -> Iterator[tuple[str, RecordedTurn]]:
    """Yield the model and the turn of each answered request that offers tools."""
    for exchange in exchanges:
        format_ = format_at(exchange.request.uri)
        if format_ is None or exchange.response.status >= _REFUSED:
            continue
        try:
            params = format_.read_request(parsed(exchange.request.body), exchange.request.uri)
        except (BadRequest, NotJson):
            continue
        response = exchange.response
        body = format_.join_stream(response.body) if response.is_stream else response.body
        reply = read_model_reply(body, format_.NAME)
        if params.tools and params.messages and reply.unreadable is None:
            yield params.model, RecordedTurn(messages=params.messages, tools=params.tools, reply=reply)


def calibrated_on(
    turns: Sequence[NoticedTurn], *, name: str, model: str, base: Profile, source: str
) -> Calibrated:
    """Return the profile that noticed turns give."""
    tasks: dict[str, list[NoticedTurn]] = {}
    for turn in turns:
        tasks.setdefault(turn.task, []).append(turn)
    counts = {failure: sum(turn.failure == failure for turn in turns) for failure in SEEN}
    classes = [_class(failure, tasks, len(turns), source) for failure in SEEN]
    classes += [_taken_over(rate, base.name) for rate in base.classes if rate.failure not in SEEN]
    rates = {each: _assumed(rate, base.name) for each, rate in base.rates.items()}
    rates |= {rate.name: rate for rate in _seen_rates(turns, source)}
    profile = replace(
        base,
        name=name,
        title=f"fitted to {len(turns)} recorded turns of {len(tasks)} tasks",
        model=model,
        classes=tuple(classes),
        rates=rates,
        damage_origin=Origin(kind="assumed", source=f"taken over from {base.name}"),
        scenarios={},
    )
    return Calibrated(profile=profile, tasks=len(tasks), turns=len(turns), counts=counts)


def _class(
    failure: FailureClass, tasks: Mapping[str, Sequence[NoticedTurn]], n: int, source: str
) -> ClassRate:
    """Fit one class. What a model does right after a correction is another rate: those turns are left out."""
    counts = []
    for turns in tasks.values():
        free = [turn for turn in turns if not turn.corrected] or list(turns)
        counts.append(Counted(sum(turn.failure != failure for turn in free), len(free), 1))
    fitted = fit_beta(counts)
    origin = Origin(kind="fitted", source=source, n=n)
    return ClassRate(failure=failure, a=fitted.a, b=fitted.b, interval=fitted.interval, origin=origin)


def _taken_over(rate: ClassRate, base: str) -> ClassRate:
    return replace(rate, origin=Origin(kind="assumed", source=f"{_UNSEEN}{base}"), interval=None)


def _assumed(rate: Rate, base: str) -> Rate:
    return replace(rate, origin=Origin(kind="assumed", source=f"{_UNSEEN}{base}"), interval=None)


def _seen_rates(turns: Sequence[NoticedTurn], source: str) -> Iterator[Rate]:
    corrected = [turn for turn in turns if turn.corrected]
    if corrected:
        yield _share(HEEDS, sum(turn.failure is None for turn in corrected), len(corrected), source)
    malformed = [turn for turn in turns if turn.failure is FailureClass.MALFORMED]
    if malformed:
        yield _share(NATIVE, sum(turn.native for turn in malformed), len(malformed), source)


def _share(name: str, hits: int, of: int, source: str) -> Rate:
    rate, interval = fit_share(lambda share: hits * log(share) + (of - hits) * log(1 - share))
    return Rate(name=name, rate=rate, interval=interval, origin=Origin(kind="fitted", source=source, n=of))
