"""Turns the calls that a model wrote into executable ones, with parsed and validated arguments.

Unusable replies, and turns that a watcher objects to, are corrected with a nudge.

Source: the agent document §6, harness document §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from statek_sim import trace as events
from statek_sim.agent.budget import Ended
from statek_sim.agent.effects import Advice, ToolCall, ToolOutcome, TurnFacts, WrittenCall
from statek_sim.agent.replies.model_reply import ModelReply
from statek_sim.agent.replies.nudges import PREFIX, ROLE, Failure, nudge_text
from statek_sim.agent.run_state import RunState
from statek_sim.agent.schema import read_json
from statek_sim.agent.tools.registry import Offer, Registry
from statek_sim.agent.tools.type_hints import problems_of
from statek_sim.did_you_mean import with_suggestion
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rejected call. The model sees `reason` as the result; `details` are filled into the nudge."""

    failure: Failure
    reason: str
    details: Mapping[str, object]


def numbered(calls: Iterable[WrittenCall]) -> tuple[WrittenCall, ...]:
    """Return the calls with unique ids, because some models reuse one id for all calls."""
    calls = tuple(calls)
    if len(calls) == 1 and calls[0].id:
        return calls
    seen: set[str] = set()
    found: list[WrittenCall] = []
    for number, call in enumerate(calls, start=1):
        id_ = call.id if call.id and call.id not in seen else f"{call.id or 'call'}-{number}"
        seen.add(id_)
        found.append(call if id_ == call.id else WrittenCall(id_, call.name, call.arguments))
    return tuple(found)


def resolved(
    call: WrittenCall, offer: Offer, registry: Registry
) -> tuple[ToolCall, tuple[str, ...]] | Refusal:
    """Return the executable call and the paths of coerced arguments, or why the call is rejected.

    The name is checked first: for an unknown tool, arguments do not matter.
    """
    if call.name not in offer.tools:
        return _unknown(call, offer, registry)
    arguments = _parsed(call.arguments)
    if not isinstance(arguments, dict):
        return Refusal(
            Failure.INVALID_JSON,
            f"Error: the arguments of {call.name!r} are not a JSON object: {arguments}",
            {"called": call.name},
        )
    # Use the offered definition: another run that shares the registry may have loaded a server's new list since.
    check = offer.checks.get(call.name) or registry.checks(call.name)
    conversions = check.conversions
    if not conversions and check.plainly_fits(arguments):
        return ToolCall(call.id, call.name, arguments), ()
    checked = check.check(arguments, coerce=True)
    if not checked.problems and conversions:
        checked = replace(checked, problems=problems_of(checked.arguments, conversions))
    if not checked.problems:
        return ToolCall(call.id, call.name, checked.arguments), checked.coerced
    reason = "; ".join(checked.problems)
    if checked.missing is not None:
        return Refusal(
            Failure.MISSING_FIELD, f"Error: {reason}", {"called": call.name, "field": checked.missing}
        )
    return Refusal(Failure.INVALID_ARGUMENTS, f"Error: {reason}", {"called": call.name, "problems": reason})


def _parsed(text: str) -> JSON:
    """Return the arguments as an object, or a string that explains why they are not an object."""
    try:
        found = read_json(text)
    except ValueError as error:
        return str(error)
    return found if isinstance(found, dict) else f"got {type(found).__name__}"


def _unknown(call: WrittenCall, offer: Offer, registry: Registry) -> Refusal:
    offered = ", ".join(offer.names) or "none"
    if registry.get(call.name) is not None:
        problem = f"Error: {call.name!r} is not offered in this task; offered: {offered}"
    else:
        problem = f"Error: there is no tool {call.name!r}; offered: {offered}"
    problem = with_suggestion(problem, call.name, offer.names)
    return Refusal(Failure.UNKNOWN_TOOL, problem, {"called": call.name, "offered": offered})


def shown(call: WrittenCall) -> str:
    """Return a call as displayed in traces."""
    return f"{call.name}({call.arguments})"


def answer_calls(
    run: RunState, reply: ModelReply, text: str, calls: Sequence[WrittenCall], results: Sequence[str]
) -> None:
    """Append a reply with its calls, and a result for each, because providers reject a call without a result."""
    run.conversation.said(reply, calls, text)
    for call, result in zip(calls, results, strict=True):
        run.conversation.add({"role": "tool", "content": result, "tool_call_id": call.id})


def watch(run: RunState, text: str, done: Sequence[tuple[ToolCall, ToolOutcome]], *, progress: bool) -> None:
    """Pass a turn to the watchers and follow their advice."""
    for watcher in run.deps.parts.watchers:
        facts = TurnFacts(turn=run.counters.asked, at=run.now(), text=text, calls=done, progress=progress)
        advice = watcher(facts)
        if advice is not None:
            _follow(run, advice)


def _follow(run: RunState, advice: Advice) -> None:
    """Follow a watcher's advice (harness document §6.2)."""
    run.tell(events.HarnessSpoke(run.now(), run.job, "protection", advice.kind, advice.reason))
    match advice.kind:
        case "stop":
            raise Ended("stuck", advice.reason)
        case "fewer_tools":
            # Keep the tools of open steps, without which the run could neither continue nor answer.
            run.hidden |= frozenset(advice.tools) - frozenset(run.enforcer.open)
            run.conversation.add({"role": ROLE, "content": PREFIX + advice.reason})
        case "nudge":
            _nudge(run, Failure.STUCK, {"reason": advice.reason})


def fail_reply(
    run: RunState,
    reply: ModelReply,
    calls: Sequence[WrittenCall],
    failure: Failure,
    details: Mapping[str, object],
) -> None:
    """Append an unusable reply without executing its calls, then a nudge."""
    written = numbered(calls)
    answer_calls(run, reply, reply.text, written, ["Error: not executed."] * len(written))
    fail(run, failure, details)


def fail(run: RunState, failure: Failure, details: Mapping[str, object]) -> None:
    """Count an unusable reply and append a nudge; raises `Ended` if no nudge is left."""
    run.counters.exceptions += 1
    run.counters.turn_ended(failed=True)
    _nudge(run, failure, details)


def _nudge(run: RunState, failure: Failure, details: Mapping[str, object]) -> None:
    number = run.nudges.take()
    if number is None:
        shown_details = ", ".join(f"{key}={value}" for key, value in details.items())
        raise Ended(
            "max_nudges",
            f"Agent failed after {run.nudges.given}. Last failure: {failure.value} — {shown_details or 'no details'}",
        )
    text = nudge_text(failure, details)
    run.nudged.append(failure)
    run.tell(events.Nudged(run.now(), run.job, failure.value, number, run.spec.nudges, text))
    run.conversation.add({"role": ROLE, "content": text})
