"""A shop's customers: notes about them, tickets, letters that are looked at before they go out, and talks with reminders."""
# mypy: ignore-errors

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Optional

import dbzero as db0
import pytest
from statek import (
    FinalCheck,
    LLM_StepData,
    PostProcessor,
    complete_sub_task,
    create_new_job,
    create_sub_task,
    error_handler,
    format_default_llm_repr,
    get_current_agent_name,
    get_current_job,
    init_shared_context,
    shared_context_set_var,
    subtask,
    tool,
)
from statek.agents import DialogAgent, RecurringReminder, SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt

from statek_sim import fault, text, tool_call

Mood = db0.enum("Mood", ["CALM", "ANGRY"])
SENT = []
LOG = []


@db0.memo
@dataclass
class Contact:
    name: str
    mail: Optional[str] = None
    mood: Mood = Mood.CALM
    notes: list = field(default_factory=list)
    fields: dict = field(default_factory=dict)

    def __llm_repr__(self, is_nested=False, **kwargs):
        if is_nested:
            return f"<{self.name}>"
        return format_default_llm_repr(self, hide=["fields"], is_nested=is_nested, **kwargs)


@db0.memo
@dataclass
class Company(Contact):
    people: list = field(default_factory=list)


@db0.memo
class Ticket:
    def __init__(self, number, contact, subject):
        self.number = number
        self.contact = contact
        self.subject = subject
        self.status = "new"
        self.history = [(datetime(2026, 1, 1, 8), "opened")]

    def __llm_repr__(self):
        return f"ticket {self.number} of {self.contact.name} ({self.status})"

    def log(self, what, at=None):
        """Write it down."""
        self.history.append((at or datetime(2026, 1, 1, 9), what))
        return len(self.history)


@db0.memo(singleton=True)
class Desk:
    def __init__(self):
        self.contacts = {}
        self.tickets = []
        self.next = 1
        self.agents = {}
        self.answers = {}


@tool
def contact(name: str, mail: Optional[str] = None, **kwargs) -> Contact:
    """Find or make a contact."""
    known = Desk().contacts
    if name not in known:
        known[name] = Contact(name, mail)
    return known[name]


@tool
def company(name: str, people: list[Contact], **kwargs) -> Company:
    """Make a company."""
    return Company(name, people=people)


@tool
def note(about: Contact, line: str, mood: Optional[Mood] = None, **fields) -> Contact:
    """Write a note."""
    about.notes.append(line)
    if mood is not None:
        about.mood = mood
    return about


@tool
def fetch_ticket(**kwargs) -> Optional[Ticket]:
    """Fetch the next new ticket."""
    for ticket in Desk().tickets:
        if ticket.status == "new":
            ticket.status = "open"
            get_current_job().add_error_handler(give_back, ticket)
            return ticket
    return None


@error_handler
def give_back(context, error=None):
    LOG.append(f"{context.number} given back: {error}")
    context.status = "new"


@tool
def close(ticket: Ticket, how: Literal["solved", "spam"] = "solved", **kwargs):
    """Close a ticket."""
    ticket.status = how
    ticket.log(f"closed as {how} by {get_current_agent_name()}")
    get_current_job().set_error_handlers([]) if hasattr(get_current_job(), "set_error_handlers") else None
    return ticket.history[-1]


@db0.memo
class Answer(FutureResult):
    def __init__(self, ticket):
        super().__init__(deps=ticket, state_num=0)
        self.ticket = ticket


def has_answered(future) -> bool:
    return future.ticket.number in Desk().answers


def answer_of(future):
    if not has_answered(future):
        raise FutureError(future)
    return Desk().answers[future.ticket.number]


@temporal(complement=answer_of, condition=has_answered)
@tool
def ask_customer(ticket: Ticket, question: str = "why?", **kwargs):
    """Ask the customer."""
    SENT.append(question)
    return Answer(ticket)


@subtask
def hand_over(ticket: Ticket, to: str = "expert", **kwargs):
    """Hand a ticket over."""
    child = create_new_job(
        Desk().agents[to], {"ticket": ticket, "since": datetime(2026, 1, 1, 10)}, get_current_job()
    )
    return create_sub_task(child)


@tool
def resolve(answer=None, error: Optional[str] = None, **kwargs):
    """Report back."""
    complete_sub_task(answer, error)


