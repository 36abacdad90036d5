"""Games and data: a game master, a quiz, an auction, an import of records, a survey and a calendar."""
# mypy: ignore-errors

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Optional, Union

import dbzero as db0
import pytest
from statek import create_new_job, format_default_llm_repr, get_any, get_current_job, statek_print, tool
from statek.agents import SupervisedAgent
from statek.exceptions import FutureError
from statek.executors.job import JobStatus
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt
from statek.task import delegate_task
from statek.utils import perm_ctx_get, perm_ctx_set

from statek_sim import tool_call

Terrain = db0.enum("Terrain", ["WOOD", "LAKE"])
LOG = []


@db0.memo
@dataclass
class Place:
    name: str
    terrain: Terrain = Terrain.WOOD
    exits: dict = field(default_factory=dict)
    items: set = field(default_factory=set)


@db0.memo
class Hero:
    def __init__(self, name, at):
        self.name = name
        self.at = at
        self.bag = []
        self.hp = 10
        self.seen = {at.name: 1}

    def __llm_repr__(self, **kwargs):
        return f"{self.name} ({self.hp} hp) in the {self.at.name}"

    def go(self, way):
        """Go somewhere."""
        if way not in self.at.exits:
            raise LookupError(f"no way {way}")
        self.at = self.at.exits[way]
        self.seen[self.at.name] = self.seen.get(self.at.name, 0) + 1
        return self.at


@db0.memo(singleton=True)
class Game:
    def __init__(self):
        self.places = {}
        self.bids = {}
        self.players = {}
        self.rows = []
        self.by_time = db0.index()


@tool
def world(**kwargs) -> dict[str, Place]:
    """Make the world."""
    hall, lake = Place("hall", items={"lamp", "key"}), Place("lake", Terrain.LAKE)
    hall.exits["out"] = lake
    lake.exits.update({"back": hall})
    return {"hall": hall, "lake": lake}


@tool
def hero(name: str, at: Place, **kwargs) -> Hero:
    """Make a hero."""
    return Hero(name, at)


@tool
def roll(dice: str = "1d6", seed: int = 1, **kwargs) -> list[int]:
    """Roll dice."""
    count, sides = map(int, re.fullmatch(r"(\d+)d(\d+)", dice).groups())
    return [(seed * 7 + n * 3) % sides + 1 for n in range(count)]


@tool
def flood(place: Place, terrain: Terrain, **kwargs):
    """Change the terrain."""
    place.terrain = terrain
    return [place.terrain, terrain == Terrain.LAKE]


@db0.memo
class Bid(FutureResult):
    def __init__(self, who):
        super().__init__(deps=None, state_num=0)
        self.who = who


def has_bid(future) -> bool:
    return future.who in Game().bids


def bid_of(future) -> int:
    if not has_bid(future):
        raise FutureError(future)
    return Game().bids[future.who]


@temporal(complement=bid_of, condition=has_bid)
@tool
def bid(who: str, **kwargs) -> int:
    """Ask for a bid."""
    LOG.append(f"asked {who}")
    return Bid(who)


@tool
def play(name: str, rounds: int = 1, **kwargs):
    """Have a player play."""
    return delegate_task(Game().players[name], shared_vars={"rounds": rounds}, parent_job=get_current_job())


@tool
def rows(skip: int = 0, **kwargs) -> list[dict]:
    """Raw rows."""
    return [
        {"id": "7", "name": " Ann ", "born": "1990-02-30", "score": "1,5"},
        {"id": "8", "name": "Bob", "born": "1985-12-01", "score": None},
        {"id": "x", "name": "", "born": "", "score": "3"},
        {"id": "9", "name": "Zoë", "born": "2001-07-15", "score": "2.25", "extra": [1, {"k": "v"}]},
    ][skip:]


@db0.memo
@dataclass
class Record:
    id: int
    name: str
    born: Optional[date] = None
    score: Optional[float] = None

    def __llm_repr__(self, **kwargs):
        return format_default_llm_repr(self, hide=["id"], max_len=50, **kwargs)


@tool
def save(
    id: int,  # noqa: A002  # what an application may call it
    name: str,
    born: Optional[date] = None,
    score: Union[float, None] = None,
    **kwargs,
) -> Record:
    """Save a record."""
    if not name:
        raise ValueError("no name")
    record = Record(id, name, born, score)
    Game().rows.append(record)
    return record


