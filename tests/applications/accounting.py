"""An accounting office: invoices against payments, expenses to be approved, wages, and an audit with a budget."""
# mypy: ignore-errors

import json
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Optional

import dbzero as db0
import pytest
from statek import (
    create_new_job,
    error_handler,
    format_default_llm_repr,
    get_current_job,
    tool,
)
from statek.agents import SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.task import delegate_task
from statek.utils import perm_ctx_get, perm_ctx_set

from statek_sim import tool_call

Verdict = db0.enum("Verdict", ["OPEN", "MATCHED", "DISPUTED"])
LOG = []


@db0.memo
@dataclass
class Document:
    number: str
    amount: Decimal
    day: date = None


@db0.memo
@dataclass
class Invoice(Document):
    customer: str = ""
    verdict: Verdict = Verdict.OPEN
    lines: list = field(default_factory=list)

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, hide=["lines"], **kwargs)

    @property
    def overdue(self):
        return self.day < date(2026, 2, 1)

    def settle(self, payment) -> str:
        """Settle it."""
        if payment.amount != self.amount:
            self.verdict = Verdict.DISPUTED
            raise ValueError(f"{payment.number} pays {payment.amount}, not {self.amount}")
        self.verdict = Verdict.MATCHED
        return f"{self.number} settled by {payment.number}"


@db0.memo
@dataclass
class Payment(Document):
    reference: Optional[str] = None


@db0.memo(singleton=True)
class Books:
    def __init__(self):
        self.invoices = {}
        self.payments = []
        self.by_day = db0.index()
        self.decided = {}
        self.auditor = None


def fill():
    books = Books()
    for number, amount, day, customer in [
        ("I-1", "100.00", date(2026, 1, 5), "Ada"),
        ("I-2", "250.50", date(2026, 2, 7), "Bob"),
        ("I-3", "80.10", date(2026, 1, 20), "Ada"),
    ]:
        invoice = Invoice(number, Decimal(amount), day, customer, lines=[{"sku": "x", "n": 1}])
        db0.tags(invoice).add(customer)
        books.invoices[number] = invoice
        books.by_day.add(day, invoice)
    for number, amount, reference in [
        ("P-1", "100.00", "I-1"),
        ("P-2", "250.00", "I-2"),
        ("P-3", "80.10", None),
    ]:
        books.payments.append(Payment(number, Decimal(amount), date(2026, 2, 10), reference))
    return books


@tool
def open_invoices(customer: Optional[str] = None, before: Optional[date] = None, **kwargs) -> list[Invoice]:
    """List open invoices, oldest first.

    Args:
        customer: Whose.
        before: Due before that day.
    """
    books = Books()
    found = [i for i in books.by_day.sort(books.by_day.select(None, before, null_first=False))]
    return [i for i in found if i.verdict == Verdict.OPEN and customer in (None, i.customer)]


@tool
def payments(**kwargs) -> list[Payment]:
    """List payments."""
    return list(Books().payments)


@tool
def match(invoice: Invoice, payment: Payment, **kwargs) -> str:
    """Match the two."""
    return invoice.settle(payment)


@tool
def by_customer(customer: str, **kwargs):
    """Find with tags."""
    return sorted(i.number for i in db0.find(Invoice, customer))


@tool
def total(invoices: list[Invoice], currency: str = "EUR", **kwargs) -> dict:
    """Add up."""
    return {
        "currency": currency,
        "total": sum((i.amount for i in invoices), Decimal(0)),
        "count": len(invoices),
    }


@tool
def mark(invoice: Invoice, verdict: Verdict, **kwargs):
    """Mark it."""
    invoice.verdict = verdict
    return invoice


