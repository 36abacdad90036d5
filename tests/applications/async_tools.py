"""A courier service: async tools of several jobs that pass the time together, as one event loop has them."""
# mypy: ignore-errors

import asyncio
import sys
import time

import pytest
from statek import create_new_job, error_handler, get_current_agent, get_current_job, tool
from statek.agents import DialogAgent
from statek.agents.agent import SupervisedAgent

from statek_sim import text, tool_call
from statek_sim.errors import ScriptExhausted, StoppedInTool

LOG = []
DOORS = {}


def tell(what):
    """Write down what happens, when, and for whom."""
    agent = get_current_agent()
    LOG.append([asyncio.get_running_loop().time(), agent.role if agent is not None else None, what])


@pytest.fixture(autouse=True)
def _nothing_yet():
    LOG.clear()
    DOORS.clear()


@tool
async def ride(place: str, seconds: float = 1, **kwargs):
    """Ride somewhere."""
    tell(f"to {place}")
    try:
        await asyncio.sleep(seconds)
        tell(f"at {place}")
        return place
    finally:
        tell(f"off {place}")


@tool
async def ride_in_haste(place: str, seconds: float, patience: float, **kwargs):
    """Ride somewhere, and give up."""
    try:
        async with asyncio.timeout(patience):
            await asyncio.sleep(seconds)
    except TimeoutError:
        tell(f"gave up on {place}")
        return "gave up"
    return place


@tool
async def ride_or_fail(place: str, seconds: float, patience: float, **kwargs):
    """Ride somewhere, and fail."""
    await asyncio.wait_for(asyncio.sleep(seconds), patience)
    return place


@tool
async def break_down(seconds: float, **kwargs):
    """Break down on the way."""
    await asyncio.sleep(seconds)
    tell("broken")
    raise LookupError("no wheel")


@tool
async def fan_out(**kwargs):
    """Send several at once."""

    async def one(place, seconds):
        await asyncio.sleep(seconds)
        tell(f"one at {place}")
        return place

    return await asyncio.gather(one("a", 3), one("b", 1), one("c", 2))


@tool
async def call_back(**kwargs):
    """Send somebody and call him back."""

    async def rider():
        try:
            await asyncio.sleep(50)
        except asyncio.CancelledError:
            tell("called back")
            raise

    task = asyncio.create_task(rider())
    await asyncio.sleep(2)
    task.cancel()
    results = await asyncio.gather(task, return_exceptions=True)
    return type(results[0]).__name__


@tool
async def send_off(seconds: float, **kwargs):
    """Send somebody and return."""

    async def rider():
        await asyncio.sleep(seconds)
        tell("arrived")

    DOORS["rider"] = asyncio.create_task(rider())
    return "sent"


@tool
async def wait_at(door: str, **kwargs):
    """Wait at a door."""
    await DOORS.setdefault(door, asyncio.Event()).wait()
    tell(f"through {door}")
    return door


@tool
async def open_after(door: str, seconds: float, **kwargs):
    """Open a door."""
    await asyncio.sleep(seconds)
    DOORS[door].set()
    tell(f"opens {door}")


@tool
async def one_at_a_time(name: str, seconds: float, **kwargs):
    """Use the only van."""
    async with DOORS.setdefault("van", asyncio.Lock()):
        tell(f"{name} drives")
        await asyncio.sleep(seconds)
    return name


@tool
async def give_way(times: int, **kwargs):
    """Let others pass."""
    for _ in range(times):
        await asyncio.sleep(0)
    tell("gave way")
    return times


@tool
def stand_still(seconds: float, **kwargs):
    """Stop everything."""
    tell("stands")
    time.sleep(seconds)
    tell("moves")


@tool
def plan(place: str, **kwargs):
    """Ride from a tool that is not async."""
    return [ride(f"{place} 1"), ride(f"{place} 2", 2)]


@tool
async def errand(place: str, **kwargs):
    """Ride from within another async tool."""
    await asyncio.sleep(1)
    arrived = ride(f"{place} errand", 2)
    await asyncio.sleep(1)
    return arrived


@tool
async def talk(name: str, seconds: float, **kwargs):
    """Print before and after."""
    print(f"enter {name}")
    await asyncio.sleep(seconds)
    print(f"leave {name}")


@tool
async def stop_after(seconds: float, status: str, **kwargs):
    """End the job."""
    await asyncio.sleep(seconds)
    exit(status)


@tool
async def hire(**kwargs):
    """Start another job after a while."""
    await asyncio.sleep(2)
    job = create_new_job(courier("helper"), parent_job=get_current_job())
    await asyncio.sleep(2)
    return str(job.status)


@error_handler
def _give_back(context, error=None):
    LOG.append([None, "handler", str(context)])


@tool(error_handler=_give_back)
async def borrow(what: str, seconds: float, **kwargs):
    """Borrow something."""
    await asyncio.sleep(seconds)
    return what


