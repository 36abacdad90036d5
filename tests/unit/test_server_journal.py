"""The server's journal shows no key that a client sent, wherever in its request it comes again."""

from __future__ import annotations

import json

from statek_sim.server.journal import Journal, JournalEntry
from tests.tables import table_test

KEY = "Opaque-4f9Qm2Zr8"
LARGE = "x" * 2_000_000


def entry(body: bytes, target: str = "/v1/messages", problem: str | None = None) -> JournalEntry:
    """Return the entry of a request that was sent with a key that looks like none."""
    headers = {"authorization": f"Bearer {KEY}"} if "?" not in target else {}
    return JournalEntry(
        number=1,
        wire="anthropic",
        raw_target=target,
        raw_headers=headers,
        body=body,
        status=200,
        problem=problem,
    )


@table_test("target", ["/v1/messages", f"/v1/messages?key={KEY}"])
@table_test(
    "body",
    [
        json.dumps({"note": f"it is {KEY}"}),
        json.dumps({"note": f"it is {KEY}", "more": LARGE}),
        f"it is {KEY}",
        f"note=it+is+{KEY}",
        f"it is {KEY} {LARGE}",
        f"{'.' * 9_990} {KEY}, and more {LARGE}",
        '{"note": "it is \\udcff ' + KEY,
    ],
    ids=["JSON", "large JSON", "a text", "a form", "a large text", "a key at the cut", "broken JSON"],
)
def test_a_key_that_was_sent_is_hidden_in_bodies_of_any_size_and_kind(body: str, target: str) -> None:
    shown = json.dumps(entry(body.encode("utf-8", "surrogatepass"), target).record())
    assert KEY not in shown
    assert KEY[:9] not in shown


def test_a_key_that_was_sent_is_hidden_in_the_problem() -> None:
    failed = entry(b"{}", problem=f"no reply for {KEY}")
    assert KEY not in json.dumps(failed.record())
    assert KEY not in failed.line()


def test_a_key_that_was_sent_is_hidden_in_the_list_of_problems() -> None:
    journal = Journal()
    journal.add(entry(b"{}", problem=f"no reply for {KEY}"))
    assert journal.problems == ["no reply for REDACTED"]
