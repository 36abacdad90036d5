"""A shop with tools of every kind, and random agents that use it: each seed is another run.

`compare.py` has the same seeds run on the real package and on the reference runtime. `--seeds FIRST:COUNT` says which.
"""
# mypy: ignore-errors

import asyncio
import random
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Optional, Union

import dbzero as db0
import pytest
from statek import (
    create_new_job,
    error_handler,
    format_default_llm_repr,
    get_current_agent_name,
    get_current_job,
    statek_print,
    tool,
)
from statek.agents import DialogAgent, SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.utils import find_locals, perm_ctx_get, perm_ctx_set

from statek_sim import code, fault, raw, text, timeout, tool_call

Size = db0.enum("Size", ["SMALL", "LARGE"])
LOG = []


@db0.memo
@dataclass
class Item:
    name: str
    price: float = 1.0
    tags: list = field(default_factory=list)
    secret: str = "s3cret"

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, hide=["secret"], **kwargs)

    def rename(self, name: str) -> str:
        """Rename it."""
        self.name = name
        return name

    @property
    def label(self):
        return f"{self.name} for {self.price}"


@db0.memo
@dataclass
class Box:
    items: list
    size: Any = None
    at: datetime = None
    first: Item = None


@db0.memo
class Loose:
    def __init__(self, name, **more):
        self.name = name
        for key, value in more.items():
            setattr(self, key, value)

    def __str__(self):
        return f"loose {self.name}"


@db0.memo
class Rude:
    def __init__(self, name):
        self.name = name

    def __llm_repr__(self):
        raise ValueError(f"not for you: {self.name}")


@db0.memo
class Quiet:
    def __init__(self, shown):
        self.shown = shown

    def __llm_repr__(self):
        return self.shown


@db0.memo
@dataclass
class Shelf:
    items: list
    label: str = "top"
    note: str = "x" * 40

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, show_only=["items", "label"], expand=["items"], **kwargs)


@db0.memo
class Bag:
    limit = 3

    def __init__(self, *things):
        self.things = list(things)

    def __len__(self):
        return len(self.things)

    def __getitem__(self, place):
        return self.things[place]

    def __contains__(self, thing):
        return thing in self.things

    def add(self, thing, *, twice=False):
        """Put something in."""
        self.things.append(thing)
        if twice:
            self.things.append(thing)
        return len(self.things)

    @classmethod
    def of(cls, thing):
        return cls(thing)

    @staticmethod
    def most():
        return 3


@db0.memo
class Toy(Bag):
    def __init__(self, name):
        super().__init__(name)
        self.name = name

    @property
    def loud(self):
        return self.name.upper()

    def __str__(self):
        return f"toy {self.name}"


class Colour(Enum):
    RED = 1


Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Plain:
    name: str


@db0.memo(singleton=True)
class Shop:
    def __init__(self):
        self.items = {}
        self.open = False
        self.by_price = db0.index()


@db0.memo
class Order(FutureResult):
    def __init__(self, name):
        super().__init__(deps=None, state_num=0)
        self.name = name


def is_open(future) -> bool:
    return Shop().open


def delivered(future) -> str:
    if not Shop().open:
        raise FutureError(future)
    return f"delivered {future.name}"


@temporal(complement=delivered, condition=is_open)
@tool
def order(name: str, **kwargs) -> FutureResult:
    """Order something."""
    return Order(name)


@tool
def opened(**kwargs):
    """Open the shop."""
    Shop().open = True


@tool
def make(name: str, price: float = 1.0, tags: list = None, **kwargs) -> Item:
    """Make an item.

    Args:
        name (required): How it is called.
        price: What it costs.
    """
    item = Item(name, price, tags or [])
    Shop().items[name] = item
    Shop().by_price.add(int(price), item)
    return item


@tool
def pack(items: list[Item], size: Size = Size.SMALL, at: datetime = None, **kwargs):
    """Pack items."""
    return Box(items, size, at, items[0] if items else None)


@tool
def price_of(item: Item, **kwargs) -> float:
    """Tell a price."""
    return item.price


