"""The desk's data: tickets, approvals and the refund ledger. Every class is stored by dbzero."""

import dbzero as db0

TicketStatus = db0.enum("TicketStatus", ["NEW", "CLAIMED", "ANSWERED", "FAILED"])
Decision = db0.enum("Decision", ["OPEN", "ALLOWED", "DENIED"])

MOST_ATTEMPTS = 2
"""How many jobs may fail on a ticket before a person must handle it."""

REFUND_LIMIT = 5_000
"""Maximum refund per ticket, in cents, without approval."""


@db0.memo
class Ticket:
    """A customer's request. Only the job that claimed it works on it."""

    def __init__(self, number: int, customer: str, text: str):
        self.number = number
        self.customer = customer
        self.text = text
        self.status = TicketStatus.NEW
        self.reply = None
        self.attempts = 0
        self.note = None
        self.refunded = 0

    def __llm_repr__(self) -> str:
        return f"ticket {self.number} of {self.customer}: {self.text}"

    def claim(self) -> None:
        """Start work on the ticket."""
        self.status = TicketStatus.CLAIMED
        self.attempts += 1

    def answer(self, text: str) -> None:
        """Answer and close the ticket, which must be claimed."""
        if self.status != TicketStatus.CLAIMED:
            raise RuntimeError(f"ticket {self.number} is not claimed")
        self.reply = text
        self.status = TicketStatus.ANSWERED

    def give_back(self, reason: str) -> None:
        """End a failed claim; after `MOST_ATTEMPTS`, a person must handle the ticket."""
        if self.status == TicketStatus.CLAIMED:
            self.note = reason
            self.status = TicketStatus.FAILED if self.attempts >= MOST_ATTEMPTS else TicketStatus.NEW


@db0.memo
class Approval:
    """A refund that a person must approve."""

    def __init__(self, ticket: Ticket, cents: int):
        self.ticket = ticket
        self.cents = cents
        self.decision = Decision.OPEN

    def __llm_repr__(self) -> str:
        return f"approval of {self.cents} cents for ticket {self.ticket.number}: {self.decision}"


@db0.memo(singleton=True)
class Desk:
    """The root object for everything above. `Desk()` always returns the same object."""

    def __init__(self):
        self.tickets = []
        self.approvals = []
        self.refunds = []
        self.specialists = {}

    def open_ticket(self, customer: str, text: str) -> Ticket:
        """Add a new ticket to the queue."""
        ticket = Ticket(len(self.tickets) + 1, customer, text)
        self.tickets.append(ticket)
        return ticket

    def waiting(self) -> int:
        """Return the number of unclaimed tickets."""
        return sum(ticket.status == TicketStatus.NEW for ticket in self.tickets)

    def claim_next(self) -> Ticket | None:
        """Claim the oldest new ticket."""
        for ticket in self.tickets:
            if ticket.status == TicketStatus.NEW:
                ticket.claim()
                return ticket
        return None

    def allowed(self, ticket: Ticket) -> int:
        """Return how many cents may still be refunded for a ticket."""
        granted = sum(
            approval.cents
            for approval in self.approvals
            if approval.ticket == ticket and approval.decision == Decision.ALLOWED
        )
        return REFUND_LIMIT + granted - ticket.refunded

    def refund(self, ticket: Ticket, cents: int) -> None:
        """Add a refund to the ledger."""
        ticket.refunded += cents
        self.refunds.append((ticket.number, cents))

    def open_approvals(self) -> list:
        """Return the pending approvals."""
        return [approval for approval in self.approvals if approval.decision == Decision.OPEN]
