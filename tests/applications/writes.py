"""A depot whose stored things are written to by its agents, member by member."""
# mypy: ignore-errors

from dataclasses import dataclass, field

import dbzero as db0
import pytest
from statek import tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

LIMITS = {"max_exceptions": 40, "max_consecutive_exceptions": 40, "max_turns": 40, "max_token_usage": None}


@db0.memo
class Owner:
    def __init__(self, number):
        self.id = number


@db0.memo
class Item:
    def __init__(self, number, status="READY"):
        self.id = number
        self.state = status

    @property
    def status(self):
        return self.state

    @property
    def rw(self):
        return self.state

    @rw.setter
    def rw(self, v):
        self.state = v

    kind = "thing"

    def held(self):
        return self.state == "HELD"


@db0.memo
@dataclass
class Data:
    name: str
    tags: list = field(default_factory=list)
    note: str = None


@db0.memo
@dataclass(frozen=True)
class Frozen:
    name: str


@db0.memo
class Guarded:
    def __init__(self, n):
        self.n = n

    def __setattr__(self, k, v):
        if k == "bad":
            raise ValueError("no " + k)
        super().__setattr__(k, v)


@tool
def make(**kwargs):
    """Make."""
    return Owner("o1"), Item("i1"), Data("d1"), Guarded(1)


@tool
def item(name: str, **kwargs):
    """Item."""
    return Item(name)


@tool
def data(name: str, **kwargs):
    """Data."""
    return Data(name)


@tool
def see(x: Item, **kwargs):
    """See."""
    return [getattr(x, n, "none") for n in ("id", "state", "status", "other", "rw", "kind")] + sorted(vars(x))


@tool
def froz(**kwargs):
    """F."""
    return Frozen("f")


@db0.memo
class P:
    def __init__(self, name, w=None):
        self.name = name
        if w is not None:
            self.w = w

    def setw(self, w):
        self.w = w
        self.later = w

    def delw(self):
        del self.w

    def read(self):
        return [getattr(self, n, "none") for n in ("w", "later", "zz")]

    def read_later(self):
        return self.later


@db0.memo
class Q(P):
    def __init__(self, name):
        super().__init__(name)
        self.extra = 1


@db0.memo
class R(P):
    pass


@db0.memo
class Cond:
    def __init__(self, n):
        self.viaset = n
        self.helper(n)
        if n > 1:
            self.a, self.b = n, n
        if n > 2:
            other = self
            other.c = n
        for self.i in range(n):
            pass

    def helper(self, n):
        self.inh = n
        if n > 1:
            self.inh2 = n


@db0.memo
@dataclass
class D:
    name: str
    note: str = None

    def more(self):
        self.m = 1
        return self.m


@db0.memo
@dataclass
class F0:
    pass


class Mixin:
    tag = "t"

    def hello(self):
        return f"hello {self.name}"


@db0.memo
class M(Mixin):
    def __init__(self, name):
        self.name = name

    def __getattr__(self, n):
        if n == "virt":
            return "v"
        raise AttributeError(n)


for_kinds = dict(P=P, Q=Q, R=R, Cond=Cond, D=D, F0=F0, M=M)


@tool
def build(kind: str, *args, **kwargs):
    """Make."""
    return for_kinds[kind](*args)


@tool
def read(x: object, **kwargs):
    """L."""
    return x.read()


