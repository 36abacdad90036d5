"""The person of an eval: which calls they are asked about, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statek_sim.agent.approvals import question_about
from statek_sim.agent.effects import Ask, PersonSaid, Question, ToolCall, ToolOutcome
from statek_sim.evals.expression import evaluate, filled
from statek_sim.evals.world import World

if TYPE_CHECKING:
    from statek_sim.evals.written import Approval


class Approving:
    """A gate before the calls that a person has to allow, and the person who is asked about them.

    Put it last among the gates of a harness and give `person` as its person; without a gate, `allows` says the same.
    """

    def __init__(
        self, approvals: Mapping[str, Approval], world: World, parameters: Mapping[str, Any]
    ) -> None:
        self._approvals = approvals
        self._world = world
        self._parameters = parameters
        self._about: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return the question, for a call that needs leave."""
        approval = self._approvals.get(call.name)
        if approval is None:
            return None
        ask = question_about(Ask(text=approval.asks, confirms=True), call)
        self._about[ask.text] = call.name, call.arguments
        return ask

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Do nothing: every call is asked about anew."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Do nothing: no right was given."""

    def person(self, question: Question) -> PersonSaid:
        """Answer a question of this gate; `LookupError` for another one."""
        if question.text not in self._about:
            raise LookupError(f"{question.text!r}: the person of this eval knows only about its approvals")
        return self.allows(*self._about[question.text])

    def allows(self, tool: str, arguments: Mapping[str, Any]) -> PersonSaid:
        """Return what the person says about a call, and note a refusal; what needs no leave has it."""
        approval = self._approvals.get(tool)
        if approval is None:
            return PersonSaid("answered", "yes")
        scope = self._world.scope({**dict.fromkeys(self._parameters[tool].parameters), **arguments})
        if evaluate(approval.allows, scope):
            return PersonSaid("answered", "yes")
        because = filled(approval.because, scope)
        self._world.refused(tool, arguments, because)
        return PersonSaid("refused", because)
