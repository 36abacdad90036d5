"""A rental firm that keeps its things in models of dbzero-modelkit."""
# mypy: ignore-errors

from datetime import date, datetime, timedelta

import dbzero as db0
from dbzero_modelkit import (
    ActiveBase,
    ActiveIndex,
    Calendar,
    FiFoQueue,
    LanguageCode,
    ML_String,
    MonthStore,
    ObjectLock,
    get_date_from_month_index,
    get_month_index,
)
from statek import tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt


@db0.memo
class Offer(ActiveBase):
    def __init__(self, name, active_from=None, expires_on=None):
        super().__init__(active_from, expires_on)
        self.name = name


@db0.memo
class Sheet:
    def __init__(self):
        self.lines = []


@db0.memo(singleton=True)
class Firm:
    def __init__(self):
        self.queue = FiFoQueue()
        self.offers = ActiveIndex()
        self.bookings = Calendar(2026)
        self.sheets = MonthStore(Sheet, 2026)
        self.motto = ML_String("Rent!", LanguageCode.LEN, {LanguageCode.LPL: "Wynajmij!"})


@tool
def order(what: str, count: int = 1, **kwargs):
    """Order something."""
    Firm().queue.push_back(what=what, count=count)


@tool
def next_orders(count: int, **kwargs):
    """Take orders."""
    return Firm().queue.pop_front(count)


@tool
def offers(day: datetime, **kwargs):
    """Offers of a day."""
    return [offer.name for offer in Firm().offers.find_active(day)]


@tool
def book(day: date, who: str, **kwargs):
    """Book a day."""
    Firm().bookings.set(day, who)


@tool
def booked(first: date, last: date, **kwargs):
    """Who booked."""
    return [who for who in Firm().bookings.range(first, last)]


@tool
def motto(**kwargs):
    """The motto."""
    return Firm().motto


def create():
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You rent."),
        _tools=[order, next_orders, offers, book, booked, motto],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


def names(query):
    return [one.name for one in query]


def test_a_clerk_works_with_models(statek_app, facts):
    Firm().offers.add(Offer("spring", datetime(2026, 3, 1), datetime(2026, 5, 31)))
    Firm().offers.add(Offer("always"))
    statek_app.script(
        clerk=[
            "order('van')\norder('bike', 2)\norder('car')\nprint(next_orders(2))\nnext_orders(5)",
            "print(offers('2026-04-01T00:00'), offers('2026-01-01T00:00'))",
            "book('2026-01-03', 'Ada')\nprint(booked('2026-01-01', '2026-01-04'))\nm = motto()\nprint(m)",
            "print(m.get())\nexit('done')",
        ]
    )
    statek_app.create_job(create())
    statek_app.run()
    facts["queue"] = [Firm().queue.is_empty(), list(Firm().queue.pop_front(3))]


def test_queues(statek_app, facts):
    queue = FiFoQueue()
    facts["empty"] = [queue.is_empty(), queue.pop_front(2), queue.has_item(lambda **item: True)]
    for number in range(5):
        queue.push_back(number=number, even=number % 2 == 0)
    facts["has"] = [
        queue.has_item(lambda **item: item["number"] == 3),
        queue.has_item(lambda **item: item["number"] == 9),
        queue.has_item(lambda **item: item["number"] == 0, max_scan=2),
    ]
    facts["filtered"] = queue.pop_front(2, filter=lambda **item: item["even"])
    facts["rest"] = [queue.pop_front(9), queue.is_empty()]
    queue.push_back(rows=[1, 2], text="a\0b")
    facts["stored"] = [[list(item["rows"]), item["text"]] for item in queue.pop_front(1)]


