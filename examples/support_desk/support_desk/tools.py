"""The agents' tools."""

import dbzero as db0
from statek import complete_sub_task, create_new_job, error_handler, get_current_job, subtask, tool
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal

from support_desk.desk import Approval, Decision, Desk, Ticket


@error_handler
def _give_back(ticket, error=None):
    """Release a ticket when the job that holds it ends, so that another job can claim it."""
    if ticket is not None:
        ticket.give_back(str(error) if error else "the job ended")


@tool(error_handler=_give_back)
def claim_next_ticket(**kwargs):
    """Claim the oldest ticket that nobody works on; None when there is none."""
    return Desk().claim_next()


@tool
def answer(ticket: Ticket, text: str, **kwargs):
    """Send the customer an answer and close the ticket."""
    ticket.answer(text)


@tool
def refund(ticket: Ticket, cents: int, **kwargs):
    """Pay money back. More than the limit needs an approval first.

    Args:
        ticket (required): The ticket that the refund is for.
        cents (required): How much, in cents.
    """
    desk = Desk()
    if cents <= 0:
        raise ValueError(f"a refund is a positive number of cents, not {cents}")
    if cents > desk.allowed(ticket):
        return {"status": "refused", "reason": f"at most {desk.allowed(ticket)} cents without an approval"}
    desk.refund(ticket, cents)
    return {"status": "refunded", "cents": cents}


@db0.memo
class ApprovalFuture(FutureResult):
    """The decision on one approval."""

    def __init__(self, approval: Approval):
        super().__init__(deps=approval, state_num=0)
        self.approval = approval


def is_decided(future: ApprovalFuture) -> bool:
    """Return whether somebody has decided."""
    return future.approval.decision != Decision.OPEN


def decision(future: ApprovalFuture) -> str:
    """Return "ALLOWED" or "DENIED"."""
    if not is_decided(future):
        raise FutureError(future)
    return str(future.approval.decision)


@temporal(complement=decision, condition=is_decided)
@tool
def ask_for_approval(ticket: Ticket, cents: int, **kwargs) -> FutureResult:
    """Ask a person to allow a refund; using the result waits until they decide."""
    approval = Approval(ticket, cents)
    Desk().approvals.append(approval)
    return ApprovalFuture(approval)


@subtask
def hand_over(ticket: Ticket, topic: str, **kwargs):
    """Let a specialist work on the ticket; they report back."""
    specialist = Desk().specialists.get(topic)
    if specialist is None:
        raise ValueError(f"there is no specialist for {topic!r}; there are: {', '.join(Desk().specialists)}")
    return create_new_job(specialist, shared_vars={"ticket": ticket}, parent_job=get_current_job())


@tool
def report(result: str, **kwargs):
    """Tell the dispatcher how a ticket that was handed over ended."""
    complete_sub_task(result)
