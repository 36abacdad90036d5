"""A warehouse, a kitchen and a garage: picks, recipes and repairs, with plain and stored things in every kind of parameter."""
# mypy: ignore-errors

import asyncio
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Optional

import dbzero as db0
import pytest
from statek import (
    create_new_job,
    docstr,
    error_handler,
    format_default_llm_repr,
    get_current_job,
    statek_print,
    tool,
)
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt
from statek.utils import find_locals

from statek_sim import tool_call

Zone = db0.enum("Zone", ["COLD", "DRY"])
Step = namedtuple("Step", ["verb", "minutes"])
LOG = []


@db0.memo
class Thing:
    kind = "thing"

    def __init__(self, name, count=1):
        self.name = name
        self.count = count

    def __eq__(self, other):
        return isinstance(other, Thing) and other.name == self.name

    def __hash__(self):
        return len(self.name)

    def __len__(self):
        return self.count

    def take(self, n: int = 1) -> int:
        """Take some."""
        if n > self.count:
            raise KeyError(self.name)
        self.count -= n
        return self.count


@db0.memo
class Fragile(Thing):
    kind = "fragile"

    def __init__(self, name, count=1, care="slowly"):
        super().__init__(name, count)
        self.care = care

    def __str__(self):
        return f"{self.name} ({self.care})"

    def take(self, n: int = 1) -> int:
        """Take carefully."""
        if n > 1:
            raise ValueError("one at a time")
        return super().take(n)


@db0.memo
@dataclass
class Pick:
    thing: Thing
    count: int = 1
    zone: Zone = Zone.DRY
    place: tuple = (0, 0)
    history: list = field(default_factory=list)

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, max_len=60, **kwargs)


@db0.memo(singleton=True)
class House:
    def __init__(self):
        self.things = {}
        self.places = {}
        self.picks = []
        self.zones = {}
        self.log = []

    @property
    def size(self):
        return len(self.things)


def stocked():
    house = House()
    for name, count in {"box": 5, "lamp": 2, "tape": 9}.items():
        thing = Fragile(name, count) if name == "lamp" else Thing(name, count)
        house.things[name] = thing
        house.places[name] = (len(house.places), count)
        db0.tags(thing).add("stock", thing.kind)
    return house


@tool
def find_thing(name: str, **kwargs) -> Optional[Thing]:
    """Find one by its name."""
    return House().things.get(name)


@tool
def stock(kind: str = None, **kwargs) -> list[Thing]:
    """What there is."""
    return sorted(db0.find(Thing, kind or "stock"), key=lambda t: t.name)


@tool
def where(names: list[str], **kwargs) -> dict[str, tuple[int, int]]:
    """Where things are."""
    return {name: House().places[name] for name in names}


@error_handler
def _put_back(context, error=None):
    LOG.append(f"back: {context.thing.name} x{context.count}")
    context.thing.count += context.count


@tool(error_handler=_put_back)
def pick(thing: Thing, count: int = 1, zone: Zone = Zone.DRY, **kwargs) -> Pick:
    """Pick some.

    Args:
        thing (required): What.
        count: How many.
        zone: Where to.
    """
    thing.take(count)
    made = Pick(thing, count, zone, House().places[thing.name])
    made.history.append(f"picked {count}")
    House().picks.append(made)
    return made


@tool
def pick_many(orders: dict[str, int], urgent: bool = False, **kwargs) -> list:
    """Pick several."""
    return [f"{name}:{House().things[name].take(n)}" for name, n in orders.items()] + [urgent]


@tool
def weigh(things: tuple[Thing, ...] = (), factor: Decimal = Decimal("1.5"), **kwargs) -> Decimal:
    """Weigh them."""
    return sum((t.count * factor for t in things), Decimal(0))


@tool
def label(content: bytes, copies: set[int] = None, **kwargs) -> bytes:
    """Make a label."""
    return content[::-1] + bytes(sorted(copies or ()))


@tool
def steps(dish: str, **kwargs):
    """The steps of a recipe: named tuples."""
    return [Step("chop", 3), Step("fry", 5.5)]


@tool
def counted(words: list, **kwargs):
    """Count words."""
    return Counter(words)


