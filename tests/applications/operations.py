"""An operations room: a rota, incidents with their handlers, deployments, and logs that are read."""
# mypy: ignore-errors

import asyncio
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Literal, Optional, Union

import dbzero as db0
import pytest
from statek import (
    complete_sub_task,
    create_new_job,
    error_handler,
    get_all,
    get_current_job,
    send_notification_to,
    statek_print,
    subtask,
    tool,
)
from statek.agents import SupervisedAgent
from statek.exceptions import FutureError
from statek.future import FutureResult, temporal
from statek.prompt_config import make_system_prompt

from statek_sim import text, tool_call

Alarm = db0.enum("Alarm", ["LOW", "HIGH", "CRITICAL"])
LOG = []


@db0.memo
class Person:
    def __init__(self, name, phone=None):
        self.name = name
        self.phone = phone
        self.shifts = []

    def __llm_repr__(self, **kwargs):
        return f"<{self.name}>"


@db0.memo
@dataclass
class Incident:
    title: str
    severity: Alarm = Alarm.LOW
    opened: datetime = None
    owner: Optional[Person] = None
    notes: list = field(default_factory=list)

    def escalate(self):
        """Make it worse."""
        self.severity = Alarm.CRITICAL
        self.notes.append("escalated")
        return self


@db0.memo(singleton=True)
class Room:
    def __init__(self):
        self.people = {}
        self.incidents = []
        self.acknowledged = {}
        self.agents = {}


@tool
def people(**kwargs) -> list[Person]:
    """Who there is."""
    return list(Room().people.values())


@tool
def assign_shift(person: Person, day: date, hours: tuple[int, int] = (9, 17), **kwargs):
    """Give a shift."""
    person.shifts.append((day, hours))
    return len(person.shifts)


@tool
def shifts(**kwargs) -> dict[str, list]:
    """All shifts."""
    return {name: list(person.shifts) for name, person in Room().people.items()}


@tool
def report(title: str, severity: Alarm = Alarm.LOW, at: Union[datetime, None] = None, **kwargs) -> Incident:
    """Report an incident."""
    incident = Incident(title, severity, at or datetime(2026, 1, 1, 12))
    Room().incidents.append(incident)
    db0.tags(incident).add("incident", severity)
    return incident


@tool
def incidents(severity: Optional[Alarm] = None, **kwargs):
    """Find incidents."""
    return sorted(i.title for i in (db0.find(Incident, severity) if severity else db0.find(Incident)))


@error_handler
def _release(context, error=None):
    LOG.append(f"released {context.title}: {error}")
    context.owner = None


@tool(error_handler=_release)
def take(incident: Incident, who: Person = None, **kwargs) -> Incident:
    """Take an incident."""
    incident.owner = who or next(iter(Room().people.values()))
    return incident


@db0.memo
class Ack(FutureResult):
    def __init__(self, name):
        super().__init__(deps=None, state_num=0)
        self.name = name


def is_acknowledged(future) -> bool:
    return future.name in Room().acknowledged


def acknowledgement(future):
    if not is_acknowledged(future):
        raise FutureError(future)
    return Room().acknowledged[future.name]


@temporal(complement=acknowledgement, condition=is_acknowledged)
@tool
def page(name: str, message: str = "wake up", **kwargs):
    """Page somebody."""
    LOG.append(f"paged {name}: {message}")
    return Ack(name)


@tool
async def probe(host: str, seconds: float = 2.0, fail: bool = False, **kwargs) -> dict:
    """Probe a host."""
    await asyncio.sleep(seconds)
    if fail:
        raise ConnectionError(f"{host} is down")
    return {"host": host, "ms": seconds * 1000, "ok": True}


def ops_runbook(topic: Literal["disk", "net"] = "disk", **kwargs):
    """Show a page of the runbook."""
    statek_print(f"runbook: {topic}")
    return {"disk": ["df -h", "rm -r /tmp/x"], "net": ["ping"]}[topic]


@tool
def notify(role: str, message: str, **kwargs):
    """Send word to the job of another agent."""
    job = Room().agents[role]
    send_notification_to(job, message)
    return "sent"


