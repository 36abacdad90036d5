"""The dispatcher hands over tickets, and the worker continues while there are any."""

from support_desk import worker
from support_desk.desk import TicketStatus

HAND_OVER = "task = hand_over(ticket, 'billing', id='billing')\nexit('handed over')"


def test_a_question_about_money_goes_to_billing_and_comes_back(statek_app, desk, dispatcher):
    ticket = desk.open_ticket("Cleo", "I want 19.99 back.")
    statek_app.script(
        dispatcher=[HAND_OVER, "exit('closed')"],
        billing=["refund(ticket, 1999)\nanswer(ticket, 'Done.')\nreport('refunded')\nexit('done')"],
    )
    statek_app.create_job(dispatcher, name="dispatch")
    statek_app.run()

    assert ticket.reply == "Done."
    assert statek_app.job("dispatch").subtasks == {"billing": "COMPLETED"}
    assert statek_app.job("dispatch").exit == "closed"
    assert statek_app.job_of("billing").parent == "dispatch"


def test_when_the_specialist_fails_the_ticket_comes_back(statek_app, desk, dispatcher):
    ticket = desk.open_ticket("Cleo", "I want 19.99 back.")
    statek_app.script(dispatcher=[HAND_OVER], billing=["1/0", "1/0", "never runs"])
    statek_app.create_job(dispatcher, name="dispatch")
    statek_app.run()

    # The child inherits its parent's handlers: it holds the claim now.
    assert [call.name for call in statek_app.job_of("billing").handlers] == ["_give_back"]
    assert ticket.status == TicketStatus.NEW


def test_an_unknown_specialist_is_an_error_that_names_those_there_are(statek_app, desk, dispatcher):
    desk.open_ticket("Cleo", "I want 19.99 back.")
    statek_app.script(dispatcher=["task = hand_over(ticket, 'magic', id='x')", "exit('gave up')"])
    job = statek_app.create_job(dispatcher)
    statek_app.run()

    assert statek_app.job(job).tool_calls("hand_over")[0].error == (
        "ValueError: there is no specialist for 'magic'; there are: billing"
    )


def test_the_worker_starts_a_job_for_every_ticket(statek_app, desk):
    tickets = [desk.open_ticket(name, "Hello?") for name in ("Ada", "Bo", "Cleo")]
    statek_app.script(dispatcher=["answer(ticket, 'Hello!')\nexit('done')"] * 3)

    worker.serve()

    assert [ticket.reply for ticket in tickets] == ["Hello!"] * 3
    assert [job.exit for job in statek_app.jobs] == ["done"] * 3
