"""A claimed ticket is either answered or returned to the queue."""

from support_desk.desk import TicketStatus


def test_a_ticket_is_claimed_and_answered(statek_app, desk, dispatcher):
    ticket = desk.open_ticket("Ada", "Where is my invoice?")
    statek_app.script(dispatcher=["answer(ticket, 'In your mailbox.')\nexit('done')"])

    job = statek_app.create_job(dispatcher)
    statek_app.run()

    assert ticket.reply == "In your mailbox."
    assert ticket.status == TicketStatus.ANSWERED
    assert statek_app.job(job).exit == "done"
    assert statek_app.job(job).console[0] == "ticket 1 of Ada: Where is my invoice?"
    assert [use.name for use in statek_app.job(job).tools] == ["claim_next_ticket", "answer"]


def test_a_job_that_keeps_failing_gives_its_ticket_back(statek_app, desk, dispatcher):
    ticket = desk.open_ticket("Ada", "Where is my invoice?")
    statek_app.script(dispatcher=["1/0", "1/0", "print('paid for, never runs')"])

    statek_app.create_job(dispatcher, name="first")
    statek_app.run()

    assert statek_app.job("first").stop == "max_consecutive_exceptions"
    assert [call.name for call in statek_app.job("first").handlers] == ["_give_back"]
    assert ticket.status == TicketStatus.NEW
    assert "Maximum consecutive exceptions exceeded" in ticket.note


def test_after_the_second_failure_a_person_has_to_look(statek_app, desk, dispatcher):
    ticket = desk.open_ticket("Ada", "Where is my invoice?")
    for name in ("first", "second"):
        statek_app.script(dispatcher=["1/0", "1/0", "print('paid for, never runs')"])
        statek_app.create_job(dispatcher, name=name)
        statek_app.run()

    assert ticket.attempts == 2
    assert ticket.status == TicketStatus.FAILED
    assert desk.claim_next() is None


def test_without_tickets_there_is_nothing_to_claim(statek_app, desk, dispatcher):
    statek_app.script(dispatcher=["exit('nothing to do')"])
    job = statek_app.create_job(dispatcher)
    statek_app.run()

    assert statek_app.job(job).locals["ticket"] is None
    assert statek_app.job(job).tool_calls("claim_next_ticket")[0].result == "None"