@tool
def span(days: int, **kwargs):
    """A span of time."""
    return timedelta(days=days)


@tool
def nothing(**kwargs) -> None:
    """Do nothing."""


@tool
def known(kind: str = "Thing", **kwargs):
    """Tell what is among the variables."""
    return sorted(x.name for x in find_locals({"Thing": Thing, "Fragile": Fragile}[kind]))


def house_bell(times: int = 1, loud: bool = False, **kwargs):
    """Ring the bell of the house.

    Args:
        times: How often.
    """
    statek_print(*["ding"] * times, sep="-" if loud else " ") if loud else statek_print(
        " ".join(["ding"] * times)
    )
    return times


@tool
async def carry(thing: Thing, seconds: float = 1.5, **kwargs) -> str:
    """Carry something."""
    LOG.append(f"lift {thing.name}")
    await asyncio.sleep(seconds)
    LOG.append(f"drop {thing.name}")
    return f"carried {thing.name}"


@tool
def explain(what: Any, **kwargs):
    """Give documentation."""
    return docstr(what)


ALL = [find_thing, stock, where, pick, pick_many, weigh, label, steps, counted, span, nothing, known, carry]


def agent(role, *tools, prompt="You fetch.", **metadata):
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
    limits={"max_turns": 40, "max_exceptions": 30, "max_consecutive_exceptions": 12, "max_token_usage": None},
)
pytestmark = pytest.mark.filterwarnings("ignore")


def run(statek_app, facts, *replies, tools=ALL, given=None, warmup=None, **metadata):
    # Of a system tool every agent knows, those of other applications too: this one lasts for a test.
    tool(system=True)(house_bell)
    made = agent("picker", *tools, **metadata)
    if warmup:
        made.update_warmup_def(warmup)
    statek_app.script(picker=list(replies))
    create_new_job(made, given or {})
    statek_app.run()
    facts["log"] = list(LOG)
    facts["counts"] = {name: thing.count for name, thing in House().things.items()}
    facts["picks"] = [[p.thing.name, p.count, str(p.zone), list(p.history)] for p in House().picks]


@MANY
def test_orders_are_picked(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        "box, lamp = find_thing('box'), find_thing('lamp')\nprint(box, lamp, find_thing('nope'))\nprint(len(box), bool(lamp), box.kind, lamp.kind)",
        "orders = {'box': 2, 'lamp': 1, 'tape': 20}\nmissing = []\nfor name, n in orders.items():\n    t = find_thing(name)\n    try:\n        p = pick(t, n)\n        print(p)\n    except KeyError as e:\n        missing.append((name, str(e)))\nprint(missing)",
        "print(p.thing.name, p.place, p.place[0], p.history, p.zone)\np.history.append('packed')\np.zone = 'COLD'\nprint(p)",
        "pick(lamp, 2)",
        "print(pick(lamp, zone='COLD').zone, pick(box, '1').count, pick(box, zone='HOT'))",
        "places = where(['box', 'tape'])\nprint(places, sorted(places.values()))\nwhere(['zzz'])",
        "route = sorted(places, key=lambda n: places[n][1], reverse=True)\nfor i, n in enumerate(route, 1):\n    x, y = places[n]\n    print(f'{i}. {n:>6} at ({x:02d}|{y:02d})')",
        "print(pick_many({'tape': 1, 'box': 1}, urgent=True))\nprint(pick_many({}), pick_many({'tape': '1'}))",
        "missing",
        "exit(missing)",
    )


@MANY
def test_a_failed_round_is_put_back(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        "for n in ['box', 'tape']:\n    pick(find_thing(n), 2)\nprint([len(t) for t in stock()])",
        "mine = pick(find_thing('lamp'))",
        *["raise ValueError(f'broken {mine.count}')"] * 14,
    )


@MANY
def test_things_are_weighed_and_labelled(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        "things = stock()\nprint([t.name for t in things], [t.name for t in stock('fragile')], stock('no'))",
        "print(weigh(tuple(things)), weigh(things), weigh(), weigh(factor='2'), weigh(things[:1], 3))",
        "print(label(b'abc'), label('abc'), label(b'x', {1, 2}), label(b'x', [66, 65]))",
        "print(label(5))",
        "print(things[0] == find_thing('box'), things[0] in things, {t.name: t for t in things}['lamp'])",
        "print(sorted(things, key=len)[0].name, max(things, key=lambda t: t.count).name, sum(len(t) for t in things))",
        "pairs = {(t.name, t.count) for t in things}\nprint(sorted(pairs))\nprint(len({t for t in things}), things[0] in {t for t in things})",
        "total = weigh(things)\nprint(total, total / 2, round(total), f'{total:.1f}')\nexit(str(total))",
    )