def test_offers(statek_app, facts):
    one = Offer("one", date(2026, 1, 1), date(2026, 1, 31))
    two = Offer("two", date(2026, 2, 1), date(2026, 2, 28))
    three = Offer("three", None, datetime(2026, 1, 15))
    facts["active"] = [offer.is_active(datetime(2026, 1, 15, 12)) for offer in (one, two, three)]
    facts["now"] = [
        one.active,
        two.active,
        one.expired(datetime(2026, 2, 1)),
        one.is_active(date(2026, 1, 31)),
    ]
    facts["overlaps"] = [one.overlaps(two), one.overlaps(three), two.overlaps(three)]
    facts["adjacent"] = [
        one.is_adjacent(two),
        one.is_adjacent(two, timedelta(seconds=1)),
        one.can_merge(three),
    ]
    facts["merged"] = [str(one.merge(two, timedelta(days=1))), str(one.merge(two)), str(one.merge(three))]
    facts["by class"] = [names(db0.find(Offer)), len(db0.find(ActiveBase)), len(db0.find(ActiveIndex))]
    index = ActiveIndex()
    for offer in (one, two, three):
        index.add(offer)
    facts["all"] = [
        names(index.find()),
        names(index.find(active_from=True)),
        names(index.find(active_from=False)),
    ]
    facts["of a day"] = [
        names(index.find_active(date(2026, 1, 10))),
        names(index.find_active(date(2026, 2, 10))),
    ]
    facts["of a moment"] = [names(index.find_active(datetime(2026, 1, 10))), names(index.find_active())]
    facts["unsorted"] = sorted(names(index.find_active(date(2026, 1, 10), sort=False)))
    facts["between"] = [
        names(index.find_active_between(date(2026, 1, 20), date(2026, 2, 10), active_from=False)),
        names(index.find_active_between(date(2026, 2, 20))),
    ]
    index.update(two, expires_on=date(2026, 3, 31))
    facts["updated"] = [str(two.expires_on), names(index.find_active(date(2026, 3, 10)))]
    index.remove(two)
    facts["removed"] = names(index.find())
    facts.attempt("not there", lambda: index.update(Offer("four"), expires_on=date(2026, 3, 31)))


def test_calendars(statek_app, facts):
    calendar = Calendar(2026)
    calendar.set(date(2026, 1, 30), "a")
    calendar.set(date(2026, 3, 1), "b")
    facts["get"] = [
        calendar.get(date(2026, 1, 30)),
        calendar.get(date(2026, 2, 1)),
        calendar.get(date(2027, 2, 1)),
    ]
    facts["range"] = [list(calendar.range(date(2026, 1, 29), date(2026, 2, 1)))]
    facts["reverse"] = [str(day) for day, _ in calendar.date_range(date(2026, 2, 27), date(2026, 3, 2), True)]
    facts["set"] = [[str(day), value] for day, value in calendar]
    facts["free"] = [str(day) for day in calendar.find_not_set([date(2026, 1, 30), date(2026, 1, 31)])]
    facts.attempt("before", lambda: calendar.get(date(2025, 1, 1)))
    facts.attempt("turned round", lambda: list(calendar.range(date(2026, 2, 1), date(2026, 1, 1))))
    facts["months"] = [get_month_index(2026, date(2027, 2, 3)), str(get_date_from_month_index(2026, 13))]
    month = calendar.get_month(date(2026, 3, 1))
    facts["month"] = [month.get(date(2026, 3, 1)), list(month.range(None, date(2026, 3, 2)))]
    facts.attempt("other month", lambda: month.get(date(2026, 4, 1)))
    facts["year"] = calendar.base_year


def test_months_and_words(statek_app, facts):
    store = MonthStore(Sheet, 2026)
    facts["empty"] = [str(store), store.get_span(), store.get_recent()]
    store.get_month(date(2026, 2, 5), create=True).lines.append("x")
    store.set_month(date(2026, 4, 1), Sheet())
    facts["span"] = [str(store), [str(day) for day in store.get_span()]]
    facts["kept"] = [list(store.get_month(date(2026, 2, 1)).lines), len(store.recent)]
    facts["missing"] = store.try_get_existing_month(date(2026, 3, 1))
    facts.attempt("not made", lambda: store.get_existing_month(date(2026, 3, 1)))
    facts.attempt("before", lambda: store.get_month(date(2025, 3, 1)))
    facts.attempt("wrong", lambda: store.set_month(date(2026, 5, 1), "text"))
    words = ML_String("Hello", LanguageCode.LEN, {LanguageCode.LPL: "Cześć"})
    facts["words"] = [
        str(words),
        words.get(),
        words.get(LanguageCode.LPL),
        words.get(LanguageCode.LFR),
        words.get(LanguageCode.LFR, [LanguageCode.LPL]),
        words.get(LanguageCode.LFR, default="-"),
    ]
    facts["codes"] = [str(code) for code in LanguageCode.values()]


def test_locks(statek_app, facts):
    sheets = [Sheet(), Sheet()]
    lock = ObjectLock(sheets)
    facts["locked"] = [
        len(db0.find(Sheet, "LOCKED")),
        len(list(lock.select(Sheet))),
        len(list(lock.select(Offer))),
    ]
    lock.unlock_with_error(sheets[0])
    facts["after"] = [len(db0.find(Sheet, "LOCKED")), len(db0.find(Sheet, "ERROR"))]
    facts["until"] = str(lock.expires_at)
