"""Refunds are paid within the limit, and beyond it with approval."""

import pytest
from support_desk.agents import create_billing
from support_desk.desk import REFUND_LIMIT, Decision


@pytest.fixture
def ticket(desk):
    """A ticket that the billing specialist is working on."""
    desk.open_ticket("Bo", "I was charged twice.")
    return desk.claim_next()


@pytest.fixture
def work(statek_app, ticket):
    """Starts the billing specialist's job on that ticket and returns it."""

    def start():
        return statek_app.create_job(create_billing(), shared_vars={"ticket": ticket}, name="work")

    return start


def test_a_small_refund_is_paid_at_once(statek_app, desk, ticket, work):
    statek_app.script(billing=["print(refund(ticket, 1999))\nanswer(ticket, 'Refunded.')\nexit('done')"])
    work()
    statek_app.run()

    assert [tuple(entry) for entry in desk.refunds] == [(1, 1999)]
    assert ticket.refunded == 1999
    assert statek_app.job("work").console[0] == '{"status":"refunded","cents":1999}'


@pytest.mark.parametrize("parts", [[REFUND_LIMIT + 1], [REFUND_LIMIT, 1]], ids=["at-once", "in-parts"])
def test_beyond_the_limit_nothing_is_paid(statek_app, desk, ticket, work, parts):
    code = "\n".join(f"print(refund(ticket, {cents})['status'])" for cents in parts)
    statek_app.script(billing=[f"{code}\nexit('done')"])
    work()
    statek_app.run()

    assert statek_app.job("work").console[-2:][0] == "refused"
    assert ticket.refunded == sum(parts[:-1])


def test_a_nonsensical_refund_is_an_error_that_the_model_sees(statek_app, desk, ticket, work):
    statek_app.script(billing=["refund(ticket, -5)", "exit('gave up')"])
    work()
    statek_app.run()

    assert statek_app.job("work").exceptions == 1
    assert statek_app.job("work").tool_calls("refund")[0].error == (
        "ValueError: a refund is a positive number of cents, not -5"
    )
    assert "a refund is a positive number of cents" in statek_app.requests[-1].messages[-1]["content"]
    assert len(desk.refunds) == 0


def approve(desk, decision):
    (approval,) = desk.open_approvals()
    approval.decision = decision


ASK = """\
decision = ask_for_approval(ticket, 20000)
if decision == "ALLOWED":
    print(refund(ticket, 20000)["status"])
exit(decision)
"""


def test_a_large_refund_waits_for_an_approval(statek_app, desk, ticket, work):
    statek_app.script(billing=[ASK])
    work()

    outcome = statek_app.run(until=60)
    assert outcome.waiting == ("work",)
    assert statek_app.job("work").status == "SUSPENDED"
    assert statek_app.job("work").tool_calls("ask_for_approval")[0].result == "<future>"
    assert ticket.refunded == 0

    approve(desk, Decision.ALLOWED)
    statek_app.run()
    assert statek_app.job("work").exit == "ALLOWED"
    assert ticket.refunded == 20_000


def test_a_denied_refund_is_not_paid_however_late_the_answer(statek_app, desk, ticket, work):
    statek_app.script(billing=[ASK])
    work()
    statek_app.at(86_400, lambda: approve(desk, Decision.DENIED))
    outcome = statek_app.run()

    assert outcome.at == 86_400
    assert statek_app.job("work").exit == "DENIED"
    assert len(desk.refunds) == 0


@pytest.mark.statek(limits={"max_turns": 2})
def test_a_specialist_without_an_end_is_stopped_by_the_harness(statek_app, ticket, work):
    statek_app.script(billing=["x = 1"] * 3)
    work()
    statek_app.run()

    assert statek_app.job("work").stop == "max_turns"
    assert statek_app.job("work").error == "Maximum number of turns exceeded: 3/2"