def agent(role, *tools, prompt="You keep books.", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt(prompt),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


@pytest.fixture(autouse=True)
def _nothing_logged():
    LOG.clear()


MANY = pytest.mark.statek(
    storage="warn",
    limits={"max_turns": 30, "max_exceptions": 20, "max_consecutive_exceptions": 9, "max_token_usage": None},
)
pytestmark = pytest.mark.filterwarnings("ignore")


@MANY
def test_invoices_are_matched(statek_app, facts):
    books = fill()
    clerk = agent("clerk", open_invoices, payments, match, by_customer, total, mark)
    statek_app.script(
        clerk=[
            "todo = open_invoices()\nfor inv in todo:\n    print(f'{inv.number:<6}{inv.amount:>10} {inv.customer} {inv.day:%d.%m.}')",
            "paid = {p.reference or p.number: p for p in payments()}\nprint(sorted(paid))\npaid",
            "results, failed = [], []\nfor inv in todo:\n    pay = paid.get(inv.number)\n    if pay is None:\n        failed.append(inv.number)\n        continue\n    try:\n        results.append(match(inv, pay))\n    except ValueError as e:\n        failed.append(f'{inv.number}: {e}')\nprint(results, failed, sep='\\n')",
            "print([(i.number, i.verdict) for i in todo], todo[0].overdue)\nprint(open_invoices(customer='Ada'))",
            "rest = [i for i in open_invoices() if i.amount == paid['P-3'].amount]\nprint(match(rest[0], paid['P-3']))\nprint(total(todo), total([], 'USD'))",
            "print(by_customer('Ada'), by_customer('nobody'))\nprint(mark(todo[1], 'OPEN'))\nprint(mark(todo[1], 'LOST'))",
            "open_invoices(before='2026-01-10')",
            "summary = {str(i.verdict): [] for i in todo}\nfor i in todo:\n    summary[str(i.verdict)].append(i.number)\nprint(summary)\nexit(summary)",
        ]
    )
    statek_app.create_job(clerk)
    statek_app.run()
    facts["verdicts"] = [[i.number, str(i.verdict), str(i.amount)] for i in books.invoices.values()]


@MANY
def test_invoices_are_asked_for_by_name(statek_app, facts):
    fill()
    clerk = agent("clerk", open_invoices, payments, match, total, mark, LLM_TOOLS_SCOPE="APPLICATION")
    statek_app.script(
        clerk=[
            tool_call("open_invoices", customer="Ada"),
            tool_call("open_invoices", before="2026-01-10"),
            tool_call("open_invoices", before="soon"),
            tool_call("total", invoices=[], currency="GBP"),
            tool_call("total", invoices="todo"),
            tool_call("total", invoices=None),
            "todo = open_invoices()\npaid = payments()",
            tool_call("total", invoices="todo"),
            tool_call("mark", invoice="todo", verdict="OPEN"),
            "first = todo[0]\np1 = paid[0]",
            tool_call("mark", invoice="first", verdict="DISPUTED"),
            tool_call("match", invoice="first", payment="p1"),
            tool_call("match", invoice="first"),
            tool_call("nobody_offers_this", x=1),
            "exit(str(first.verdict))",
        ]
    )
    statek_app.create_job(clerk)
    statek_app.run()


@db0.memo
@dataclass
class Claim:
    who: str
    amount: float
    decided: bool = False

    def __str__(self):
        return f"{self.who} wants {self.amount:.2f}"


@db0.memo
class Approval(FutureResult):
    def __init__(self, claim):
        super().__init__(deps=claim, state_num=0)
        self.claim = claim


def is_decided(future) -> bool:
    return future.claim.who in Books().decided


def decision(future) -> str:
    if not is_decided(future):
        raise FutureError(future)
    return Books().decided[future.claim.who]


@error_handler
def _drop_claim(context, error=None):
    LOG.append(f"dropped {context} because {error}")


@tool(error_handler=_drop_claim)
def file_claim(who: str, amount: float = 10.0, **kwargs) -> Claim:
    """File a claim."""
    return Claim(who, amount)


@temporal(complement=decision, condition=is_decided)
@tool
def ask_the_boss(claim: Claim, **kwargs):
    """Ask."""
    return Approval(claim)


@pytest.mark.parametrize("end", ["paid", "fails"])
@pytest.mark.statek(
    storage="warn", limits={"max_turns": 30, "max_consecutive_exceptions": 3, "max_token_usage": None}
)
def test_expenses_wait_for_the_boss(statek_app, facts, end):
    last = {
        "paid": ["exit('paid ' + ', '.join(decided))"],
        "fails": ["boom()", "1/0", "{}['x']", "[][0]", "int('x')"],
    }[end]
    statek_app.script(
        desk=[
            "claims = [file_claim(n, a) for n, a in {'ann': 12.5, 'bob': 400}.items()]\nprint(claims[0], claims)",
            "ann, bob = claims\ndecided = []\nfirst = ask_the_boss(ann)\nprint('asked')\nsecond = ask_the_boss(bob)\nprint(first, second)",
            "print(first, second)\nfor c, d in zip(claims, [first, second]):\n    if d == 'yes':\n        decided.append(c.who)\n        c.decided = True\nprint(decided, [c.decided for c in claims])",
            *last,
        ]
    )
    statek_app.at(30, lambda: Books().decided.update(ann="yes"))
    statek_app.at(90, lambda: Books().decided.update(bob="no"))
    job = statek_app.create_job(agent("desk", file_claim, ask_the_boss))
    statek_app.run()
    facts["log"] = list(LOG)
    facts["at"] = statek_app.now
    facts["error"] = job.error is not None


@db0.memo
@dataclass
class Employee:
    name: str
    hours: dict = field(default_factory=dict)
    rate: Decimal = Decimal("20.00")
    photo: bytes = b""
    tags: set = field(default_factory=set)


@db0.memo
@dataclass
class Manager(Employee):
    bonus: Optional[Decimal] = None
    reports: list = field(default_factory=list)

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(
            self, show_only=["name", "bonus", "reports"], expand=["reports"], **kwargs
        )


@tool
def staff(**kwargs):
    """Everybody."""
    ann = Employee("ann", {"mon": 8, "tue": 7.5}, photo=b"\x89PNG", tags={"night", "early"})
    bob = Employee("bob", {"mon": 4}, Decimal("15.5"))
    return [ann, bob, Manager("cy", {"fri": 2}, Decimal("50"), bonus=Decimal("100"), reports=[ann, bob])]


@tool
def pay(name: str, amount: Decimal, on: date = date(2026, 1, 31), note: bytes = b"", **kwargs):
    """Pay somebody."""
    LOG.append([name, str(amount), str(on), str(note)])
    return {"name": name, "amount": amount, "on": on, "note": note}


@MANY
def test_wages(statek_app, facts):
    statek_app.script(
        payroll=[
            "people = staff()\npeople",
            "for p in people:\n    print(p.name, p.hours, sum(p.hours.values()), p.rate, p.photo, p.tags)",
            "from decimal import Decimal\nwages = {}\nfor p in people:\n    hours = sum(p.hours.values())\n    wages[p.name] = p.rate * Decimal(str(hours))\nprint(wages, sum(wages.values()))",
            "from decimal import Decimal, ROUND_HALF_UP\nnet = {n: (w * Decimal('0.79')).quantize(Decimal('0.01'), ROUND_HALF_UP) for n, w in wages.items()}\nprint(net)\nfor n in sorted(net):\n    print(f'{n:>5}: {net[n]:>9.2f} of {wages[n]}')",
            "slips = [pay(n, net[n]) for n in net]\nslips",
            "print(pay('ann', '12.30', '2026-02-01', 'abc'))\nprint(pay('ann', 5))\nprint(pay('ann', 'lots'))",
            "boss = people[2]\nprint(boss)\nprint(boss.reports[0].name, len(boss.reports), boss.bonus + 1)\nprint(people[0].bonus)",
            "people[0].tags.add('late')\npeople[0].hours['wed'] = 1\nprint(sorted(people[0].tags), people[0].hours, boss.reports[0].hours)",
            "print(people[0] in boss.reports, boss.reports[0] is people[0], isinstance(boss, str))",
            "exit({n: float(w) for n, w in wages.items()})",
        ]
    )
    statek_app.create_job(agent("payroll", staff, pay))
    statek_app.run()
    facts["log"] = list(LOG)


@tool
def ledger(page: int = 1, size: int = 3, **kwargs) -> dict:
    """A page of the ledger."""
    rows = [{"no": n, "text": f"entry {n}", "sum": n * 1.5} for n in range(1, 9)]
    chosen = rows[(page - 1) * size : page * size]
    return {
        "page": page,
        "rows": chosen,
        "more": page * size < len(rows),
        "next": (page + 1) if page * size < len(rows) else None,
    }


BUDGETS = [
    pytest.param(
        budget,
        number,
        id=str(budget),
        marks=pytest.mark.statek(storage="warn", limits={"max_turns": 30, "max_token_usage": budget}),
    )
    for budget, number in ((700, 4), (1500, 6), (2500, 6))
]


@pytest.mark.parametrize(("budget", "number"), BUDGETS)
def test_an_audit_has_a_budget(statek_app, facts, budget, number):
    replies = [
        "rows, page = [], 1\nwhile True:\n    got = ledger(page)\n    rows.extend(got['rows'])\n    if not got['more']:\n        break\n    page = got['next']\nprint(len(rows), rows[-1])",
        "rows",
        "import json\nprint(json.dumps([dict(r) for r in rows]))",
        "odd = [r['no'] for r in rows if r['no'] % 2]\nprint(odd, sum(r['sum'] for r in rows))",
        "print('\\n'.join(f\"{r['no']:03d} {r['text']:.<12} {r['sum']:6.2f}\" for r in rows))",
        "exit(len(odd))",
    ]
    statek_app.script(auditor=replies[:number])
    job = statek_app.create_job(agent("auditor", ledger))
    statek_app.run()
    facts["usage"] = [job.approx_token_usage, job.num_turns]


@MANY
def test_a_job_is_given_what_it_needs(statek_app, facts):
    books = fill()
    invoice = books.invoices["I-2"]
    statek_app.script(
        clerk=[
            "print(invoice, since, rates, flags, note)\nprint(type(1) if False else invoice.verdict)",
            "rates['USD'] = 1.1\nflags.append('seen')\nprint(rates, flags, since.year)",
            "invoice.settle(payment)",
            "print(invoice.verdict, db_missing if False else None)\nprint(keep('k', invoice))\nprint(kept('k').number)",
            "exit([invoice.number, str(invoice.verdict)])",
        ]
    )

    @tool
    def keep(name: str, value, **kwargs):
        """Keep."""
        perm_ctx_set(**{name: value})
        return sorted(dict(get_current_job().py_env.perm_ctx))

    @tool
    def kept(name: str, **kwargs):
        """Get."""
        return perm_ctx_get(name)

    job = create_new_job(
        agent("clerk", match),
        {
            "invoice": invoice,
            "payment": books.payments[1],
            "since": date(2026, 1, 1),
            "rates": {"EUR": 1, "CHF": 0.9},
            "flags": [],
            "note": None,
        },
    )
    facts["params"] = sorted(dict(job.job_def.job_params or {}))
    statek_app.run()
    facts["flags"] = [str(invoice.verdict)]


@tool
def hire_auditor(invoices: list[Invoice], **kwargs):
    """Have invoices audited."""
    return delegate_task(
        Books().auditor,
        shared_vars={"invoices": invoices, "limit": 100},
        parent_job=get_current_job(),
    )


@MANY
def test_an_auditor_is_hired(statek_app, facts):
    books = fill()
    books.auditor = agent("auditor", open_invoices)
    statek_app.script(
        clerk=[
            "mine = open_invoices()\nresult, audit = hire_auditor(mine)\nprint(result)",
            "print(result, audit.status, audit.agent.role)\nprint(len(mine))",
            "exit(result)",
        ],
        auditor=[
            "print(invoices, limit)",
            "big = [i for i in invoices if i.amount > limit]\nprint([i.number for i in big])\nfor i in big:\n    i.lines.append({'sku': 'audited', 'n': limit})",
            "exit({'big': [i.number for i in big], 'sum': sum(i.amount for i in invoices)})",
        ],
    )
    statek_app.create_job(agent("clerk", open_invoices, hire_auditor))
    statek_app.run()
    facts["lines"] = json.loads(
        json.dumps([[dict(line) for line in i.lines] for i in books.invoices.values()])
    )
    facts["days"] = str(timedelta(days=1))
