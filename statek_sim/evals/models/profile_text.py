"""A profile as the text of its file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from statek_sim.evals.models.profile import Profile
from statek_sim.evals.models.profile_file import SCHEMA
from statek_sim.evals.models.rates import Origin

DIGITS = 6


def profile_text(profile: Profile, *, head: Sequence[str] = ()) -> str:
    """Return the text of a file that says this profile; `head` is lines of comment at its top."""
    return "\n".join([*(f"# {line}" for line in head), *_lines(profile)]) + "\n"


def _lines(profile: Profile) -> Iterator[str]:
    yield f"schema = {_text(SCHEMA)}"
    for name in ("name", "title", "model", "dialect"):
        yield f"{name} = {_text(getattr(profile, name))}"
    yield f"window = {profile.window}"
    yield f"long_prompt = {profile.long_prompt}"
    for class_rate in profile.classes:
        yield "\n[[class]]"
        yield f"name = {_text(class_rate.failure.value)}"
        if class_rate.tier is not None:
            yield f"tier = {_text(class_rate.tier)}"
        yield f"beta = [{_number(class_rate.a)}, {_number(class_rate.b)}]"
        if class_rate.share != 1.0:
            yield f"share = {_number(class_rate.share)}"
        yield from _origin(class_rate.origin, class_rate.interval)
    for rate in profile.rates.values():
        yield "\n[[rate]]"
        yield f"name = {_text(rate.name)}"
        yield f"rate = {_number(rate.rate)}"
        yield from _origin(rate.origin, rate.interval)
    yield "\n[damage]"
    yield from _origin(profile.damage_origin, None)
    yield f"weights = {{{_pairs(profile.damage)}}}"
    if profile.scenarios:
        yield "\n[scenarios]"
    for name, shares in profile.scenarios.items():
        yield f"{_text(name)} = {{{_pairs({each.value: share for each, share in shares.items()})}}}"


def _origin(origin: Origin, interval: tuple[float, float] | None) -> Iterator[str]:
    yield f"label = {_text(origin.kind)}"
    yield f"source = {_text(origin.source)}"
    if origin.n is not None:
        yield f"n = {origin.n}"
    if interval is not None:
        yield f"interval = [{_number(interval[0])}, {_number(interval[1])}]"


def _pairs(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {_number(value)}" for name, value in values.items())


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # A JSON string is a basic string of TOML.


def _number(value: float) -> str:
    return repr(round(float(value), DIGITS))