START = "o, i, d, g = make()"
WRITES = [
    ["o.name = 'x'", "print(o.name)\nprint(o)", "del o.name", "print(o)", "print(o.name)"],
    ["o.id = 5", "print(o)", "del o.id", "print(o)", "print(o.id)", "o.id = 'n'", "print(o)"],
    [
        "i.status = 5",
        "print(i.status, i.state)",
        "print(i)",
        "print(see(i))",
        "i.status = None",
        "print(i.status)",
        "i.status = [1]",
        "print(i.status)",
        "del i.status",
        "print(i.status)",
    ],
    ["i.rw = 'HELD'", "print(i.rw, i.state, i.held())", "print(i)", "print(see(i))"],
    ["i.kind = 'k'", "print(i.kind)", "print(i)", "print(see(i))", "del i.kind", "print(see(i))"],
    ["i.held = 5", "print(i.held)", "print(i.held())", "print(see(i))"],
    [
        "i.other = 'x'\nj = item('j')",
        "print(j.other)",
        "del j.other",
        "print(j)",
        "k = item('k')\nprint(k.other)",
        "print(see(k))",
    ],
    [
        "i.other = 'x'",
        "j = item('j')",
        "print(j.other)",
        "del j.other",
        "print(j)",
        "j.other = 5\nprint(j.other)",
        "print(j)",
        "print(i)",
    ],
    ["j = item('j')\ni.other = 'x'", "print(j.other)", "del j.other", "print(j.other)", "print(j)"],
    ["j = item('j')\ni.other = True", "print(j.other)", "del j.other", "print(j.other)", "print(j)"],
    ["j = item('j')\ni.other = None", "print(j.other)", "del j.other", "print(j.other)", "print(j)"],
    [
        "j = item('j')",
        "i.other = 5",
        "print(j.other)",
        "print(j)",
        "del i.other",
        "print(j.other)",
        "print(i)",
    ],
    [
        "d.tags.append('a')\nprint(d)",
        "d.tags = ['b']\nprint(d)",
        "d.tags += ['c']",
        "del d.tags",
        "print(d)",
        "print(d.tags)",
        "d.tags = 5\nprint(d)",
    ],
    [
        "d.note = 'n'\nprint(d)",
        "del d.note\nprint(d)",
        "print(d.note)",
        "e = data('e')\nprint(e)",
        "d.extra = {'a': [1]}\nprint(d)",
        "print(d.extra['a'])",
        "d.extra['a'].append(2)\nprint(d)",
    ],
    ["del d.name", "print(d)", "print(d.name)", "e = data('e')", "print(e == d)"],
    ["g.bad = 1", "g.good = 1\nprint(g.good)", "print(g)"],
    ["f = froz()\nf.name = 'x'", "print(f)", "f.other = 'x'", "print(f)", "del f.name", "print(f)"],
    ["d.x = range(3)", "d.x = lambda: 1", "d.x = 2**70", "print(d.x)"],
    ["d.x = [1, range(3)]", "print(d.x)", "d.x = {'a': range(2)}", "print(d.x)"],
    ["d.x = -2**63-1", "print(d.x)\nprint(d)"],
    ["d.x = 'a\\ud800'", "print(d.x)"],
    ["d.x = 'a\\0b'", "print(d.x)"],
    [
        "d.x, d.y = 1, 2",
        "print(d)",
        "[d.x, d.y] = [3, 4]\nprint(d)",
        "for d.x in range(3): pass",
        "print(d)",
        "(d.x, *d.y) = (1, 2, 3)\nprint(d.y)",
    ],
    ["d.me = d\nprint(d.me.name)", "print(d)"],
    ["d.o = o\no.d = d", "print(d)", "print(o)"],
    [
        "ds = [d, data('e')]\nfor n, one in enumerate(ds): one.rank = n\nprint(ds)",
        "print([x.rank for x in ds])",
    ],
    ["d.f = make", "print(d)", "print(d.f)"],
    ["d.x = 1\nraise ValueError(1)", "print(d.x)"],
    ["d.status.x = 5"],
    ["d.name.x = 5"],
    ["i.status.x = 5"],
    ["d.tags.x = 1"],
    ["o.id.x = 1"],
    [
        "d.x = 1.5\nd.y = b'a'\nd.z = True\nd.w = None",
        "print(d)",
        "d.z = 5\nprint(d)",
        "d.x = None\nprint(d)",
        "print(d)",
    ],
    [
        "import datetime\nd.x = datetime.datetime(2024,1,2,3)\nprint(d)",
        "d.x = datetime.timedelta(1)",
        "print(d)",
    ],
    ["d.update = 1\nprint(d.update)", "d.items = [1]\nprint(d.items)"],
    ["t = {'a': d}\nt['a'].name = 'z'\nprint(d)", "t['a'].name = 'y'\nprint(d)"],
    ["def rename(x, n):\n    x.name = n\n    return x\nprint(rename(d, 'q'))", "print(d.name)"],
    ["d.x = d.tags\nd.x.append(1)\nprint(d)", "d.tags.append(2)\nprint(d)"],
    ["xs = [1]\nd.x = xs\nxs.append(2)\nprint(d.x, xs)", "xs.append(3)\nprint(d.x, xs)"],
    ["xs = [1]", "d.x = xs\nxs.append(2)\nprint(d.x, xs)", "xs.append(3)\nprint(d.x, xs)"],
    ["print(d.missing)"],
    ["del d.missing"],
    ["print(d.__class__)"],
    ["exit(d)"],
    ["d.name = None\nexit(d)"],
]

