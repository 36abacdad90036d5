"""Contracts that parts of anybody's harness can be held to: `check_...` raises `ContractViolation` at a breach.

Each takes an adapter or a function that makes the part, and returns how many rules were checked. `..._findings` returns
the breaches instead.
"""

from statek_sim.agent.checkpoints.contract import StoreFinding, check_checkpoint_store, store_findings
from statek_sim.agent.checkpoints.seals import check_anchor
from statek_sim.agent.containers.contract import check_container
from statek_sim.agent.context.contract import check_compaction, compaction_findings
from statek_sim.agent.escalation.contract import LadderFinding, check_ladder, ladder_findings
from statek_sim.agent.guards.contract import GuardFinding, check_guard, guard_findings
from statek_sim.agent.memory.contract import HandoffFinding, check_handoff, handoff_findings
from statek_sim.agent.permissions.contract import check_permission_policy, permission_findings
from statek_sim.agent.protection.contract import breaker_findings, check_breaker
from statek_sim.agent.rescue.contract import check_rescue_parser
from statek_sim.agent.slots.contract import SlotFinding, check_slot_worker, slot_findings
from statek_sim.agent.steps.contract import check_step_enforcer, step_enforcer_findings
from statek_sim.agent.tools.contract import check_tool_registry
from statek_sim.errors import ContractViolation
from statek_sim.providers.contract import check_provider

__all__ = [
    "ContractViolation",
    "GuardFinding",
    "HandoffFinding",
    "LadderFinding",
    "SlotFinding",
    "StoreFinding",
    "breaker_findings",
    "check_anchor",
    "check_breaker",
    "check_checkpoint_store",
    "check_compaction",
    "check_container",
    "check_guard",
    "check_handoff",
    "check_ladder",
    "check_permission_policy",
    "check_provider",
    "check_rescue_parser",
    "check_slot_worker",
    "check_step_enforcer",
    "check_tool_registry",
    "compaction_findings",
    "guard_findings",
    "handoff_findings",
    "ladder_findings",
    "permission_findings",
    "slot_findings",
    "step_enforcer_findings",
    "store_findings",
]
