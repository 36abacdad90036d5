"""A run at a commit point: everything it knows as values, where it stands, and how it goes on from there.

What is told of these values here is what `resuming.resumed` reads back. Values are plain: texts, numbers, lists,
tuples, mappings; `checkpoints.codec` makes text of them.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from statek_sim import trace as events
from statek_sim.agent.batch_values import reply_from
from statek_sim.agent.effects import CommitPoint, Parts, Receipt, Saved
from statek_sim.agent.escalation.climbing import climb_json
from statek_sim.agent.recalling import Recall
from statek_sim.agent.replies.taking import take
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.agent.loop import AgentRun, Steps

PLAIN: Final = (
    "task",
    "status",
    "stop",
    "detail",
    "answer",
    "steps",
    "iteration",
    "completions",
    "taken",
    "message",
    "asked",
    "waiting_task",
)
"""Fields of a run that are texts and numbers."""

PARTS: Final = ("counters", "enforcer", "nudges", "budget", "conversation")
"""Fields of a run that are saved and restored by their own methods."""

SEAMS: Final = ("watchers", "gates", "guards")
SINGLE: Final = ("chooser", "reader", "compactor")


@dataclass(frozen=True, slots=True)
class Pending:
    """Where a saved run stands: the commit it is taken up from, and what came of its calls and questions since."""

    point: CommitPoint
    committed: float
    state: Mapping[str, Any]
    receipts: Sequence[Receipt] = ()


def state_of(run: AgentRun, pending: Mapping[str, object]) -> dict[str, object]:
    """Return everything a run knows; `BadInput` for a part that may know something and does not say it."""
    state: dict[str, object] = {name: getattr(run, name) for name in PLAIN}
    state |= {name: getattr(run, name).saved() for name in PARTS}
    return state | {
        "inbox": list(run.inbox),
        "calls": [dict(call) for call in run.calls],
        "refused": [dict(refusal) for refusal in run.refused],
        "nudged": [failure.value for failure in run.nudged],
        "hidden": sorted(run.hidden),
        "results": list(run.results),
        "seen": sorted(run.seen),
        "offer": None if run.offer_made is None else list(run.offer_made.names),
        "climbed": None if run.climbed is None else climb_json(run.climbed),
        "climbing": None if run.climbing is None else run.climbing.values(),
        "parts": _parts(run.around.parts),
        "pending": dict(pending),
    }


def _parts(parts: Parts) -> dict[str, list[object]]:
    """Return what the parts know, those of each seam in their order."""
    return {seam: [_known(seam, part) for part in stateful(parts, seam)] for seam in (*SEAMS, *SINGLE)}


def stateful(parts: Parts, seam: str) -> list[Any]:
    """Return the parts of a seam that say what they know."""
    found = getattr(parts, seam)
    given: Iterable[Any] = found if seam in SEAMS else () if found is None else (found,)
    # A part may stand in another one, which looks after it.
    every = [getattr(part, "inner", part) for part in given]
    return [part for part in every if not _is_stateless(seam, part)]


def _known(seam: str, part: Saved) -> object:
    return part.saved()


def _is_stateless(seam: str, part: Any) -> bool:
    """Return whether a part has nothing to save; `BadInput` where that cannot be seen."""
    if isinstance(part, Saved):
        return False
    code = part.func if isinstance(part, partial) else part
    if getattr(part, "stateless", False) is True:
        return True
    if isinstance(code, types.FunctionType) and not code.__closure__:
        return True
    raise BadInput(
        f"{seam}: {_named(code)} may know something of the run that a checkpoint would not hold; give it `saved()` and "
        "`restore(saved)`, or `stateless = True` where it knows nothing"
    )


def _named(code: Any) -> str:
    """Return what a part is called, without its place in memory."""
    name = getattr(code, "__qualname__", type(code).__qualname__)
    return f"a {name}" if isinstance(code, types.FunctionType) else f"{name!r}"


def taken_up(run: AgentRun, saved: Pending) -> Steps:
    """Do what was in hand when a run was committed, up to its next iteration."""
    run.tell(events.RunResumed(run.now(), run.job, saved.point.value, run.iteration, saved.committed))
    offer = run.offer_made
    if "wave" in saved.state:
        yield from Recall(run, saved.state, saved.receipts, saved.committed).go()
    elif "reply" in saved.state:
        assert offer is not None, "a reply was to a request that offered something"
        yield from take(run, reply_from(saved.state["reply"]), offer)
