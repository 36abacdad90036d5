"""Resumes a committed run, in this process or another (harness document §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from statek_sim.agent.effects import CommitPoint, Receipt
from statek_sim.agent.escalation import climb_of, climbing_of
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.replies.nudges import Failure
from statek_sim.agent.run_state import PART_LISTS, PARTS, PLAIN, SINGLE_PARTS, Pending, RunDeps, stateful
from statek_sim.agent.spec import AgentSpec, Choice
from statek_sim.errors import BadInput
from statek_sim.trace import JobCreated


def resumed(
    job: str,
    spec: AgentSpec,
    deps: RunDeps,
    state: Mapping[str, Any],
    *,
    point: CommitPoint,
    committed: float,
    receipts: Sequence[Receipt] = (),
    made: Callable[..., AgentRun] = AgentRun,
    anew: bool = False,
) -> AgentRun:
    """Return a run that resumes from the snapshot `state`, which was committed at `point` at second `committed`.

    `receipts` are those written since that commit. The clock in `deps` must not be behind `committed`. Start the run in
    a driver like a new run; a run that was DONE waits for `push`. `made` creates the run, as `AgentRun` does; set
    `anew` if the trace does not yet contain the run. Raises `BadInput` for a state that does not fit the agent.
    """
    pending = Pending(point, committed, state["pending"], tuple(receipts))
    on_ladder = state["climbing"]
    climbing = None if on_ladder is None else climbing_of(on_ladder, deps.parts.ladder, job)
    if climbing is not None:
        spec = replace(spec, model=climbing.model)
    run = made(job, spec, deps, state["task"], saved=pending)
    run.climbing = climbing
    run.climbed = None if state["climbed"] is None else climb_of(state["climbed"])
    for name in PLAIN:
        setattr(run, name, state[name])
    run.inbox = list(state["inbox"])
    run.calls = [dict(call) for call in state["calls"]]
    run.refused = [dict(refusal) for refusal in state["refused"]]
    run.nudged = [Failure(name) for name in state["nudged"]]
    run.hidden = frozenset(state["hidden"])
    run.results = list(state["results"])
    run.seen = {(name, arguments, text) for name, arguments, text in state["seen"]}
    _restore_offer(run, state["offer"])
    for name in PARTS:
        getattr(run, name).restore(state[name])
    _restore_parts(run, state["parts"])
    run.resting = run.status == "DONE" and not run.inbox
    if anew:
        run.tell(JobCreated(run.now(), job, spec.role, spec.model, None))
    return run


def _restore_offer(run: AgentRun, names: Sequence[str] | None) -> None:
    if names is None:
        return
    _check_tools(run, names, lambda name: run.spec.registry.get(name) is not None)
    run.offer_made = run.spec.offer(Choice(names=names))
    # A server may report only now that its list of tools changed.
    _check_tools(run, names, run.offer_made.tools.__contains__)
    run.conversation.offer(run.offer_made)


def _check_tools(run: AgentRun, names: Sequence[str], is_there: Callable[[str], bool]) -> None:
    missing = [name for name in names if not is_there(name)]
    if missing:
        raise BadInput(
            f"run {run.job!r} was saved with tools that this agent does not have: {', '.join(missing)}; "
            "register them before you resume it"
        )


def _restore_parts(run: AgentRun, saved: Mapping[str, Sequence[Any]]) -> None:
    for field in (*PART_LISTS, *SINGLE_PARTS):
        parts = stateful(run.deps.parts, field)
        known = saved.get(field, ())
        if len(parts) != len(known):
            raise BadInput(
                f"run {run.job!r} was saved with {len(known)} {field} that have state, but now has "
                f"{len(parts)}; resume it with its original parts"
            )
        for part, one in zip(parts, known, strict=True):
            part.restore(one)