@tool
def cheapest(limit: int = 2, **kwargs):
    """Tell the cheapest."""
    index = Shop().by_price
    return [item for item, _ in zip(index.sort(index.select()), range(limit), strict=False)]


@tool
def kinds(n: int, x: float, t: str, b: bool, **kwargs):
    """Take values."""
    return [type(value).__name__ for value in (n, x, t, b)]


@tool
def anything(value, *more, **kwargs):
    """Take anything."""
    return value


@tool
def days(day: date, span: int = 1, **kwargs):
    """Add days."""
    return day + timedelta(days=span)


@tool
def moment(at: datetime, **kwargs):
    """Take a moment."""
    return at


@tool
def sized(size: Size, other: Optional[Size] = None, **kwargs):
    """Take sizes."""
    return [size, str(other)]


@tool
def chosen(which: Literal["a", "b"] = "a", *, loud: bool = False, **kwargs):
    """Choose."""
    return which.upper() if loud else which


@tool
def maybe(text: str | None = None, number: Optional[int] = None, **kwargs):
    """Take what may be missing."""
    return {"text": text, "number": number}


@tool
def rows(data: list[int], table: dict[str, int] | None = None, **kwargs):
    """Take collections."""
    return [len(data), sorted(table or {})]


@tool
def either(value: Union[int, str], item: Item | None = None, **kwargs):
    """Take one or the other."""
    return [type(value).__name__, None if item is None else item.name]


@tool
def many_sizes(sizes: list[Size], by_name: dict[str, Size] = None, **kwargs):
    """Take sizes in collections."""
    return [str(size) for size in sizes] + sorted(by_name or {})


@tool
def exact(amount: Decimal, share: float = 0.5, at: time = None, raw: bytes = b"", **kwargs):
    """Take exact values."""
    return [type(value).__name__ for value in (amount, share, at, raw)]


@tool
def several(first, /, second=2, *rest: int, third: bool = False, **kwargs):
    """Take parameters of every kind."""
    return [first, second, list(rest), third, sorted(kwargs)]


@tool
def pairs(pair: tuple[int, str], names: set[str] = None, nested: list[list[int]] = None, **kwargs):
    """Take nested collections."""
    return [len(pair), sorted(names or ()), [len(row) for row in nested or ()]]


@tool
def stock(shelf: Shelf, bag: Bag = None, **kwargs) -> Shelf:
    """Put a bag's things on a shelf."""
    shelf.items.extend(bag.things if bag else [])
    return shelf


@tool
def bare(value, *, _local_context=None, **kwargs):
    """Take a value and tell what the system gives."""
    return [value, _local_context is None, sorted(kwargs)]


@tool
def whoami(**kwargs):
    """Tell who it is."""
    return [get_current_agent_name(), str(get_current_job().status)]


