"""The desk's process is killed midway and another one continues: nothing is lost or done twice."""

import os
import signal
from dataclasses import replace

import pytest
from support_desk.agents import create_billing, create_dispatcher
from support_desk.desk import Desk, Ticket, TicketStatus

SCRIPT = {
    "dispatcher": [
        "task = hand_over(ticket, 'billing', id='billing')\nexit('handed over')",
        "exit('closed')",
    ],
    "billing": ["print(refund(ticket, 1999))", "answer(ticket, 'Done.')\nreport('refunded')\nexit('done')"],
}


def serve(app, store):
    """Run the desk like each of its processes; return the state of its jobs, tickets and money."""
    desk = Desk()
    billing, dispatcher = create_billing(), create_dispatcher()
    app.script(**SCRIPT)
    if not app.keep_in(f"sqlite:{store}", agents=[billing, dispatcher]):
        desk.open_ticket("Cleo", "I want 19.99 back.")
        app.create_job(dispatcher, name="dispatch")
    app.run()
    (ticket,) = desk.tickets
    assert desk is Desk()
    # What the dead process was in the middle of is told too, as a call that never returned.
    jobs = [
        replace(job, tools=tuple(use for use in job.tools if use.result or use.error)) for job in app.jobs
    ]
    return jobs, ticket.status, ticket.reply, ticket.attempts, [tuple(entry) for entry in desk.refunds]


def serve_in_a_process(app, store, told):
    """Serve in a separate process; return the signal that killed it, and write its output."""
    child = os.fork()
    if child == 0:
        try:
            told.write_text(repr(serve(app, store)))
        except Exception as error:  # noqa: BLE001  # told in the parent
            told.write_text(repr(error))
        finally:
            os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def dies_after(method):
    def last(self, *args):
        method(self, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    return last


@pytest.fixture
def killed(statek_app, tmp_path, monkeypatch):
    """Serves in a process that is killed at the end of a method, then continues in this one; returns the state."""
    if statek_app.backend == "installed":
        pytest.skip("the installed package has its own store")

    def serve_twice(kind, method):
        with monkeypatch.context() as patched:
            patched.setattr(kind, method, dies_after(getattr(kind, method)))
            assert (
                serve_in_a_process(statek_app, tmp_path / "killed.db", tmp_path / "never") == signal.SIGKILL
            )
        assert not (tmp_path / "never").exists()
        return serve(statek_app, tmp_path / "killed.db")

    return serve_twice


@pytest.mark.parametrize(("kind", "method"), [(Desk, "refund"), (Ticket, "answer")])
def test_a_desk_that_is_killed_ends_as_one_that_is_not(statek_app, tmp_path, killed, kind, method):
    assert serve_in_a_process(statek_app, tmp_path / "whole.db", tmp_path / "whole") == 0
    assert repr(killed(kind, method)) == (tmp_path / "whole").read_text()


def test_a_desk_that_is_killed_while_it_claims_has_claimed_once(killed):
    jobs, status, reply, attempts, refunds = killed(Ticket, "claim")
    assert [job.exit for job in jobs] == ["closed", "done"]
    assert (status, reply, attempts, refunds) == (TicketStatus.ANSWERED, "Done.", 1, [(1, 1999)])
