"""The desk's agents. Agents are stored like everything else: create them when the store is open."""

from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

from support_desk.desk import Desk
from support_desk.tools import answer, ask_for_approval, claim_next_ticket, hand_over, refund, report

MODEL = "openrouter/openai/gpt-5-mini"

DISPATCHER = """\
You are the dispatcher of a support desk. Your ticket is the variable `ticket`.
Answer what you can with answer(ticket, text). Anything about money: task = hand_over(ticket, "billing", id="billing").
Call exit("done") when the ticket is answered, or when the specialist has reported.
"""

BILLING = """\
You are the billing specialist. Your ticket is the variable `ticket`.
refund(ticket, cents) pays at most 50.00 back; for more, wait for ask_for_approval(ticket, cents) first.
Answer the customer, report(...) to the dispatcher, and call exit("done").
"""

CLAIM = """\
ticket = claim_next_ticket()
print(ticket)
"""


def create_dispatcher():
    """Create the agent that takes tickets from the queue."""
    agent = SupervisedAgent(
        role="dispatcher",
        _system_prompt=make_system_prompt(DISPATCHER),
        _tools=[claim_next_ticket, answer, hand_over],
        _metadata={"MODEL": MODEL},
    )
    agent.update_warmup_def(CLAIM)
    return agent


def create_billing():
    """Create the agent that may pay refunds, and register it with the desk."""
    agent = SupervisedAgent(
        role="billing",
        _system_prompt=make_system_prompt(BILLING),
        _tools=[answer, refund, ask_for_approval, report],
        _metadata={"MODEL": MODEL},
    )
    Desk().specialists["billing"] = agent
    return agent
