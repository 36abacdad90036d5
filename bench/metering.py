"""Measures the cost of metering: a run with and without it, and a long conversation against a plain tokenizer pass.

`python -m bench.metering WORKLOAD SIZE` prints one line of JSON, a `Measurement`. Times are CPU time
(`time.process_time`), which a busy machine affects least.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median
from time import process_time
from typing import Final

from bench import ours
from bench.entry import Entry, time_entry
from bench.sides import Side
from bench.workload import MODEL, Measurement
from statek_sim.runtime.execution import model_request as asking
from statek_sim.runtime.execution import services
from statek_sim.usage.conversation import MessageMeter, MeteredConversation
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.usage.vocabularies import load_encoding
from statek_sim.values import Message

LEAST_SHARE: Final = 1 / 1.25
"""The minimum ratio of a run without metering to one with it: metering adds at most 25 %."""

LEAST_PASS: Final = 1 / 2
"""The minimum ratio of a plain tokenizer pass to metering the same conversation."""

FLAT: Final = 0.8
"""The minimum ratio that counts as equal cost per turn."""

TURNS: Final = 5_000


class _NoMeter(MessageMeter):
    """Counts nothing."""

    __slots__ = ()

    def measure(self, message: Message) -> tuple[int, int]:
        return 0, 0


def uncounted(name: str, size: int) -> Measurement:
    """Run a `bench.ours` workload without counting message bytes or tokens."""
    vars(services)["MessageMeter"] = _NoMeter
    vars(asking)["completion_tokens"] = lambda *counted: 0
    return counted(name, size)


def counted(name: str, size: int) -> Measurement:
    """Run a `bench.ours` workload unchanged; `extra` contains its seconds without setup."""
    # Before the clock starts: the compiled patterns and the vocabulary.
    ours.WORKLOADS[name](10)
    started = process_time()
    measured = ours.WORKLOADS[name](size)
    measured.extra["own"] = process_time() - started
    return measured


def conversation(size: int) -> Measurement:
    """Meter a conversation with `size` different turns, and tokenize the same texts once.

    `extra`, in seconds: `metered` and `plain`, and `first` and `last`, each a fifth of the metered turns.
    """
    turns = [_turn(number) for number in range(size)]
    encode = load_encoding("o200k_base").encode_ordinary
    encode("loaded")
    started = process_time()
    for turn in turns:
        for message in turn:
            encode(str(message["content"]))
    plain = process_time() - started
    talk = MeteredConversation(MessageMeter(tokenizer_for_model(MODEL)))
    stamps = [process_time()]
    for turn in turns:
        for message in turn:
            talk.append(message)
        stamps.append(process_time() + 0 * (talk.tokens + talk.messages_json))
    fifth = size // 5
    extra = {
        "metered": stamps[-1] - stamps[0],
        "plain": plain,
        "first": stamps[fifth] - stamps[0],
        "last": stamps[-1] - stamps[-1 - fifth],
    }
    return Measurement(
        workload="conversation",
        size=size,
        seconds=extra["metered"],
        jobs=1,
        steps=size,
        bytes_sent=talk.messages_json,
        bytes_received=0,
        transcript=(),
        extra=extra,
    )


def _turn(number: int) -> tuple[Message, Message]:
    """Return a user's question and a model's answer; every turn is different."""
    parcel = f"PL-{number * 7919 % 1_000_003}"
    return (
        {
            "role": "user",
            "content": f"Good morning, my parcel {parcel} was supposed to arrive on day {number} and it is still "
            "not here. Could you please check where it is, and tell me when the driver will try again?",
        },
        {
            "role": "assistant",
            "content": f"Parcel {parcel} is already on van {number % 97}. The driver found nobody at home and will "
            f"try again between {number % 9 + 8} and {number % 9 + 11} o'clock. Would another time suit you better?",
        },
    )


def entries(own: Side, runs: int) -> Iterator[Entry]:
    """Measure what metering adds to runs, and what a long conversation costs."""
    side = Side(own.python, "bench.metering")
    for name, words in (("jobs", "the same replies"), ("varied_jobs", "every reply different")):
        on, off = [], []
        for _ in range(runs):
            on.append(side.measure(name, 1000).extra["own"])
            off.append(side.measure(f"{name}-uncounted", 1000).extra["own"])
        yield time_entry(
            name=f"1,000 jobs of 3 turns, {words}, with metering",
            peer="without it",
            unit="ms",
            ours=1e3 * median(on),
            theirs=1e3 * median(off),
            goal=LEAST_SHARE,
        )
    talks = [side.measure("conversation", TURNS).extra for _ in range(runs)]
    yield time_entry(
        name=f"metering a conversation of {TURNS:,} turns",
        peer="one plain tiktoken pass",
        unit="ms",
        ours=1e3 * median(talk["metered"] for talk in talks),
        theirs=1e3 * median(talk["plain"] for talk in talks),
        goal=LEAST_PASS,
    )
    yield time_entry(
        name="the same, its last fifth against its first",
        peer="first fifth",
        unit="ms",
        ours=1e3 * median(talk["last"] for talk in talks),
        theirs=1e3 * median(talk["first"] for talk in talks),
        goal=FLAT,
    )


def main() -> None:
    """Run one workload and print its measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.metering", description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    name, _, without = arguments.workload.partition("-")
    if name == "conversation":
        measured = conversation(arguments.size)
    else:
        measured = (uncounted if without else counted)(name, arguments.size)
    print(measured.to_line())


if __name__ == "__main__":
    main()