@tool
def remember(name: str, value, about: str = "a fact", **kwargs):
    """Keep it for all jobs of the context."""
    shared_context_set_var("ENTITY", name, value, about)


def send(body, media=None):
    """Talk to the customer."""
    SENT.append([body, media])


def agent(role, *tools, prompt="You help.", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt(prompt),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


def talker(role, *tools, **metadata):
    made = DialogAgent(send, tools=list(tools), role=role, _metadata={"MODEL": "openai/gpt-4o", **metadata})
    made.update_system_prompt(make_system_prompt("You talk."))
    return made


def tickets(*subjects):
    desk = Desk()
    for subject in subjects:
        desk.tickets.append(Ticket(desk.next, Contact(f"c{desk.next}"), subject))
        desk.next += 1
    return desk


@pytest.fixture(autouse=True)
def _nothing_sent():
    SENT.clear()
    LOG.clear()


LIMITS = {"max_turns": 30, "max_exceptions": 20, "max_consecutive_exceptions": 4, "max_token_usage": None}
MANY = pytest.mark.statek(storage="warn", limits=LIMITS)
pytestmark = pytest.mark.filterwarnings("ignore")


@MANY
def test_notes_about_contacts(statek_app, facts):
    statek_app.script(
        crm=[
            "people = {n: contact(n, f'{n.lower()}@x.org') for n in ['Ann', 'Bob']}\nprint(people['Ann'])\npeople",
            "note(people['Ann'], 'likes tea')\nprint(note(people['Bob'], 'shouted', mood='ANGRY', source='phone'))\nnote(people['Bob'], 'again', 'FURIOUS')",
            "firm = company('Acme', list(people.values()))\nfirm",
            "print(firm, [p.name for p in firm.people], firm.mood, firm.mail)",
            "for p in sorted(people.values(), key=lambda p: (str(p.mood), p.name)):\n    print(f'{p.name:<5}|{p.mood!s:>6}|{len(p.notes)}|{\"; \".join(p.notes)}')",
            "people['Ann'].fields['birthday'] = '1990-01-01'\npeople['Ann'].fields.update(kids=2)\nprint(people['Ann'].fields, people['Ann'])",
            "import re\ndomains = {re.sub(r'.*@', '', p.mail) for p in people.values()}\nprint(domains, contact('Ann') is people['Ann'], contact('New').mail)",
            "angry = [p for p in people.values() if p.mood == 'ANGRY']\nprint(angry, [str(p.mood) for p in people.values()])\nangry2 = [p for p in people.values() if str(p.mood) == 'ANGRY']\nprint(angry2)",
            "note('Ann', 'by name')",
            "note(people, 'wrong')",
            "exit({p.name: p.notes for p in people.values()})",
        ]
    )
    statek_app.create_job(agent("crm", contact, company, note))
    statek_app.run()


@MANY
@pytest.mark.parametrize("end", ["solved", "fails"])
def test_tickets_are_worked_on(statek_app, facts, end):
    desk = tickets("late parcel", "broken lamp")
    last = (
        ["print(close(t))\nexit('closed')"]
        if end == "solved"
        else ["close(t, 'burnt')", "t.nope", "x", "y", "z", "w", "v"]
    )
    statek_app.script(
        triage=[
            "t = fetch_ticket()\nt",
            "print(t.subject, t.contact, t.history, t)\nwords = t.subject.split()\nkind = {'late': 'delivery', 'broken': 'repair'}.get(words[0], 'other')\nprint(kind)",
            "a = ask_customer(t, f'Is your {words[-1]} really {words[0]}?')\nprint(a)",
            "t.log(f'answer: {a}')\nlast = t.history[-1]\nprint(last, last[0].hour, len(t.history))",
            *last,
        ]
    )
    statek_app.at(120, lambda: Desk().answers.update({1: "yes, since Monday"}))
    statek_app.create_job(agent("triage", fetch_ticket, close, ask_customer))
    statek_app.run()
    facts["tickets"] = [[t.number, t.status, len(t.history)] for t in desk.tickets]
    facts["log"] = [LOG, SENT]


@MANY
def test_a_ticket_is_handed_over_twice(statek_app, facts):
    desk = tickets("late parcel")
    desk.agents["expert"] = agent("expert", resolve, close)
    statek_app.script(
        triage=[
            "t = fetch_ticket()\nh = hand_over(t, id='first')\nprint(h.id, h.is_completed)",
            "print('meanwhile')",
            "h = find_sub_task_handler('first')\nprint(h.is_completed, h.result)\nr = h.result",
            "print(r, r['steps'][0])\nh2 = hand_over(t, to='nobody', id='second')",
            "h2 = hand_over(t, id='second')\nx = 1",
            "print(x)",
            "h = find_sub_task_handler('second')\nprint(h.error)\nprint(str(h))",
            "exit(t.status)",
        ],
        expert=[
            "print(ticket, since)\nsteps = [('look', 1), ('fix', 2)]\nresolve({'steps': steps, 'by': 'expert'})",
            "close(ticket)\nexit('one')",
            "resolve(error=f'{ticket.number} is closed')\nexit('two')",
        ],
    )
    statek_app.create_job(agent("triage", fetch_ticket, hand_over))
    statek_app.run()
    facts["status"] = [t.status for t in desk.tickets]


@db0.memo
@dataclass
class Signed(PostProcessor):
    name: str = "The desk"

    def process(self, llm_step, job):
        if llm_step.call_requests or not llm_step.text or "```" in llm_step.text:
            return llm_step
        return LLM_StepData(text=f"{llm_step.text}\n-- {self.name}", call_requests=[])


@MANY
@pytest.mark.parametrize("with_check", [False, True])
def test_letters_are_signed(statek_app, facts, with_check):
    made = talker("writer", contact, note, CHAT_STYLE="MD_DIALOG")
    processors = [Signed("Ann"), *([FinalCheck(max_llm_actions=2)] if with_check else [])]
    statek_app.script(
        writer=[
            "c = contact('Zoë', 'z@x.org')\nprint(c)",
            text("Dear Zoë, thank you.\n```python\nnote(c, 'wrote')\n```\nMore soon."),
            "answer(f'Dear {c.name}, checked.')",
        ]
    )
    job = create_new_job(made, post_processing=processors)
    job.push_user_message("Write to Zoë")
    statek_app.run()
    facts["sent"] = [list(x) for x in SENT]


@pytest.mark.statek(storage="warn", limits={**LIMITS, "max_turns": 8})
def test_a_talk_has_reminders(statek_app, facts):
    made = talker("talker", contact)
    made.set_new_reminder("Ask for a rating.", min_dialog_len=2)
    statek_app.script(
        talker=[
            text("Hello, how can I help?"),
            "c = contact('Ida')\nprint(c.name)",
            text("Done, Ida."),
            text("How was it?"),
            "answer('Bye, ' + c.name, media='rose.png')",
            text("Bye.").forever(),
        ]
    )
    job = statek_app.create_job(made, message="Hi")
    statek_app.at(60, lambda: job.push_user_message("I am Ida"))
    statek_app.at(120, lambda: job.push_user_message("Great, bye"))
    statek_app.run()
    facts["sent"] = [list(x) for x in SENT]


@MANY
def test_two_talks_share_what_they_know(statek_app, facts):
    made = agent("sharer", remember, contact)
    made.update_warmup_def("print('warm')")
    statek_app.script(
        sharer=[
            "remember('town', 'Łódź')\nremember('sizes', {'s': [1, 2]}, about='sizes of things')\nc = contact('Eve')\nremember('eve', c)",
            "print(town, sizes, eve.name)",
            "sizes['s'].append(3)\nprint(sizes)\nexit(town)",
            "print(town)",
            "exit('second')",
            "print(town)",
            "exit('third')",
        ]
    )
    create_new_job(made)
    statek_app.run()
    create_new_job(made)
    statek_app.run()


@MANY
def test_the_provider_is_not_always_there(statek_app, facts):
    statek_app.script(
        crm=[
            fault(503),
            "c = contact('Ann')\nprint(c.name)",
            fault(429, retry_after=5),
            tool_call("note", about="c", line="called"),
            tool_call("note", about="c", line="called again", mood="ANGRY").after(3),
            "exit([str(c.mood), c.notes])",
        ]
    )
    statek_app.create_job(agent("crm", contact, note, LLM_TOOLS_SCOPE="APPLICATION"))
    statek_app.run()
    facts["at"] = statek_app.now