MEMBERS = [
    [
        "a = build('P', 'a')\nprint(a)",
        "print(a.w)",
        "print(a.later)",
        "print(a.read())",
        "a.setw(3)\nprint(a)",
        "print(a.w, a.later)",
        "a.delw()\nprint(a)",
        "print(a.w)",
        "print(a.read())",
        "a.w = 4\nprint(a)",
    ],
    [
        "a = build('P', 'a')\nb = build('P', 'b', 5)",
        "print(a.w)",
        "del b.w",
        "print(b.w)",
        "print(a.w)",
        "b.w = 1\nprint(b.w)",
        "del a.w",
        "print(a.w)",
    ],
    [
        "a = build('P', 'a')\nb = build('P', 'b', 5)\nb.delw()",
        "print(b.w)",
        "print(a.w)",
        "c = build('P', 'c')",
        "print(c.w)",
        "print(c)",
        "c.w = None",
        "print(c.w)\nprint(c)",
    ],
    [
        "q = build('Q', 'q')\nprint(q)",
        "print(q.w)",
        "q.setw(1)\nprint(q)",
        "r = build('Q', 'r')",
        "print(r.w)",
        "print(r.later)",
        "print(r)",
    ],
    [
        "q = build('R', 'q')\nprint(q)",
        "print(q.w)",
        "q.setw(1)\nprint(q)",
        "r = build('R', 'r')",
        "print(r.w)",
        "print(r.later)",
    ],
    [
        "c = build('Cond', 1)\nprint(c)",
        "print(c.a)",
        "print(c.b)",
        "print(c.c)",
        "print(c.inh2)",
        "print(c.viaset, c.inh, c.i)",
        "print(c.nope)",
    ],
    [
        "c = build('Cond', 1)\ne = build('Cond', 3)\nprint(e)",
        "print(c.a)",
        "print(c.b)",
        "print(c.c)",
        "print(c.inh2)",
        "print(c)",
        "f = build('Cond', 0)",
        "print(f.i)",
        "print(f.a)",
        "print(f)",
    ],
    [
        "d = build('D', 'd')\nprint(d.more())",
        "e = build('D', 'e')",
        "print(e.m)",
        "print(e)",
        "del e.note",
        "print(e.note)",
        "print(e)",
        "del e.name",
        "print(e.name)",
        "e.more()",
    ],
    ["z = build('F0')\nprint(z)", "z.a = 1\nprint(z)", "y = build('F0')", "print(y.a)", "print(y)"],
    [
        "m = build('M', 'm')\nprint(m.hello())",
        "print(m.tag)",
        "print(m.virt)",
        "print(m.nope)",
        "m.tag = 'u'\nprint(m.tag, m)",
        "m.virt = 5\nprint(m.virt)",
    ],
    ["a = build('P', 'a')\na.x = range(3)", "print(a)", "print(a.x)", "b = build('P', 'b')\nprint(b)"],
    [
        "a = build('P', 'a')\na.x = [range(3)]",
        "print(a)",
        "print(a.x)",
        "b = build('P', 'b')\nprint(b)",
        "a.x = 1\nprint(a)",
    ],
    ["a = build('P', 'a')\na.x = lambda: 1", "print(a)", "print(a.x)"],
    ["a = build('P', 'a')\na.x = {'k': 1j}", "print(a)", "print(a.x)"],
    ["a = build('P', 'a')\na.x = [2**70]", "print(a)", "print(a.x)"],
    ["a = build('P', 'a')\na.x = 2**70", "print(a)", "print(a.x)"],
    [
        "a = build('P', 'a')\na.name = range(3)",
        "print(a)",
        "a.name = [range(3)]",
        "print(a)",
        "print(a.name)",
    ],
    ["a = build('P', range(2))"],
    ["a = build('P', [range(2)])"],
    ["a = build('P', 'a', range(2))", "b = build('P', 'b')\nprint(b)"],
    [
        "a = build('P', 'a')\na.f = build\nprint(a)",
        "g = a.f\nprint(g('P', 'z'))",
        "a.f('P', 'z')",
        "xs = [a.f]",
    ],
    [
        "a = build('P', 'a')\nprint(read(a))",
        "a.setw(2)\nprint(read(a))",
        "b = build('P', 'b')\nprint(read(b))",
        "b.later = 5\nprint(b.read_later(), read(b))",
        "c = build('P', 'c')\nprint(c.read_later())",
    ],
    ["a = build('P', 'a')\na.setw = 5\nprint(a.setw)", "a.setw(1)", "del a.setw\na.setw(1)\nprint(a.w)"],
    ["a = build('P', 'a')\ndel a.setw", "del a.nope", "a.later = 1\ndel a.later\ndel a.later"],
]


def create(*tools):
    return SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You store."),
        _tools=[*tools],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


@pytest.mark.parametrize("number", range(len(WRITES)))
@pytest.mark.not_what_was_sent
@pytest.mark.statek(limits=LIMITS)
def test_agent_code_writes_to_stored_objects(statek_app, facts, number):
    codes = WRITES[number]
    statek_app.script(clerk=[START, *codes, *([] if "exit" in codes[-1] else ["exit(1)"])])
    statek_app.create_job(create(make, item, data, see, froz))
    statek_app.run()


@pytest.mark.parametrize("number", range(len(MEMBERS)))
@pytest.mark.not_what_was_sent
@pytest.mark.statek(limits=LIMITS)
def test_members_that_objects_have_or_lack(statek_app, facts, number):
    statek_app.script(clerk=[*MEMBERS[number], "exit(1)"])
    statek_app.create_job(create(build, read))
    statek_app.run()