TOOLS = [
    *(ride, ride_in_haste, ride_or_fail, break_down, fan_out, call_back, send_off, wait_at, open_after),
    *(one_at_a_time, give_way, stand_still, plan, errand, talk, stop_after, hire, borrow),
]

LIMITS = {"max_turns": 20, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
pytestmark = pytest.mark.statek(limits=LIMITS)


async def send(body, media=None):
    """Talk to the customer."""
    tell(f"sends {body}")
    await asyncio.sleep(3)
    tell(f"sent {body}")


def courier(role, tools=None):
    return SupervisedAgent(
        role=role,
        _system_prompt=None,
        _tools=TOOLS if tools is None else tools,
        _metadata={"MODEL": "openai/gpt-4o", "CHAT_STYLE": "MARKDOWN"},
    )


def run(app, facts, *codes, names=("ann", "bob", "cid"), **more):
    """Run one job for each of `codes`, all at once."""
    scripts = {name: [code, "exit('end')"] for name, code in zip(names, codes, strict=False)}
    app.script(**scripts, **more)
    for name in scripts:
        app.create_job(courier(name))
    outcome = app.run()
    facts["log"] = [list(entry) for entry in LOG]
    facts["at"] = outcome.at
    facts["settled"] = outcome.settled


@pytest.mark.parametrize(
    "seconds", [(2, 5), (5, 2), (3, 3), (0, 4), (4, 0)], ids=lambda pair: "-".join(map(str, pair))
)
def test_two_jobs_ride(statek_app, facts, seconds):
    run(
        statek_app,
        facts,
        *(f"r = ride('{n}', {s})\nride('{n}2', {s})" for n, s in zip("xy", seconds, strict=True)),
    )


@pytest.mark.parametrize(
    "code",
    [
        "for p in 'pq':\n    r = ride(p, 2)",
        "def go(p):\n    return ride(p, 2)\nprint(go('p'), go('q'))",
        "print([ride(p, 2) for p in 'pq'])",
        "print({p: ride(p, 2) for p in 'pq'})",
        "print(list(ride(p, 2) for p in 'pq'))",
        "print(sorted('pq', key=lambda p: ride(p, 2)))",
        "try:\n    ride('p', 2)\nfinally:\n    ride('q', 2)",
        "if ride('p', 2) == 'p' and ride('q', 2):\n    print('both')",
        "print(ride('p', 2) + ride('q', 2))",
        'print(f\'{ride("p", 2)} {ride("q", 2)}\')',
        "while ride('p', 2) != 'p':\n    pass\nelse:\n    ride('q', 2)",
    ],
    ids=[
        *(
            "for",
            "function",
            "list",
            "dict",
            "generator",
            "key",
            "finally",
            "condition",
            "sum",
            "text",
            "while",
        )
    ],
)
def test_wherever_code_can_call(statek_app, facts, code):
    run(statek_app, facts, code, "for p in 'uvw':\n    ride(p, 1.5)")


def test_three_jobs_of_different_length(statek_app, facts):
    run(
        statek_app,
        facts,
        "ride('a', 10)\nride('b', 1)",
        "ride('c', 4)\nride('d', 4)",
        "ride('e', 7)\nride('f', 1)",
    )


def test_timeouts(statek_app, facts):
    run(
        statek_app,
        facts,
        "print(ride_in_haste('far', 60, 3), ride_in_haste('near', 1, 3))",
        "try:\n    ride_or_fail('far', 60, 5)\nexcept Exception as error:\n    print('failed', error)",
        "ride_or_fail('far', 60, 4)",
    )


def test_errors_after_a_pause(statek_app, facts):
    run(
        statek_app,
        facts,
        "break_down(2)",
        "try:\n    break_down(3)\nexcept LookupError as error:\n    print('caught', error)",
        "ride('far', 6)",
    )


def test_many_at_once_and_calling_back(statek_app, facts):
    run(statek_app, facts, "print(fan_out())", "print(call_back())", "ride('x', 2)")


def test_somebody_is_still_on_the_way(statek_app, facts):
    run(statek_app, facts, "print(send_off(5))\nride('x', 1)", "ride('y', 3)")


def test_jobs_meet_at_a_door(statek_app, facts):
    run(statek_app, facts, "print(wait_at('gate'))", "ride('y', 1)\nopen_after('gate', 3)", "ride('z', 9)")


def test_one_van_for_all(statek_app, facts):
    run(statek_app, facts, *(f"print(one_at_a_time('{n}', {s}))" for n, s in (("a", 3), ("b", 2), ("c", 1))))


def test_giving_way_takes_no_time(statek_app, facts):
    run(
        statek_app,
        facts,
        "print(give_way(3))",
        "ride('y', 0)\nprint(give_way(40))",
        "give_way(1)\nride('z', 1)",
    )


def test_standing_still_stops_everything(statek_app, facts):
    run(statek_app, facts, "ride('x', 2)", "ride('y', 1)\nstand_still(5)", "ride('z', 3)\nride('z2', 1)")


def test_tools_call_async_tools(statek_app, facts):
    run(statek_app, facts, "print(plan('x'))", "print(errand('y'))", "ride('z', 2)")


@pytest.mark.parametrize("seconds", [(2, 5), (5, 2)], ids=lambda pair: "-".join(map(str, pair)))
def test_what_tools_print(statek_app, facts, seconds):
    run(
        statek_app, facts, *(f"print('before')\ntalk('{n}', {s})" for n, s in zip("xy", seconds, strict=True))
    )


def test_an_exit_within_an_async_tool_ends_whoever_waits_on_top(statek_app, facts):
    statek_app.script(
        ann=["stop_after(2, 'ann out')\nride('on')", "exit('end')"], bob=["ride('y', 5)\nride('no')"]
    )
    for name in ("ann", "bob"):
        statek_app.create_job(courier(name))
    statek_app.run()
    facts["log"] = [list(entry) for entry in LOG]


def test_an_exit_within_an_async_tool_on_top(statek_app, facts):
    statek_app.script(
        ann=["stop_after(5, 'ann out')\nride('no')"], bob=["ride('y', 2)\nride('on')", "exit('end')"]
    )
    for name in ("ann", "bob"):
        statek_app.create_job(courier(name))
    statek_app.run()
    facts["log"] = [list(entry) for entry in LOG]


def test_a_job_made_in_the_middle(statek_app, facts):
    run(statek_app, facts, "print(hire())", "ride('y', 3)", helper=["ride('h', 5)", "exit('helped')"])


def test_a_handler_is_registered_when_its_tool_has_come_back(statek_app, facts):
    run(
        statek_app,
        facts,
        "borrow('bike', 3)\nraise_it = 1 / 0",
        "borrow('van', 1)\nride('y', 5)",
    )
    facts["handlers"] = [[call.name for call in job.handlers] for job in statek_app.jobs]


def test_looks_at_seconds_in_the_middle_of_tools(statek_app, facts):
    statek_app.script(ann=["ride('x', 10)", "exit('end')"], bob=["ride('y', 4)\nride('z', 4)", "exit('end')"])
    for name in ("ann", "bob"):
        statek_app.create_job(courier(name))
    seen = facts["seen"] = []
    for second in (3, 6, 9):
        statek_app.at(
            second,
            lambda: seen.append([statek_app.now, len(LOG), [job.status for job in statek_app.jobs]]),
        )
    statek_app.run()
    facts["log"] = [list(entry) for entry in LOG]


def test_a_run_cannot_end_in_the_middle_of_a_tool(statek_app, facts):
    statek_app.script(ann=["ride('x', 10)"], bob=["ride('y', 4)\nride('z', 4)"])
    for name in ("ann", "bob"):
        statek_app.create_job(courier(name))
    with pytest.raises(StoppedInTool) as refusal:
        statek_app.run(until=3)
    facts["refusal"] = str(refusal.value)
    facts["log"] = [list(entry) for entry in LOG]


def test_a_script_ends_while_another_job_awaits_a_tool(statek_app, facts):
    statek_app.script(ann=["ride('x', 10)"], bob=["ride('y', 4)"])
    for name in ("ann", "bob"):
        statek_app.create_job(courier(name))
    with pytest.raises(ScriptExhausted) as refusal:
        statek_app.run()
    facts["refusal"] = str(refusal.value)


def test_messages_reach_a_job_in_the_middle_of_a_tool(statek_app, facts):
    statek_app.script(ann=["ride('x', 10)", "exit('end')"], bob=["ride('y', 2)", "exit('end')"])
    job = statek_app.create_job(courier("ann"))
    statek_app.create_job(courier("bob"))
    statek_app.at(5, lambda: job.push_user_message("Hurry!"))
    statek_app.run()
    facts["log"] = [list(entry) for entry in LOG]


def test_sending_takes_time(statek_app, facts):
    agent = DialogAgent(send, tools=TOOLS, role="desk", _metadata={"MODEL": "openai/gpt-4o"})
    statek_app.script(desk=[text("Welcome!")], bob=["ride('y', 2)\nride('z', 2)", "exit('end')"])
    statek_app.create_job(agent, message="Hello")
    statek_app.create_job(courier("bob"))
    facts["at"] = statek_app.run().at
    facts["log"] = [list(entry) for entry in LOG]


@tool
def stops(**kwargs):
    """List stops."""
    return (stop for stop in ["mill", "port"])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="asyncio takes no generator for a coroutine any more")
def test_a_generator_is_awaited_where_a_model_asked_for_it(statek_app, facts):
    statek_app.script(courier=[tool_call("stops"), "stops()", "print(list(stops()))", "exit(1)"])
    create_new_job(courier("courier", [stops]))
    statek_app.run()