RESULTS = {
    "none": lambda: None,
    "text": lambda: "two\nlines",
    "list": lambda: [1, "x", None, [2]],
    "dict": lambda: {"b": 1, "a": {"c": [True]}},
    "tuple": lambda: (1, "x"),
    "set": lambda: {"x"},
    "item": lambda: Item("tea", 2.5, ["hot"]),
    "items": lambda: [Item("tea"), Item("milk")],
    "box": lambda: Box([Item("tea")], Size.LARGE, datetime(2026, 1, 2, 3), Item("x")),
    "loose": lambda: Loose("cord"),
    "rude": lambda: Rude("him"),
    "size": lambda: Size.LARGE,
    "date": lambda: date(2026, 1, 2),
    "moment": lambda: datetime(2026, 1, 2, 3, 4, 5),
    "decimal": lambda: Decimal("1.50"),
    "plain": lambda: Plain("x"),
    "counter": lambda: Counter("aab"),
    "span": lambda: timedelta(1),
    "big": lambda: 2**65,
    "bytes": lambda: b"raw",
    "cut": lambda: "a\0b",
    "long": lambda: list(range(40)),
    "class": lambda: Item,
    "range": lambda: range(3),
    "shelf": lambda: Shelf([Item("tea"), Item("milk")]),
    "bag": lambda: Bag(1, "x"),
    "toy": lambda: Toy("bear"),
    "quiet text": lambda: Quiet("shh"),
    "quiet none": lambda: Quiet(None),
    "quiet number": lambda: Quiet(5),
    "quiet list": lambda: Quiet([1, 2]),
    "sizes": lambda: [Size.SMALL, Size.LARGE],
    "by size": lambda: {"big": Size.LARGE},
    "of size": lambda: {Size.SMALL: 1},
    "by name": lambda: {"tea": Item("tea"), "box": Box([])},
    "pair of items": lambda: (Item("tea"), Toy("bear")),
    "nan": lambda: float("nan"),
    "inf": lambda: [float("inf"), -0.0],
    "true": lambda: True,
    "dates": lambda: [date(2026, 1, 2), datetime(2026, 1, 2, 3)],
    "zone": lambda: datetime(2026, 1, 2, 3, tzinfo=timezone.utc),
    "time": lambda: time(3, 4),
    "amounts": lambda: {"net": Decimal("1.50"), "all": [Decimal("2")]},
    "frozen": lambda: frozenset([1]),
    "named": lambda: Pair(1, "x"),
    "colour": lambda: Colour.RED,
    "colours": lambda: [Colour.RED],
    "plains": lambda: [Plain("x"), Item("tea")],
    "error": lambda: ValueError("kept"),
    "numbers": lambda: {2: "b", 1: "a"},
    "complex": lambda: 1 + 2j,
    "made": lambda: (n for n in (1, 2)),
    "lambda": lambda: lambda: 1,
    "tool": lambda: price_of,
    "much": lambda: "word " * 400,
    "table": lambda: [{"id": n, "tags": ["a", "b"], "of": {"k": None}} for n in range(12)],
    "shop": lambda: Shop().items,
    "cut in": lambda: {"k": ["a\0b"], "z": 1},
    "too big": lambda: [1, 2**64, 3],
}


@tool
def get(kind: str, **kwargs):
    """Get a value."""
    return RESULTS[kind]()


@tool
def keep(name: str, value, **kwargs):
    """Keep a value."""
    perm_ctx_set(**{name: value})
    return sorted(dict(get_current_job().py_env.perm_ctx))


@tool
def kept(name: str, **kwargs):
    """Give a kept value."""
    return perm_ctx_get(name, "nothing")


@tool
def known(**kwargs):
    """Tell items among the variables."""
    return sorted(item.name for item in find_locals(Item))


@tool
def shout(*values, **kwargs):
    """Print."""
    statek_print(*values)


@error_handler
def _undo(context, error=None):
    LOG.append(str(context))


@tool(error_handler=_undo)
def risk(what: str, **kwargs):
    """Risk something."""
    return f"risked {what}"


@tool
def fail(message: str, **kwargs):
    """Fail."""
    raise LookupError(message)


@tool(system=True)
def shop_bell(times: int = 1, **kwargs):
    """Ring."""
    return "ding " * times


@tool(system=True)
def shop_sign(item: Item, size: Size = Size.SMALL, **kwargs):
    """Show a sign."""
    statek_print(item, size)
    if size == Size.LARGE:
        raise ValueError("the sign is too large")
    return {"item": item, "size": size}


@tool(system=True)
async def shop_clock(seconds: float = 1.0, **kwargs):
    """Wait for the clock."""
    await asyncio.sleep(seconds)
    return "tick"


@error_handler
def _fails(context, error=None):
    LOG.append(f"fails {context}")
    raise RuntimeError("the handler fails")


@tool(error_handler=_fails)
def dare(what: str, **kwargs):
    """Dare something."""
    return f"dared {what}"


@tool(hidden=True)
def shop_safe(**kwargs):
    """Open the safe."""
    return "gold"


@tool
async def walk(seconds: float, **kwargs):
    """Walk."""
    await asyncio.sleep(seconds)
    LOG.append(f"walked {seconds}")
    return f"walked {seconds}"


