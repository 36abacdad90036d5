"""Who waits for whom over several workers, and whether a submission would close a circle in which nobody goes on.

A job that holds a slot of one worker may submit to another. When those that hold the other's slots wait for the first
one, all of them wait for ever, and no worker can see it by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from statek_sim.agent.slots.queue import Ticket


class Holder(Protocol):
    """What holds a slot. `waits`: the jobs that its code has submitted and that have not ended, with their workers."""

    @property
    def submitter(self) -> str:
        """Who submitted its job."""

    @property
    def waits(self) -> Mapping[Ticket, Pool]:
        """What its code waits for."""


class Pool(Protocol):
    """A worker. `holders` are those of its slots; None: one that has not begun, and waits for nobody."""

    @property
    def shown(self) -> str:
        """How it is called in a sentence."""

    @property
    def has_slot(self) -> bool:
        """Whether a slot is free."""

    def holders(self) -> Sequence[Holder | None]:
        """Return who holds its slots."""

    def holder_of(self, ticket: Ticket) -> Holder | None:
        """Return who holds a slot for a ticket, None where it has not begun."""


def circle(wanted: Pool, held: Sequence[Holder]) -> str | None:
    """Return who waits for whom when code that holds `held` waits for `wanted` too; None when somebody goes on."""
    if wanted.has_slot:
        return None
    going: list[Holder] = []
    everybody = list(_reachable(wanted))
    grown = True
    while grown:
        new = [
            one
            for one in everybody
            if one not in going and one not in held and all(_gets(*wait, going) for wait in one.waits.items())
        ]
        going += new
        grown = bool(new)
    if any(one is None or one in going for one in wanted.holders()):
        return None
    return ", ".join(_sentences(wanted, held, going))


def _reachable(wanted: Pool) -> Iterator[Holder]:
    """Yield everybody who is waited for."""
    seen: list[Holder] = []
    pools = [wanted]
    for pool in pools:
        for one in pool.holders():
            if one is not None and one not in seen:
                seen.append(one)
                yield one
                pools += [other for other in one.waits.values() if other not in pools]


def _gets(ticket: Ticket, pool: Pool, going: Sequence[Holder]) -> bool:
    """Return whether a job that was submitted comes to its end: it runs and goes on, or will have somebody's slot."""
    if ticket.state == "running":
        own = pool.holder_of(ticket)
        return own is None or own in going
    return pool.has_slot or any(one is None or one in going for one in pool.holders())


def _sentences(wanted: Pool, held: Sequence[Holder], going: Sequence[Holder]) -> Iterator[str]:
    """Yield who holds what and waits for whom, from the slot that is wanted to those that are held."""
    pool, named = wanted, list[Holder]()
    while True:
        one = next((one for one in pool.holders() if one is not None and one not in named), None)
        if one is None:
            return
        named.append(one)
        if one in held:
            yield f"{one.submitter!r} holds a slot of {pool.shown} and would wait for one of {wanted.shown}"
            return
        following = next((each for each in one.waits.items() if not _gets(*each, going)), None)
        assert following is not None, "who does not go on waits for somebody"
        yield f"{one.submitter!r} holds a slot of {pool.shown} and waits for one of {following[1].shown}"
        pool = following[1]
