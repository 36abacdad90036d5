"""Simulates contention for a slot, and who waits how long: `python -m tools.slot_load` prints a table.

One slot, one-second jobs, one hour. One submitter requests twice the capacity, three others a fifth each, a person
occasionally submits something urgent, and a background submitter has work that can wait.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from statek_sim.agent.slots import SlotQueue, SlotRules, Ticket

SECONDS: Final = 3600
SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Submitter:
    """A submitter with a number of jobs per second."""

    name: str
    rate: float
    priority: int


GREEDY: Final = Submitter("greedy", 2.0, 5)
MODEST: Final = tuple(Submitter(f"modest {number}", 0.2, 5) for number in (1, 2, 3))
URGENT: Final = Submitter("urgent", 0.05, 1)
BACKGROUND: Final = Submitter("background", 0.05, 10)
ALL: Final = (GREEDY, *MODEST, URGENT, BACKGROUND)

RULES: Final = {
    "default": SlotRules(),
    "default, without share": SlotRules(share=None),
    "default, without aging": SlotRules(aging=None),
    "priority and order of arrival alone": SlotRules(aging=None, share=None, preempts="never", full="refuse"),
}


@dataclass(slots=True)
class Load:
    """The outcome of each submitter's jobs; waits are in seconds, for jobs that got the slot or are still waiting."""

    submitted: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    sent_away: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)

    def waited(self, ticket: Ticket, seconds: float) -> None:
        """Record how long a job waited."""
        self.longest[ticket.submitter] = max(self.longest.get(ticket.submitter, 0.0), seconds)


def loaded(rules: SlotRules, *, seconds: int = SECONDS, seed: int = SEED) -> Load:
    """Return the outcome of all jobs after this many seconds."""
    queue, load, draw = SlotQueue(rules), Load(), random.Random(seed)
    waiting: dict[Ticket, None] = {}
    running: Ticket | None = None
    for now in range(seconds):
        for submitter in _arriving(draw):
            load.submitted[submitter.name] += 1
            ticket, gone = queue.add(submitter.name, submitter.priority, now=now)
            waiting[ticket] = None
            if gone is not None:
                load.sent_away[gone.submitter] += 1
                waiting.pop(gone)
        if running is not None:
            queue.leave(running, now=now)
        running = queue.take(now=now)
        if running is not None:
            waiting.pop(running)
            load.served[running.submitter] += 1
            load.waited(running, running.waited)
    for ticket in waiting:
        load.waited(ticket, seconds - ticket.came)
    return load


def _arriving(draw: random.Random) -> Iterator[Submitter]:
    for submitter in ALL:
        whole = int(submitter.rate)
        for _ in range(whole + (draw.random() < submitter.rate - whole)):
            yield submitter


def table() -> Iterator[str]:
    """Yield the Markdown table."""
    groups = {"greedy": (GREEDY,), "modest": MODEST, "urgent": (URGENT,), "background": (BACKGROUND,)}
    yield f"| rules | {' | '.join(groups)} |"
    yield f"|---{'|---' * len(groups)}|"
    for name, rules in RULES.items():
        load = loaded(rules)
        cells = (_cell(load, [submitter.name for submitter in group]) for group in groups.values())
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(load: Load, names: list[str]) -> str:
    served, submitted = (sum(counted[name] for name in names) for counted in (load.served, load.submitted))
    longest = max((load.longest[name] for name in names if name in load.longest), default=None)
    return f"{served} of {submitted}, {'-' if longest is None else f'{longest:.0f} s'}"


def main() -> int:
    """Print the table."""
    print("\n".join(table()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
