"""Complete examples as in a scenario file, including warmup code that fails, waits or cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from statek_sim.values import JSON
from tools.random_programs.draw import Draw, maybe, seldom
from tools.random_programs.replies import STYLES, Style, Written, reply
from tools.random_programs.subjects import FUTURES, ITEMS, SLOW, SUBJECTS, Subject

_LINES: Final = (
    "note('warm') #STATEK: as tool",
    "echo(value=1) #STATEK: as tool",
    "fetch_next_item(owner) #STATEK: as tool",
    "fail('cold') #STATEK: as tool",
    "missing_tool() #STATEK: as tool",
    "wait_for('approval') #STATEK: as tool",
    "#STATEK: hidden = True",
    "#STATEK: hidden = False",
    "#STATEK: label = 'x'",
    "# STATEK: a comment",
    "a = note('x') #STATEK: as tool",
    "echo(a + 1) #STATEK: as tool",
    "#STATEK: hidden",
    "# ---------",
    "print('- warm')",
)
_SEPARATORS: Final = ("\n# ----------\n", "\n  #--------------------\n", "\n# ----------\n# ----------\n")


def warmup(subject: Subject, *, starts: bool = False) -> Callable[[Draw], str]:
    """Return a function that makes an agent's or a job's warmup; with `starts`, its blocks may start jobs."""

    def code(draw: Draw) -> str:
        return draw.part(subject.warmup_code).rstrip("\n")

    def line(draw: Draw) -> str:
        return draw.of(_LINES)

    def block(draw: Draw) -> str:
        if starts and subject.starting_code is not None and maybe(draw):
            return draw.part(subject.starting_code).rstrip("\n")
        return "\n".join(draw.some(lambda draw: draw.of((code, line, line))(draw), least=1, most=2))

    def made(draw: Draw) -> str:
        return draw.of(_SEPARATORS).join(draw.some(block, least=1, most=3)) + "\n"

    return made


MAIN: Final = "main"
CHILD: Final = "helper"
OTHERS: Final = ("second", "third")
_TASK: Final = "task"

_LIMITS: Final[dict[str, tuple[JSON, ...]]] = {
    "max_exceptions": (5, 0, 1, 2, 3, None),
    "max_consecutive_exceptions": (3, 0, 1, 2, None),
    "max_token_usage": (100_000, 0, 200, 1_000, 3_000, 10_000, None),
    "limit_extension_per_completion": (0.0, 0.25, 1.0),
}
_SETTINGS: Final[tuple[Written, ...]] = ({"xml_box_console": "OUT"}, {"statek_default_difficulty": "H"})
_OUTCOMES: Final[tuple[Written, ...]] = (
    {"result": "done"},
    {"error": "lost"},
    {},
    {"result": [1, {"k": None}]},
)
_MODELS: Final = (
    *("L:small,M:middle,H:large", "gpt-4o-mini", "LMH:one", "h:large, ml:small", "openai/gpt-4o", " gpt-4o "),
    *("L:a,M:b", "X:a,LMH:b", "L:a,L:b,MH:c", "", "llama3.1:8b", "L:,MH:b"),
)
"""Model names; those in the second line cannot be parsed, so no job is created."""

_UNTIL: Final = 90.0
"""Virtual seconds. Up to 1.3.1, a job that waits in warmup reruns its block in every loop pass."""
_TURNS: Final = (6, 0, 1, 2, 3, 4, 10)
_TIMES: Final = (1, 0, 2, 5, 5, 10, 31, 45, 80)
_VALUES: Final[tuple[JSON, ...]] = (40, "yes", None, [1, 2], ["x", {"k": 1}], {"k": "ż"}, "", 0, False, 2.5)


def scenario(draw: Draw) -> Written:
    """Return an example without an id and title."""
    crashes = seldom(draw)
    dies = draw.of((False, False, False, True))
    subject = draw.of(SUBJECTS)
    main, reader = draw.of(STYLES), draw.of(STYLES)
    delegates = "delegate" in subject.tools
    made: dict[str, Any] = {
        "until": _UNTIL,
        "limits": draw.part(_limits_after_crashes if crashes else _limits),
        "world": {"queue": {"items": list(ITEMS[: draw.of((2, 0, 1, 3))])}, "futures": list(FUTURES)},
        "agents": {"clerk": _agent(draw, subject, main, "You process invoices.", starts=True)},
        "jobs": {MAIN: _job(draw, subject, "clerk")},
        "script": {"clerk": [*draw.some(reply(subject, main, crashes=crashes), least=1, most=5), main.last]},
    }
    if delegates:
        made["agents"]["reader"] = _agent(draw, subject, reader, "You read scans.")
        made["script"]["reader"] = [*draw.some(reply(subject, reader, crashes=crashes), most=3), reader.last]
        if maybe(draw):
            made["jobs"][CHILD] = {**_job(draw, subject, "reader"), "parent": MAIN, "subtask": _TASK}
    if subject is SLOW:
        # Several at once, whose tools pass the time together.
        for name in draw.of((OTHERS, OTHERS[:1], ())):
            made["jobs"][name] = _job(draw, subject, "clerk")
            made["script"][f"job:{name}"] = [
                *draw.some(reply(subject, main, crashes=False), least=1, most=4),
                main.last,
            ]
    hearing = tuple(made["jobs"])
    made["events"] = draw.some(lambda draw: _event(draw, subject, hearing), most=4)
    if dies:
        made["events"] += draw.part(lambda draw: _death(draw, subject))
    made.update(draw.part(_scheduling))
    return {key: value for key, value in made.items() if value not in ({}, [])}


def _limits(draw: Draw) -> Written:
    if maybe(draw):
        return {
            "max_turns": draw.of(_TURNS),
            "max_exceptions": 10,
            "max_consecutive_exceptions": 10,
            "max_token_usage": 1_000_000,
        }
    limits: Written = {"max_turns": draw.of(_TURNS)}
    for name, options in _LIMITS.items():
        if maybe(draw):
            limits[name] = draw.of(options)
    return limits


def _limits_after_crashes(draw: Draw) -> Written:
    """Return limits without a tight budget: see `excluded`, "budgets after a crash"."""
    return {**draw.part(_limits), "max_token_usage": 1_000_000}


def _agent(draw: Draw, subject: Subject, style: Style, prompt: str, *, starts: bool = False) -> Written:
    agent: Written = {"prompt": prompt, **style.agent, "tools": list(subject.tools)}
    if seldom(draw):
        agent["warmup"] = draw.part(warmup(subject, starts=starts))
    if seldom(draw):
        agent["model"] = draw.of(_MODELS)
    if seldom(draw):
        agent["temperature"] = draw.of((0.0, 0.5, 1.0))
    if seldom(draw) and style.agent.get("dialog"):
        agent["reminder"] = {"text": "Go on.", **draw.of(({}, {"min_dialog_len": 2}))}
    if seldom(draw):
        agent["prompt"] = draw.of(("", 'Zażółć 😀 "x"\nnext line', "a" * 300))
    return agent


def _job(draw: Draw, subject: Subject, agent: str) -> Written:
    job: Written = {"agent": agent}
    if maybe(draw):
        job["message"] = draw.of(("How much do I owe?", "", "Ile? 😀\nsecond line", "exit('no')"))
    if "owner" in str(subject.tools) or "fetch_next_item" in subject.tools:
        job["locals"] = {"owner": {"$world": "owner"}}
    elif seldom(draw):
        job["locals"] = {"a": draw.of(_VALUES), "b": draw.of(_VALUES)}
    if seldom(draw):
        job["warmup"] = draw.part(warmup(subject, starts=True))
    return job


def _when(draw: Draw, subject: Subject) -> Written:
    """Return when an event happens: at a time or after a tool call."""
    if draw.of((False, False, True)):
        return {"after": {"tool": draw.of(("note", *subject.tools)), "call": draw.of((1, 1, 2))}}
    return {"at": draw.of(_TIMES)}


def _death(draw: Draw, subject: Subject) -> list[Written]:
    """Return a worker death, sometimes another event after the same call, and mostly a new worker."""
    when = _when(draw, subject)
    made: list[Written] = [{**when, "crash": "worker"}]
    if maybe(draw):
        made.append({**when, "resolve": draw.of(FUTURES), "value": "late"})
    if draw.of((True, True, True, False)):
        made.append({**draw.of(({"at": 60}, {"at": 10}, when, {"at": 40})), "restart": "worker"})
    return made


def _event(draw: Draw, subject: Subject, jobs: Sequence[str]) -> Written:
    """Return an external event; only `jobs` receive it."""
    at = _when(draw, subject)
    match draw.of(("resolve", "push", "resolve", "push", "notify", "complete", "fail")):
        case "push" if jobs:
            return {**at, "push": draw.of(jobs), "message": draw.of(("And now?", "", "Ż 😀"))}
        case "notify" if jobs:
            return {**at, "notify": draw.of(jobs), "message": draw.of(("The office closes.", "", "Ż\nż"))}
        case "complete" if CHILD in jobs:
            return {**at, "complete": _TASK, **draw.of(_OUTCOMES)}
        case "fail":
            return {**at, "fail": draw.of(FUTURES), "error": "gateway down"}
        case _:
            return {**at, "resolve": draw.of(FUTURES), "value": draw.of(_VALUES)}


def _scheduling(draw: Draw) -> Written:
    chosen: Written = {}
    if seldom(draw):
        chosen["order"] = draw.of(("newest", "shuffled"))
        chosen["seed"] = draw.of((0, 1, 2))
    if seldom(draw):
        chosen["max_concurrency"] = draw.of((1, 2))
    if seldom(draw):
        chosen["preset"] = draw.of(("local", "interactive", "batch"))
    if seldom(draw):
        chosen["settings"] = draw.of(_SETTINGS)
    return chosen