def agent(role, *tools, prompt="You run things.", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt(prompt),
        _tools=list(tools),
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


@pytest.fixture(autouse=True)
def _nothing_logged():
    LOG.clear()


@pytest.fixture
def room(statek_app):
    for name in ("ann", "bob", "cy"):
        Room().people[name] = Person(name)
    return Room()


MANY = pytest.mark.statek(
    storage="warn",
    limits={"max_turns": 30, "max_exceptions": 20, "max_consecutive_exceptions": 9, "max_token_usage": None},
)
pytestmark = pytest.mark.filterwarnings("ignore")


@MANY
def test_a_rota_is_made(statek_app, room, facts):
    statek_app.script(
        planner=[
            "team = people()\nteam",
            "from datetime import date, timedelta\nstart = date(2026, 3, 2)\nfor i in range(5):\n    who = team[i % len(team)]\n    n = assign_shift(who, start + timedelta(days=i))\n    print(who.name, start + timedelta(days=i), n)",
            "plan = shifts()\nplan",
            "for name, days in sorted(plan.items()):\n    print(name, [f'{d:%a}' for d, _ in days], [h for _, (h, _) in days])",
            "print(assign_shift(team[0], '2026-03-09', (22, 6)))\nprint(assign_shift(team[0], '2026-03-10', [1, 2]))\nprint(assign_shift('ann', '2026-03-09'))",
            "load = {p.name: len(p.shifts) for p in team}\nleast = min(load, key=load.get)\nprint(load, least)\nsorted(load.items(), key=lambda kv: (-kv[1], kv[0]))",
            "print(team[0].shifts[0][0].isoformat(), team[0].shifts[-1], team[0].shifts)",
            "by_day = {}\nfor p in team:\n    for day, hours in p.shifts:\n        by_day.setdefault(day, set()).add(p.name)\nprint({str(d): sorted(ns) for d, ns in sorted(by_day.items())})",
            "clash = [d for d, ns in by_day.items() if len(ns) > 1]\nprint(clash)\nexit(load)",
        ]
    )
    statek_app.create_job(agent("planner", people, assign_shift, shifts))
    statek_app.run()


@MANY
@pytest.mark.parametrize("ends", ["well", "badly"])
def test_an_incident_is_taken(statek_app, room, facts, ends):
    tool(system=True)(ops_runbook)
    last = ["exit('fixed')"] if ends == "well" else ["x = undefined"] * 10
    statek_app.script(
        responder=[
            "inc = report('db down', 'HIGH', '2026-01-02T03:04:05')\nprint(inc)\nlow = report('typo')",
            "print(incidents(), incidents('HIGH'), incidents(severity='LOW'), incidents('NONE'))",
            "take(inc)\nprint(inc.owner, inc.owner.name)\ntake(low, people()[1])",
            "who = page(inc.owner.name, f'{inc.title}!')\nprint(who)",
            "print(f'{who} answered', who == 'on my way', who.upper())",
            "inc.escalate()\nprint(inc.severity == 'CRITICAL', str(inc.severity), inc)\nprint(inc.notes + ['x'], low.notes)",
            "ops_runbook('net')\nsteps = ops_runbook()\nprint(steps, ops_runbook('fire'))",
            *last,
        ]
    )
    statek_app.at(45, lambda: Room().acknowledged.update(ann="on my way"))
    statek_app.create_job(agent("responder", report, incidents, take, people, page))
    statek_app.run()
    facts["log"] = list(LOG)
    facts["owners"] = [i.owner and i.owner.name for i in room.incidents]
    facts["at"] = statek_app.now


@MANY
def test_hosts_are_probed(statek_app, room, facts):
    statek_app.script(
        prober=[
            "r = probe('a')\nprint(r, r['ms'] / 1000)",
            "results = {}\nfor h in ['a', 'b', 'c']:\n    try:\n        results[h] = probe(h, 1, h == 'b')['ok']\n    except ConnectionError as e:\n        results[h] = str(e)\nprint(results)",
            "results = {}\nfor h in ['a', 'b', 'c']:\n    try:\n        results[h] = probe(h, 1, h == 'b')['ok']\n    except Exception as e:\n        results[h] = str(e)\nprint(results)",
            tool_call("probe", host="z", seconds=3),
            tool_call("probe", host="z", fail=True),
            tool_call("probe", host="z", seconds="fast"),
            tool_call("probe", seconds=1),
            "down = [h for h, ok in results.items() if ok is not True]\nprint(down)\nexit(down)",
        ]
    )
    statek_app.create_job(agent("prober", probe, LLM_TOOLS_SCOPE="APPLICATION"))
    statek_app.run()
    facts["at"] = statek_app.now


@subtask
def deploy(service: str, version: tuple = (1, 0), **kwargs):
    """Deploy a service."""
    return create_new_job(
        Room().agents["deployer"], {"service": service, "version": version}, get_current_job()
    )


@tool
def done(result=None, error: str = None, **kwargs):
    """Report."""
    complete_sub_task(result, error)
    return "reported"


@MANY
def test_services_are_deployed(statek_app, room, facts):
    room.agents["deployer"] = agent("deployer", done)
    statek_app.script(
        release=[
            "a = deploy('api', id='api')\nb = deploy('web', (2, 1), id='web')\nprint(a.id, b.id)",
            "waiting = True\nprint('waiting')",
            "states = {i: find_sub_task_handler(i) for i in ['api', 'web']}\nprint(sorted(states), [h.is_completed for h in states.values()])",
            "for i in ['api', 'web']:\n    h = find_sub_task_handler(i)\n    try:\n        print(i, h.result)\n    except Exception as e:\n        print(i, 'failed', e)",
            "exit('released')",
        ],
        deployer=[
            "print(service, version, version[0])",
            "log = [f'{step} {service}' for step in ('build', 'test', 'ship')]\nfor line in log:\n    print(line)\nif service == 'web':\n    done(error='tests are red')\nelse:\n    done({'service': service, 'log': log})",
            "exit(service)",
            "print(service, version, version[0])",
            "log = [f'{step} {service}' for step in ('build', 'test', 'ship')]\nfor line in log:\n    print(line)\nif service == 'web':\n    done(error='tests are red')\nelse:\n    done({'service': service, 'log': log})",
            "exit(service)",
        ],
    )
    job = statek_app.create_job(agent("release", deploy))
    statek_app.run()
    facts["told"] = [h for h in (str(job.status), job.num_turns)]


@MANY
def test_words_between_jobs(statek_app, room, facts):
    statek_app.script(
        watcher=["print('watching')", "x = 1\nprint(x)", "y = x + 1\nprint(y)", "exit(y)"],
        caller=[
            "notify('watcher', 'disk is full')",
            "print(notify('watcher', 'and the net is slow'))",
            "notify('nobody', 'x')",
            "exit('called')",
        ],
    )
    room.agents["watcher"] = statek_app.create_job(agent("watcher"))
    statek_app.create_job(agent("caller", notify))
    statek_app.run()


@tool
def read_log(lines: int = 50, **kwargs) -> str:
    """Read the log."""
    rows = []
    for n in range(lines):
        level = ("INFO", "WARN", "ERROR")[n % 3 if n % 5 else 0]
        rows.append(f"2026-01-02T03:{n % 60:02d}:00 {level:<5} svc-{n % 4} took {n * 7 % 50}ms id={n:05x}")
    return "\n".join(rows)


@MANY
@pytest.mark.parametrize("style", ["PYTHON", "MARKDOWN", "MD_DIALOG", "XML"])
def test_a_log_is_read(statek_app, room, facts, style):
    def code(lines):
        return lines if style == "PYTHON" else text(f"Let me see.\n```python\n{lines}\n```\n")

    statek_app.script(
        reader=[
            code("raw = read_log()\nprint(len(raw), raw.count('\\n'))"),
            code(
                "import re\nrows = [re.match(r'(\\S+) (\\w+)\\s+(\\S+) took (\\d+)ms id=(\\w+)', l).groups() for l in raw.splitlines()]\nprint(rows[:2])"
            ),
            code(
                "by = {}\nfor at, level, svc, ms, _ in rows:\n    by.setdefault((svc, level), []).append(int(ms))\nprint({f'{s}/{l}': len(v) for (s, l), v in sorted(by.items())})"
            ),
            code(
                "worst = max(by, key=lambda k: max(by[k]))\nprint(worst, max(by[worst]), sum(by[worst]) / len(by[worst]))"
            ),
            code(
                "for (svc, level), ms in sorted(by.items()):\n    bar = '#' * (sum(ms) // 10)\n    print(f'{svc:<6} {level:<5} {bar} {len(ms)}')"
            ),
            code("exit(f'{worst[0]} is slow')"),
        ]
    )
    metadata = {} if style == "PYTHON" else {"CHAT_STYLE": style}
    made = agent("reader", read_log, **metadata)
    job = create_new_job(made)
    facts["style"] = str(job.job_def.chat_style) if hasattr(job.job_def, "chat_style") else "?"
    statek_app.run()


@MANY
def test_pages_are_awaited_together(statek_app, room, facts):
    statek_app.script(
        caller=[
            "a = page('ann')\nb = page('bob', message='now')\nprint('paged')\nanswers = get_all(a, b)\nprint(answers)",
            "print(a, b)",
            "answers = [page(n) for n in ('ann', 'bob')]\nprint(len(answers))",
            "one = page('cy')\nif one == 'yes':\n    print('cy said yes')\nelse:\n    print(f'cy said {one}')",
            "exit([str(one)])",
        ]
    )
    statek_app.at(10, lambda: Room().acknowledged.update(bob="b!"))
    statek_app.at(20, lambda: Room().acknowledged.update(ann={"eta": time(1, 2), "by": ["car"]}))
    statek_app.at(300, lambda: Room().acknowledged.update(cy="yes"))
    statek_app.create_job(agent("caller", page, get_all))
    statek_app.run()
    facts["log"] = list(LOG)
    facts["at"] = statek_app.now
    facts["span"] = str(timedelta(hours=2))