@tool
async def race(first: float, second: float, **kwargs):
    """Walk twice at once."""
    walks = [asyncio.sleep(seconds, seconds) for seconds in (first, second)]
    done = [await one for one in asyncio.as_completed(walks)]
    LOG.append(f"race {done}")
    return done


TOOLS = [
    *(
        order,
        opened,
        make,
        pack,
        price_of,
        cheapest,
        kinds,
        anything,
        days,
        moment,
        sized,
        chosen,
        maybe,
        rows,
    ),
    *(get, keep, kept, known, shout, risk, fail, shop_safe, walk, race, dare),
    *(either, many_sizes, exact, several, pairs, stock, bare, whoami),
]

NAMES = ("a", "b", "c")
KINDS = tuple(RESULTS)
VALUES = (
    *(
        "1",
        "0",
        "-3",
        "2.5",
        "'x'",
        "''",
        "'1'",
        "'SMALL'",
        "'LARGE'",
        "'HUGE'",
        "None",
        "True",
        "[]",
        "[1, 2]",
    ),
    *(
        "{'k': 1}",
        "'2026-02-03'",
        "'2026-02-03T04:05'",
        "'a'",
        "'tea'",
        "['x']",
        "(1, 2)",
        "[a]",
        "a",
        "b",
        "c",
    ),
    *("'a, b'", "1e9", "{'a': [1]}"),
)
JSONS = (
    1,
    0,
    2.5,
    "x",
    "",
    "1",
    "SMALL",
    "HUGE",
    None,
    True,
    [],
    [1, 2],
    {"k": 1},
    "2026-02-03",
    "a",
    ["x"],
    "tea",
)
JSONS_OF_SEVERAL = tuple(value for value in JSONS if value != "a")
"""A text that names a variable is looked for in every frame of STATEK's, and other jobs' code may be among them."""
CALLS = (
    *("make({0})", "make({0}, {1})", "make('tea', {0})", "make(name='milk', price={0}, tags={1})"),
    *(
        "pack([{n}])",
        "pack({0}, {1})",
        "pack([], size={0})",
        "pack([make('x')], 'LARGE', '2026-02-03T04:05')",
    ),
    *("price_of({0})", "price_of({n})", "price_of('{n}')", "cheapest()", "cheapest({0})"),
    *("kinds({0}, {1}, {0}, {1})", "kinds(1, 2, '3', True)", "anything({0})", "anything({0}, {1})"),
    *("anything(value={0})", "days({0})", "days('2026-02-03', {0})", "moment({0})", "sized({0})"),
    *(
        "sized({0}, {1})",
        "sized('SMALL', other='LARGE')",
        "chosen({0})",
        "chosen('b', loud={0})",
        "maybe({0}, {1})",
    ),
    *(
        "maybe(number={0})",
        "rows({0})",
        "rows([1], {0})",
        "get('{k}')",
        "get('{k}')",
        "get('{k}')",
        "get({0})",
    ),
    *("keep('z', {0})", "keep('z', get('{k}'))", "kept('z')", "kept({0})", "known()", "shout({0}, {n})"),
    *(
        "shout(get('{k}'))",
        "risk({0})",
        "fail('no')",
        "fail({0})",
        "shop_bell()",
        "shop_bell({0})",
        "shop_safe()",
    ),
    *(
        "either({0})",
        "either({0}, {1})",
        "either(value=1, item={n})",
        "many_sizes({0})",
        "many_sizes(['SMALL'], {0})",
    ),
    *(
        "many_sizes(['SMALL', 'LARGE'])",
        "exact({0})",
        "exact({0}, {1})",
        "exact('1.50', at='03:04')",
        "several({0})",
    ),
    *("several({0}, {1}, 3, third={0})", "several(first={0})", "several(1, nothing={0})", "pairs({0})"),
    *(
        "pairs((1, 'x'), {0}, {1})",
        "stock({n})",
        "stock(get('shelf'), {n})",
        "stock(get('shelf'), get('bag'))",
    ),
    *(
        "bare({0})",
        "bare(value={0})",
        "bare()",
        "whoami()",
        "dare({0})",
        "shop_sign({n})",
        "shop_sign(make('x'), {0})",
    ),
    *(
        "shop_sign(make('x'), 'LARGE')",
        "shop_clock()",
        "shop_clock({0})",
        "brief(pack)",
        "docstr({n})",
        "brief({n})",
    ),
    *(
        "{n}.add({0})",
        "{n}.add({0}, twice=True)",
        "{n}.things",
        "{n}.loud",
        "{n}.limit",
        "{n}.of(1)",
        "{n}.most()",
    ),
    *(
        "{0} in {n}",
        "bool({n})",
        "list({n})",
        "sorted({n})",
        "repr({n})",
        "{n} is {n}",
        "type({n})",
        "{n}.items[0]",
    ),
    *("walk(2)", "walk({0})", "race(2, 1)", "race({0}, 3)", "opened()"),
    *(
        "{n}.rename('new')",
        "{n}.label",
        "{n}.name",
        "{n}.secret",
        "{n}.tags",
        "{n}.items",
        "{n}.missing",
        "{n}",
    ),
    *("len({n})", "{n}[0]", "{n} == {n}", "str({n})", "f'{{{n}}}'", "isinstance({n}, str)", "docstr(make)"),
)
LINES = (
    *(
        "{n} = {call}",
        "{n} = {call}",
        "{n} = {call}",
        "print({call})",
        "{call}",
        "{call}",
        "print({n})",
        "{n}",
    ),
    *("{n} = [{call}, {call}]", "{n} = {{'k': {call}}}", "for x in {n}:\n    print(x)", "print({n}, {n})"),
    *(
        "try:\n    {call}\nexcept Exception as error:\n    print('caught', error)",
        "{n}.append(1)",
        "del {n}",
    ),
    *(
        "{n}.name = {call}",
        "{n}.fresh = {0}",
        "{n} = [x for x in {n}]",
        "if {call}:\n    print('yes')\nelse:\n    {n} = {call}",
        "def f(x):\n    return x, {call}\nprint(f({n}))",
        "for x in ({n}, {call}):\n    print(x)\n    print([x])",
        "{n} = {n}.items",
        "{n} += [{call}]",
        "x, y = {call}, {n}\nprint(x, y)",
        "raise ValueError({n})",
        "print({{'k': {call}, 'n': {n}}})",
        "try:\n    {call}\nfinally:\n    print('finally', {n})",
    ),
    *(
        "{n}.price = {0}",
        "{n} = {0}",
        "print([{call}, {n}])",
        "print(f'{{{n}}} and {{{call}}}')",
        "{n}['k'] = 1",
    ),
)
FOR_CALLS = {
    "make": ("name", "price", "tags"),
    "pack": ("items", "size", "at"),
    "price_of": ("item",),
    "kinds": ("n", "x", "t", "b"),
    "anything": ("value",),
    "days": ("day", "span"),
    "moment": ("at",),
    "sized": ("size", "other"),
    "chosen": ("which", "loud"),
    "maybe": ("text", "number"),
    "rows": ("data", "table"),
    "get": ("kind",),
    "keep": ("name", "value"),
    "risk": ("what",),
    "fail": ("message",),
    "shop_bell": ("times",),
    "shop_safe": (),
    "order": ("name",),
    "either": ("value", "item"),
    "many_sizes": ("sizes", "by_name"),
    "exact": ("amount", "share", "at", "raw"),
    "several": ("first", "second", "third"),
    "pairs": ("pair", "names", "nested"),
    "stock": ("shelf", "bag"),
    "bare": ("value",),
    "whoami": (),
    "dare": ("what",),
    "shop_sign": ("item", "size"),
    "shop_clock": ("seconds",),
    "walk": ("seconds",),
    "opened": (),
}