@MANY
def test_values_that_do_not_last(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        "todo = steps('soup')\nprint(todo, todo[0].verb, sum(s.minutes for s in todo))\nfirst = 1",
        "print(first)",
        "print(todo)",
        "verbs = [s.verb for s in steps('soup')]\nminutes = {s.verb: s.minutes for s in steps('x')}\nprint(verbs, minutes)",
        "c = counted(verbs + ['fry'])\nprint(c, c['fry'], c.most_common(1))",
        "top = dict(counted(verbs + ['fry']))\nprint(top)",
        "print(top, minutes)\nlong = span(3)\nprint(long, long.days)\nafter = 'kept?'",
        "print(after)",
        "from datetime import date\nback = date(2026, 1, 1) + span(30)\nprint(back, nothing(), span(2) > span(1))\nx = nothing()\nx",
        "print(back, x is None)\nexit([back, top])",
    )


@MANY
def test_values_that_do_not_last_asked_for_by_name(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        tool_call("steps", dish="soup"),
        tool_call("counted", words=["a", "b", "a"]),
        tool_call("span", days=2),
        tool_call("nothing"),
        tool_call("find_thing", name="lamp"),
        tool_call("find_thing", name="nope"),
        tool_call("where", names=["box"]),
        tool_call("where", names="box"),
        tool_call("pick_many", orders={"tape": 1, "box": 2}, urgent=True),
        tool_call("pick_many", orders=[["tape", 1]]),
        tool_call("weigh", factor="2.50"),
        tool_call("weigh", factor=2.5),
        tool_call("label", content="abc", copies=[3, 1]),
        "lamp = find_thing('lamp')",
        tool_call("pick", thing="lamp", count="1", zone="COLD"),
        tool_call("pick", thing="lamp", zone="HOT"),
        tool_call("carry", thing="lamp", seconds=4),
        "exit(lamp.count)",
        LLM_TOOLS_SCOPE="APPLICATION",
    )
    facts["at"] = statek_app.now


@MANY
def test_a_round_begins_with_a_warmup(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        "print(sorted(t.name for t in things), first)",
        "print(known(), known('Fragile'))\nhouse_bell(2)\nhouse_bell(3, loud=True)",
        "msg = carry(first)\nprint(msg)",
        "parts = [carry(t, 0.5) for t in things[:2]]\nprint(parts)",
        "exit(bonus + len(things))",
        warmup="things = stock()\nfirst = things[0]\n#STATEK: hidden = True\nbonus = 10\nprint('hidden')\n#STATEK: hidden = False\nprint(f'{len(things)} things')\nfirst\n",
        given={"shift": "late"},
    )
    facts["at"] = statek_app.now


@MANY
def test_a_warmup_fails(statek_app, facts):
    stocked()
    run(statek_app, facts, warmup="things = stock()\nprint(things[0].name)\nprint(things[9])\nprint('never')")
    made = agent("other", *ALL)
    made.update_warmup_def("print(find_thing('box').take(99))")
    statek_app.script(other=[])
    for _ in range(2):
        create_new_job(made)
    statek_app.run()
    facts["today"] = str(date(2026, 1, 1))


@MANY
@pytest.mark.not_what_was_sent
def test_documentation_of_what_there_is(statek_app, facts):
    stocked()
    run(
        statek_app,
        facts,
        "docstr(pick)",
        "brief(pick)",
        "print(docstr(pick_many))",
        "box = find_thing('box')\ndocstr(box)",
        "lamp = find_thing('lamp')\nbrief(lamp)",
        "docstr(house_bell)\nbrief(house_bell)",
        "docstr(Thing)",
        "docstr('pick')",
        "docstr(5)",
        "exit(1)",
    )
    facts["job"] = get_current_job() is None
