"""How slots are given out: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRules:
    """The rules of one pool of slots. Priority 1 is the most urgent, 10 background work (004 §9).

    `slots`: how many jobs run at a time. `waiting`: how many may wait beside them; None: any number.
    """

    slots: int = 1
    waiting: int | None = 50

    aging: float | None = 60.0
    """Seconds of waiting that are worth one level of priority; None: priority alone decides, and background work may
    wait for ever (004 §9: it ran 901st of 901)."""

    share: float | None = 1.0
    """Seconds by which a submitter's further waiting job counts as later than the one before it, so that a submitter
    with a hundred jobs keeps nobody waiting who has one; None: submitters are not told apart (004 §9)."""

    preempts: Literal["never", "step", "cancel"] = "step"
    """What a more urgent job does to one that runs: nothing (004 §9, whatever its text claims); it gets the slot at
    that job's next step, and the job goes on later; or it ends that job (Forge)."""

    full: Literal["refuse", "displace"] = "displace"
    """Who goes when one job too many waits: the newcomer, or the one that would be served last. In 004 §9 the put
    blocks, so that an urgent job waits in front of the queue."""

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise BadInput(f"slots is at least 1, not {self.slots!r}")
        if self.waiting is not None and self.waiting < 0:
            raise BadInput(f"waiting is 0 or more jobs, or None for any number, not {self.waiting!r}")
        for name, seconds in (("aging", self.aging), ("share", self.share)):
            if seconds is not None and not 0 < seconds < float("inf"):
                raise BadInput(f"{name} is a number of seconds above 0, or None for none, not {seconds!r}")


DEFAULT: Final = SlotRules()