@db0.memo
@dataclass
class Event:
    title: str
    begins: datetime
    minutes: int = 30
    guests: tuple = ()

    @property
    def ends(self):
        return self.begins + timedelta(minutes=self.minutes)

    def clashes(self, other) -> bool:
        """Tell whether both are at once."""
        return self.begins < other.ends and other.begins < self.ends


@tool
def book(title: str, begins: datetime, minutes: int = 30, guests: tuple = (), **kwargs) -> Event:
    """Book an event."""
    event = Event(title, begins, minutes, guests)
    clash = [e.title for e in Game().by_time.select() if e.clashes(event)]
    if clash:
        raise ValueError(f"{title} clashes with {', '.join(sorted(clash))}")
    Game().by_time.add(begins, event)
    return event


@tool
def agenda(day: date = date(2026, 3, 2), start: time = time(0), **kwargs) -> list[Event]:
    """Events of a day."""
    low, high = datetime.combine(day, start), datetime.combine(day, time(23, 59))
    return list(Game().by_time.sort(Game().by_time.select(low, high)))


@tool
def free(day: date, minutes: int = 60, **kwargs) -> Optional[datetime]:
    """Find a free slot."""
    at = datetime.combine(day, time(9))
    for event in agenda(day):
        if (event.begins - at).total_seconds() >= minutes * 60:
            return at
        at = max(at, event.ends)
    return at


@tool
def vote(choice: str, **kwargs) -> dict:
    """Vote."""
    votes = perm_ctx_get("votes", {})
    votes = {**dict(votes), choice: votes.get(choice, 0) + 1}
    perm_ctx_set(votes=votes)
    return votes


def agent(role, *tools, prompt="You play.", **metadata):
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
def test_a_game_master(statek_app, facts):
    statek_app.script(
        master=[
            "places = world()\nplaces",
            "h = hero('Kim', places['hall'])\nprint(h, h.at.exits, sorted(h.at.items))",
            "h.bag.append('lamp')\nh.at.items.remove('lamp')\nprint(h.bag, h.at.items)\nh.go('out')\nprint(h)",
            "try:\n    h.go('up')\nexcept LookupError as e:\n    print('cannot:', e)\nfor way in ['back', 'out', 'back']:\n    print(way, '->', h.go(way).name)\nprint(h.seen)",
            "hits = roll('3d6', seed=2)\nfor i, n in enumerate(hits, 1):\n    h.hp -= n if n > 3 else 0\n    print(f'round {i}: {n}, hp {h.hp}')\n    if h.hp <= 0:\n        break\nelse:\n    print('alive')",
            "print(flood(h.at, 'LAKE'), h.at)\nprint(flood(places['lake'], 'FIRE'))",
            "score = {'gold': 3, 'lamp': len(h.bag)}\ntotal = sum(score.values())\nprint('\\n'.join(f'{k:.<10}{v:3}' for k, v in score.items()))\nlevel = 'high' if total > 3 else 'low'\nprint(level)",
            "story = f'''{h.name} went to {', '.join(h.seen)}\nand has {total} points.'''\nprint(story)\nstory",
            "roll('many')",
            "places['lake'].items |= {'fish'}\nprint(places['lake'].items, 'fish' in places['lake'].items, h.at is places['hall'])",
            "exit(story)",
        ]
    )
    statek_app.create_job(agent("master", world, hero, roll, flood))
    statek_app.run()


@MANY
def test_an_auction(statek_app, facts):
    statek_app.script(
        auctioneer=[
            "a = bid('ann')\nb = bid('bob')\nprint('waiting')\nbest = max(a, b)\nprint(best)",
            "print(a, b, best)",
            "offers = {'ann': a, 'bob': b}\nwinner = max(offers, key=offers.get)\nprint(f'{winner} wins at {offers[winner]}')",
            "c = bid('cy') + 5\nprint(c)",
            "cy = bid('cy')\nc = cy + 5\nprint(c, sorted([a, b, c]))",
            "offers['cy'] = cy\nprint({n: v for n, v in offers.items() if v > 10})\nexit(winner)",
        ]
    )
    statek_app.at(5, lambda: Game().bids.update(bob=11))
    statek_app.at(9, lambda: Game().bids.update(ann=12))
    statek_app.at(30, lambda: Game().bids.update(cy=1))
    statek_app.create_job(agent("auctioneer", bid, get_any))
    statek_app.run()
    facts["log"] = list(LOG)
    facts["at"] = statek_app.now