def call(rng):
    return rng.choice(CALLS).format(
        rng.choice(VALUES), rng.choice(VALUES), n=rng.choice(NAMES), k=rng.choice(KINDS)
    )


def line(rng):
    form = rng.choice(LINES)
    for _ in range(form.count("{call}")):
        form = form.replace("{call}", call(rng).replace("{", "{{").replace("}", "}}"), 1)
    return form.format(rng.choice(VALUES), n=rng.choice(NAMES))


def requested(rng, values):
    name = rng.choice(list(FOR_CALLS))
    given = {each: rng.choice((*KINDS, *values) if name == "get" else values) for each in FOR_CALLS[name]}
    if given and rng.random() < 0.3:
        given.pop(rng.choice(list(given)))
    return tool_call(name, **given)


TROUBLE = (
    lambda: fault(503),
    lambda: fault(429, retry_after=7),
    timeout,
    lambda: text("late").after(61),
    lambda: fault(401),
    lambda: raw("no json"),
    lambda: raw("{}"),
    lambda: raw('{"choices": [{"message": {"content": null}}], "usage": null}'),
)
"""What the provider does instead of an answer; from the fifth on the job crashes."""


def replies(rng, talks, *, alone):
    said = []
    for _ in range(rng.randint(2, 7)):
        if rng.random() < 0.05:
            said.append(rng.choice(TROUBLE)())
        elif rng.random() < 0.25:
            said.append(requested(rng, JSONS if alone else JSONS_OF_SEVERAL))
        else:
            lines = "\n".join(line(rng) for _ in range(rng.randint(1, 4)))
            said.append(text(f"Look.\n```python\n{lines}\n```") if talks else lines)
    return [*said, (text("Done.") if talks else code("exit('end')")).forever()]


