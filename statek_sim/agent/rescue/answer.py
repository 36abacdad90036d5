"""What `rescue` answers: the calls that were found are named, typed and held against the tools that were offered."""

from __future__ import annotations

from dataclasses import dataclass

from statek_sim.agent.rescue.offered import Misfit, Unclear
from statek_sim.agent.rescue.openings import NOISE
from statek_sim.agent.rescue.taking import Found, Taker
from statek_sim.agent.rescue.values import Call, Reason, Refusal, Rescued, Span


def answer(taker: Taker) -> Rescued:
    """Return what was taken from a reply, in the order of the reply; places become bytes."""
    offsets = _Offsets(taker.text)
    calls, refused = [], list(taker.refused)
    for number, found in enumerate(taker.found):
        if number >= taker.limits.max_calls:
            why = f"more than {taker.limits.max_calls} calls in one reply"
            refused.append((Reason.LIMIT, why, found.start, found.end))
            break
        try:
            calls.append(_checked(taker, found, Span(offsets.of(found.start), offsets.of(found.end))))
        except Misfit as misfit:
            refused.append((_reason(taker, found, misfit), str(misfit), found.start, found.end))
    refused.sort(key=lambda one: one[2])
    return Rescued(
        calls=tuple(calls),
        text=_text(taker),
        thinking="\n".join(taker.text[start:end] for start, end in taker.thinking),
        refused=tuple(
            Refusal(reason=reason, why=why, span=Span(offsets.of(start), offsets.of(end)))
            for reason, why, start, end in refused
        ),
        steps=taker.meter.steps,
    )


def _reason(taker: Taker, found: Found, misfit: Misfit) -> Reason:
    if isinstance(misfit, Unclear):
        return Reason.BROKEN
    try:
        taker.offered.the_name(found.name)
    except Misfit:
        return Reason.NOT_OFFERED
    return Reason.SCHEMA


def _checked(taker: Taker, found: Found, span: Span) -> Call:
    offered = taker.offered
    name = offered.the_name(found.name)
    arguments = offered.typed(name, found.arguments)
    stages = found.stages
    if set(arguments) != set(found.arguments):
        stages = (*stages, "unwrapped_arguments")
    elif any(arguments[key] != value for key, value in found.arguments.items() if _is_typed(value)):
        stages = (*stages, "typed_by_schema")
    if offered.unchecked(name):
        stages = (*stages, "unchecked_schema")
    offered.check(name, arguments)
    return Call(name=name, arguments=arguments, stages=stages, span=span)


def _is_typed(value: object) -> bool:
    """Whether a format says what type a value is: not where it writes texts, somewhere in it."""
    return isinstance(value, str | int | float | None)


def _text(taker: Taker) -> str:
    """Return what is left of the reply without its calls, its thinking, and tokens that say nothing by themselves."""
    pieces, at = [], 0
    used = sorted([(one.start, one.end) for one in taker.found] + taker.thinking)
    for start, end in used:
        pieces.append(taker.text[at : max(at, start)])
        at = max(at, end)
    pieces.append(taker.text[at:])
    rest = "".join(pieces)
    return (NOISE.sub("", rest) if used else rest).strip()


@dataclass(slots=True)
class _Offsets:
    """Bytes of characters' places; asked in any order, fast when they rise."""

    text: str
    at: int = 0
    bytes: int = 0

    def of(self, place: int) -> int:
        if self.text.isascii():
            return place
        if place < self.at:
            self.at = self.bytes = 0
        self.bytes += size_of(self.text[self.at : place])
        self.at = place
        return self.bytes


def size_of(text: str) -> int:
    """Return the bytes of `text` as UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