@MANY
def test_players_play(statek_app, facts):
    Game().players["ann"] = agent("ann", roll)
    Game().players["bob"] = agent("bob", roll)
    statek_app.script(
        host=[
            "s1, j1 = play('ann', 2)\ns2, j2 = play('bob')\nprint(s1, s2)",
            "table = sorted([('ann', s1), ('bob', s2)], key=lambda r: -r[1])\nfor place, (name, score) in enumerate(table, 1):\n    print(place, name, score)",
            "print(j1.agent.role, str(j2.status), j1.status == j2.status)\nplay('nobody')",
            "exit(table[0][0])",
        ],
        ann=[
            "total = 0\nfor r in range(rounds):\n    total += sum(roll('2d6', seed=r))\n    print(r, total)",
            "exit(total)",
        ],
        bob=["print(rounds)\nexit(4)"],
    )
    job = statek_app.create_job(agent("host", play))
    statek_app.run()
    facts["done"] = [job.status == JobStatus.DONE]


@MANY
def test_records_are_imported(statek_app, facts):
    statek_app.script(
        importer=[
            "raw = rows()\nprint(len(raw), raw[0])\nraw",
            "from datetime import date\ndef clean(row):\n    out = {'id': int(row['id']), 'name': row['name'].strip()}\n    if row['score']:\n        out['score'] = float(row['score'].replace(',', '.'))\n    try:\n        y, m, d = map(int, row['born'].split('-'))\n        out['born'] = date(y, m, d)\n    except ValueError as e:\n        print('born:', e)\n    return out\ngood, bad = [], []\nfor i, row in enumerate(raw):\n    try:\n        good.append(clean(row))\n    except (ValueError, KeyError) as e:\n        bad.append({'row': i, 'why': str(e)})\nprint(good)\nprint(bad)",
            "saved = [save(**g) for g in good]\nsaved",
            "print(saved[0], saved[0].born, saved[-1].score, [s.id for s in saved])",
            "save(5, '')",
            "print(save('12', 'Eve', '1999-09-09', '4.5'), save(id=13, name='Max', score=2), save(14, 'Q', born='never'))",
            "scores = [s.score for s in saved if s.score is not None]\navg = sum(scores) / len(scores)\nprint(f'{avg:.3f}', min(scores), max(scores))",
            "ages = {s.name: 2026 - s.born.year for s in saved if s.born}\nprint(ages, sorted(ages.items(), key=lambda kv: kv[1]))",
            "import json\nprint(json.dumps([{'n': s.name, 'b': s.born.isoformat() if s.born else None} for s in saved], ensure_ascii=False))",
            "head = ('name', 'born', 'score')\nlines = [' | '.join(head)] + [' | '.join(str(v) for v in (s.name, s.born, s.score)) for s in saved]\nprint('\\n'.join(lines))",
            "report = {'ok': len(saved), 'bad': bad}\nreport",
            "exit(report)",
        ]
    )
    statek_app.create_job(agent("importer", rows, save))
    statek_app.run()
    facts["saved"] = [[r.id, r.name, str(r.born), r.score] for r in Game().rows]


@MANY
def test_records_are_imported_by_name(statek_app, facts):
    statek_app.script(
        importer=[
            tool_call("rows"),
            tool_call("rows", skip="3"),
            tool_call("rows", skip=2.0),
            tool_call("save", id=1, name="Ann", born="1990-01-02", score=1),
            tool_call("save", id="2", name="Bob", score="x"),
            tool_call("save", id="two", name="Bob"),
            tool_call("save", id=3, name=None),
            tool_call("save", id=4, name="Cy", born=None, score=None),
            tool_call("save", id=True, name="T"),
            tool_call("save", id=5.5, name="F"),
            tool_call("save", id=6, name="G", unknown=1),
            [tool_call("save", id=7, name="H"), tool_call("save", id=8, name="I")][0],
            "exit(len(rows()))",
        ]
    )
    statek_app.create_job(agent("importer", rows, save, LLM_TOOLS_SCOPE="APPLICATION"))
    statek_app.run()
    facts["saved"] = [[r.id, r.name, str(r.born), r.score] for r in Game().rows]


