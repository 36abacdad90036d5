"""An agent's permissions, for use as a gate in its loop or directly under asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from statek_sim.agent.approvals import why_not, word_of
from statek_sim.agent.effects import Ask, Delayed, PersonSaid, Question, ToolCall, ToolOutcome
from statek_sim.agent.execution import in_time
from statek_sim.agent.permissions.paths import Files, resolved
from statek_sim.agent.permissions.policy import Decision, Policy, decide
from statek_sim.agent.tools.tool import Tool

FindTool = Callable[[str], Tool | None]
"""Takes a name and returns the tool, or None if it does not exist, like `Registry.get`."""


class Permissions:
    """Decides on calls according to a policy, with access to the tools and files it needs; stateless."""

    def __init__(self, policy: Policy, find: FindTool, files: Files) -> None:
        root = resolved(policy.root, "/", files)
        self._policy = policy if root == policy.root else replace(policy, root=root)
        self._find = find
        self._files = files

    @property
    def policy(self) -> Policy:
        """The policy, with any links in its root resolved."""
        return self._policy

    def decide(self, call: ToolCall) -> Decision:
        """Return the policy's decision on a call."""
        return decide(self._policy, self._find(call.name), call, self._files)

    def question(self, call: ToolCall, decision: Decision) -> Ask:
        """Return the question to ask a person about a call."""
        arguments = ", ".join([f"{key}={value!r}" for key, value in call.arguments.items()])
        return Ask(
            text=f"May {call.name}({arguments}) be called? ({decision.reason})",
            seconds=self._policy.seconds,
            confirms=True,
        )

    async def allowed(
        self,
        call: ToolCall,
        person: Callable[[Question], Awaitable[PersonSaid | str | bool | Delayed]] | None = None,
    ) -> Decision:
        """Return "allow" or "deny" for a call, asking a person if needed, within the policy's deadline."""
        decision = self.decide(call)
        if decision.effect != "ask":
            return decision
        if person is None:
            return replace(decision, effect="deny", reason=f"{decision.reason}: there is no person to ask")
        ask = self.question(call, decision)
        question = Question(
            token=call.id, job="", tool=call.name, text=ask.text, seconds=ask.seconds, confirms=True
        )
        try:
            async with asyncio.timeout(ask.seconds) as limit:
                answer = await in_time(await person(question))
        except TimeoutError:
            if not limit.expired():
                raise
            return replace(decision, effect="deny", reason=f"nobody answered within {ask.seconds:g} seconds")
        word = word_of(question, answer)
        if word.kind != "answered":
            return replace(decision, effect="deny", reason=why_not(word, ask))
        return replace(decision, effect="allow", reason="a person allowed it")


class PermissionGate:
    """Permissions as a gate in an agent's loop: `Parts(gates=[PermissionGate(...)])`, after gates that only refuse."""

    stateless = True
    """The gate has no state to checkpoint; approvals are part of the run's state."""

    def __init__(self, permissions: Permissions) -> None:
        self._permissions: Final = permissions

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return the reason for refusing a call, a question for a person, or None to allow the call."""
        decision = self._permissions.decide(call)
        if decision.effect == "ask":
            return self._permissions.question(call, decision)
        return None if decision.effect == "allow" else f"permission denied: {decision.reason}"

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Do nothing, because the gate has no state."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Do nothing, because the gate has no state."""
