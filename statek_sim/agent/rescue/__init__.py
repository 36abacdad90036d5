"""Rescue parsing (document 004, section 6): a model's raw text becomes tool calls, or a refusal with a reason.

result = rescue('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', ["f"])
assert result.calls[0].arguments == {"a": 1}
"""

from __future__ import annotations

from statek_sim.agent.rescue.hints import HINTS as HINTS
from statek_sim.agent.rescue.hints import hint_called as hint_called
from statek_sim.agent.rescue.parser import Reformat as Reformat
from statek_sim.agent.rescue.parser import rescue as rescue
from statek_sim.agent.rescue.stream import RescueStream as RescueStream
from statek_sim.agent.rescue.values import Call as Call
from statek_sim.agent.rescue.values import Limits as Limits
from statek_sim.agent.rescue.values import Reason as Reason
from statek_sim.agent.rescue.values import Refusal as Refusal
from statek_sim.agent.rescue.values import Rescued as Rescued
from statek_sim.agent.rescue.values import Span as Span
from statek_sim.agent.rescue.variants import DOCUMENT as DOCUMENT
from statek_sim.agent.rescue.variants import FORGE as FORGE
from statek_sim.agent.rescue.variants import HARDENED as HARDENED
from statek_sim.agent.rescue.variants import RULES as RULES
from statek_sim.agent.rescue.variants import RescueRules as RescueRules
from statek_sim.agent.rescue.variants import rescue_rules as rescue_rules