@MANY
def test_a_calendar(statek_app, facts):
    statek_app.script(
        secretary=[
            "from datetime import datetime, timedelta\nbase = datetime(2026, 3, 2, 9)\nfor i, t in enumerate(['standup', 'review', 'lunch']):\n    e = book(t, base + timedelta(hours=i * 2), 45)\n    print(e.title, e.begins, e.minutes)",
            "book('call', '2026-03-02T09:30')",
            "ok = book('call', '2026-03-02T10:00', guests=('ann', 'bob'))\nprint(ok, ok.guests, ok.ends if False else ok.minutes)",
            "day = agenda()\nfor e in day:\n    print(f'{e.begins:%H:%M}-{e.ends:%H:%M} {e.title:<10} {len(e.guests)}')",
            "print([e.title for e in agenda(start='10:30')], agenda('2027-01-01'), agenda(day='2026-03-02')[0].title)",
            "slot = free('2026-03-02', 90)\nprint(slot, free('2026-03-03'), free('tomorrow'))",
            "slot = free('2026-03-02', 90)\nprint(slot, slot.isoformat())\nlate = book('late', slot, 90)\nprint(late.clashes(day[0]), day[0].clashes(day[0]))",
            "busy = sum((e.ends - e.begins).total_seconds() for e in agenda()) / 3600\nprint(f'{busy:.2f} h')\nby_hour = {}\nfor e in agenda():\n    by_hour.setdefault(e.begins.hour, []).append(e.title)\nprint(by_hour)",
            "week = [(base + timedelta(days=d)).date() for d in range(3)]\nprint(week)",
            "from datetime import timedelta\nweek = [(base + timedelta(days=d)).date() for d in range(3)]\nprint(week, [len(agenda(d)) for d in week])",
            "exit(max(by_hour))",
        ]
    )
    statek_app.create_job(agent("secretary", book, agenda, free))
    statek_app.run()


@MANY
def test_a_survey(statek_app, facts):
    statek_app.script(
        pollster=[
            "for c in ['tea', 'milk', 'tea']:\n    v = vote(c)\nprint(v)",
            "v = vote('tea')\nprint(v, max(v, key=v.get))\nshare = {k: f'{n / sum(v.values()):.0%}' for k, n in v.items()}\nprint(share)",
            tool_call("vote", choice="rye"),
            "winner, n = sorted(v.items(), key=lambda kv: (-kv[1], kv[0]))[0]\nprint(winner, n, v)",
            "answers = 'yes no yes maybe yes no'.split()\ntally = {a: answers.count(a) for a in sorted(set(answers))}\nprint(tally)\nwide = max(map(len, tally))\nfor a, n in tally.items():\n    print(f'{a:>{wide}} {\"*\" * n} {n}')",
            "again = {a for a in answers}\nboth = again & set(tally)\nprint(len(again), sorted(again))",
            "print(sorted(set(again) & set(tally)), sorted(again - {'no'}), 'yes' in again)",
            "exit([winner, tally])",
        ]
    )
    statek_app.create_job(agent("pollster", vote, LLM_TOOLS_SCOPE="APPLICATION"))
    statek_app.run()


@MANY
def test_a_party_is_shared_out(statek_app, facts):
    made = agent("host", roll)
    made.update_warmup_def(
        "guests = ['ann', 'bob', 'cy']\nprint(guests)\nroll(dice='2d4') #STATEK: as tool\nlucky = guests[0]"
    )
    statek_app.script(
        host=[
            "print(lucky, guests, extra)",
            "tables = [guests[i::2] for i in range(2)]\nprint(tables)\nguests.append('di')",
            "print(tables, guests)\nextra['n'] += 1\nprint(extra)",
            "exit(f'{len(guests)} guests')",
        ]
        * 2
    )
    for n in range(2):
        create_new_job(made, {"extra": {"n": n}})
    statek_app.run()
