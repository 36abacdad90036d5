"""Rescue parsing (agent document §6): finds tool calls that a model wrote as plain text, or rejects them.

result = rescue('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', ["f"])
assert result.calls[0].arguments == {"a": 1}
"""

from __future__ import annotations

from statek_sim.agent.rescue.formats import DIALECTS as DIALECTS
from statek_sim.agent.rescue.formats import dialect_called as dialect_called
from statek_sim.agent.rescue.formats import dialect_of as dialect_of
from statek_sim.agent.rescue.parser import Reformat as Reformat
from statek_sim.agent.rescue.parser import RescueStream as RescueStream
from statek_sim.agent.rescue.parser import rescue as rescue
from statek_sim.agent.rescue.values import Call as Call
from statek_sim.agent.rescue.values import Limits as Limits
from statek_sim.agent.rescue.values import Reason as Reason
from statek_sim.agent.rescue.values import Refusal as Refusal
from statek_sim.agent.rescue.values import Rescued as Rescued
from statek_sim.agent.rescue.values import Span as Span
