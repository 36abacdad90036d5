"""A library whose loans are found through indexes."""
# mypy: ignore-errors

from datetime import date, datetime, time, timedelta

import dbzero as db0
from statek import tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt


@db0.memo
class Loan:
    def __init__(self, number, due=None):
        self.number = number
        self.due = due

    def __llm_repr__(self):
        return f"loan {self.number}"


@db0.memo(singleton=True)
class Library:
    def __init__(self):
        self.by_due = db0.index()

    def lend(self, number, due):
        loan = Loan(number, due)
        self.by_due.add(due, loan)
        return loan

    @db0.immutable
    def overdue(self, today):
        return list(self.by_due.sort(self.by_due.select(None, today, null_first=False)))


@tool
def overdue(day: date, **kwargs):
    """Tell what should be back."""
    return Library().overdue(day)


@tool
def lend(number: int, day: date = None, **kwargs):
    """Lend a book."""
    return Library().lend(number, day)


def numbers(query):
    return [loan.number for loan in query]


def filled(*keys):
    index, loans = db0.index(), [Loan(number) for number in range(len(keys))]
    for key, loan in zip(keys, loans, strict=True):
        index.add(key, loan)
    return index, loans


def test_a_clerk_asks_an_index(statek_app, facts):
    statek_app.script(
        clerk=[
            "a = lend(1, '2026-03-01')\nb = lend(2, '2026-02-01')\nc = lend(3)",
            "print(overdue('2026-02-15'))\nprint(overdue('2027-01-01'))",
            "exit(len(overdue('2026-02-15')))",
        ]
    )
    statek_app.create_job(
        SupervisedAgent(
            role="clerk",
            _system_prompt=make_system_prompt("You lend."),
            _tools=[overdue, lend],
            _metadata={"MODEL": "openai/gpt-4o"},
        )
    )
    statek_app.run()


def test_order_and_bounds(statek_app, facts):
    index, loans = filled(5, 3, None, 3, 9, 1)
    facts["all"] = [numbers(index.select()), len(index), bool(index), bool(db0.index())]
    for descending in (False, True):
        for first in (False, True):
            query = index.sort(index.select(), desc=descending, null_first=first)
            facts[f"sorted {descending} {first}"] = [numbers(query), len(query)]
    for bounds in ((3, 5), (4, None), (None, 4), (7, 3), (3, 3), (None, None)):
        facts[str(bounds)] = [numbers(index.select(*bounds, null_first=first)) for first in (False, True)]
    facts["found"] = [
        numbers(db0.find(Loan, index.select(3, 5))),
        numbers(index.sort(db0.find(Loan))),
        numbers(db0.find(Loan, db0.no(index.select(3, 5)))),
        numbers(index.sort(db0.filter(lambda loan: loan.number > 2, index.select()))),
        numbers(db0.find((index.select(3, 9), index.select(1, 4)))),
    ]
    other, _ = filled(1, 1)
    facts["not in it"] = numbers(other.sort(index.select()))
    for at, (first, second) in enumerate([(1, 1), (1, 0), (0, 5), (0, 4)]):
        other.add(first, loans[at])
        index.add(second, loans[at])
    facts["twice"] = [len(index), numbers(index.select(0, 1))]


def test_sorted_by_two(statek_app, facts):
    one, loans = filled(1, 1, 0, 0)
    other = db0.index()
    for key, loan in zip((1, 0, 5, 4), loans, strict=True):
        other.add(key, loan)
    for desc in (False, True):
        for inner in (False, True):
            facts[f"{desc} {inner}"] = numbers(one.sort(other.sort(other.select(), desc=inner), desc=desc))
    nothing, _ = filled(None, 2, None, 1, None)
    facts["nothing"] = [
        numbers(nothing.sort(nothing.select(), desc=desc, null_first=first))
        for desc in (False, True)
        for first in (False, True)
    ]


KEYS = {
    "dates": (date(2026, 1, 3), date(2026, 1, 1), None),
    "times of day": (time(3), time(1)),
    "moments": (datetime(2026, 1, 1, 0, 0, 0, 5), datetime(2026, 1, 1), datetime(2025, 3, 1)),
    "dates and moments": (datetime(2025, 1, 1), date(2026, 1, 1), datetime(2027, 1, 1), date(2024, 1, 1)),
    "largest": (2**63 - 1, -(2**63), 0),
}


def test_kinds_of_keys(statek_app, facts):
    for kind, keys in KEYS.items():
        facts.attempt(kind, lambda keys=keys: [numbers(i.sort(i.select())) for i in (filled(*keys)[0],)])
    days, _ = filled(date(2026, 1, 3), date(2026, 1, 1))
    facts["moments of days"] = [
        numbers(days.select(*bounds))
        for bounds in (
            (datetime(2026, 1, 1), datetime(2026, 1, 31)),
            (None, datetime(2020, 1, 1)),
            (datetime(2020, 1, 1), None),
            (date(2026, 1, 2), date(2026, 1, 31)),
        )
    ]


def test_changes(statek_app, facts):
    index, loans = filled(0, 1, 2)
    query, ordered = index.select(), index.sort(index.select())
    index.add(3, Loan(3))
    facts["not looked at"] = [numbers(query), numbers(ordered)]
    facts["counted"] = [len(index), numbers(query), numbers(ordered)]
    index.remove(0, loans[0])
    facts["removed"] = [numbers(query), len(index), numbers(query)]
    index.remove(0, loans[0])
    index.remove(5, loans[1])
    index.add(1, loans[1])
    facts["unchanged"] = [len(index), numbers(index.sort(index.select()))]
    index.clear()
    facts["cleared"] = len(index)


def test_what_an_index_is_not(statek_app, facts):
    index, loans = filled(1, 2)
    facts.attempt("iterated", lambda: list(index))
    facts.attempt("by number", lambda: index[0])
    facts.attempt("no object", lambda: index.add(1, "x"))
    facts.attempt("sorted list", lambda: index.sort(loans))
    facts["is memo"] = [db0.is_memo(index), db0.is_memo(loans[0])]
    Library().by_due = index
    facts["kept"] = [Library().by_due is index, len(Library().by_due)]


def test_prefixes(statek_app, facts):
    loan = Loan(1)
    facts["name"] = [db0.get_prefix_of(loan).name, db0.get_current_prefix().name]
    facts["set"] = db0.set_prefix(loan, None)
    facts.attempt("plain", lambda: db0.set_prefix(object(), None))


def test_tags_of_several(statek_app, facts):
    loans = [Loan(number) for number in range(3)]
    db0.tags(*loans[:2]).add("LATE")
    db0.tags(loans[1]).add("LOST")
    facts["found"] = [
        numbers(db0.find(Loan, "LATE")),
        numbers(db0.find(Loan, ("LATE", "LOST"))),
        numbers(db0.find(Loan, ["LATE", "LOST"])),
    ]
    db0.tags(*loans).remove("LATE")
    facts["removed"] = numbers(db0.find(Loan, "LATE"))