def send(body, media=None):
    """Tell the customer."""
    LOG.append(body)


def agent(rng, role, talks):
    scope = rng.choice((None, "APPLICATION", "ALL"))
    metadata = {"MODEL": "openai/gpt-4o", **({"LLM_TOOLS_SCOPE": scope} if scope else {})}
    prompt = make_system_prompt("You keep a shop.")
    if talks:
        made = DialogAgent(send, tools=TOOLS, role=role, _metadata=metadata)
        made.update_system_prompt(prompt)
        return made
    made = SupervisedAgent(role=role, _system_prompt=prompt, _tools=TOOLS, _metadata=metadata)
    if rng.random() < 0.3:
        made.update_warmup_def(line(rng))
    return made


LIMITS = {"max_turns": 12, "max_exceptions": 30, "max_consecutive_exceptions": 30, "max_token_usage": None}


def pytest_generate_tests(metafunc):
    first, _, count = (metafunc.config.getoption("--seeds", None) or "0:1").partition(":")
    metafunc.parametrize("seed", range(int(first), int(first) + int(count or 1)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.statek(limits=LIMITS, storage="warn")
def test_a_random_day(statek_app, facts, request, seed):
    rng = random.Random(seed)
    LOG.clear()
    talks, script = rng.random() < 0.25, {}
    roles = ["ann", "bob"][: rng.choice((1, 1, 2))]
    for role in roles:
        script[role] = replies(rng, talks, alone=len(roles) == 1)
    facts["said"] = [str(one)[:2000] for said in script.values() for one in said]
    statek_app.script(**script)
    begun = []
    for role in roles:
        made = agent(rng, role, talks)
        given = {"a": Item("axe", 3.0), "b": rng.choice((5, "t", [1]))} if rng.random() < 0.5 else {}
        facts.attempt(f"job of {role}", lambda made=made, given=given: _begin(begun, made, given, talks))
    if begun and rng.random() < 0.15:
        # The traceback of a crash, with this machine's paths, becomes part of the next prompt.
        request.applymarker(pytest.mark.not_what_was_sent)
        statek_app.at(rng.choice((3, 20, 90)), lambda: begun[0].push_user_message("Go on."))
    statek_app.at(rng.choice((1, 5)), lambda: setattr(Shop(), "open", True))
    statek_app.run()
    facts["log"] = list(LOG)


def _begin(begun, made, given, talks):
    job = create_new_job(made, given)
    begun.append(job)
    if talks:
        job.push_user_message("Hello")
    return "made"
