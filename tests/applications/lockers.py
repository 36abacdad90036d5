"""A locker room whose code builds STATEK's objects itself, and asks the store for what it refuses."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import create_new_job, get_llm_harness, tool
from statek.agents import DialogAgent, SupervisedAgent, WarmupDef
from statek.chat_style import ChatStyle
from statek.executors.chat_log_item import UserLogItem
from statek.executors.job import Job, JobDef, JobStatus, parse_warmup_code
from statek.executors.utils import process_push_notifications
from statek.prompt_config import make_system_prompt
from statek.statek_push_queue import StatekPushQueue
from statek.utils import CodeBlock

from statek_sim import text, tool_call


@db0.memo
class Locker:
    def __init__(self, held=1):
        self.held = held


@db0.memo
class Key:
    pass


class Plain:
    pass


@tool
def rent(**kwargs):
    """Rent a locker."""
    return Locker()


@tool
def note(value: int = 0, **kwargs):
    """Note a value."""
    return value


@tool
def lose(**kwargs):
    """Lose a locker."""
    lost = Locker()
    raise ValueError(f"no {lost.held}")


@tool
def rented(**kwargs):
    """Count lockers."""
    return len(db0.find(Locker))


def send(body, media=None):
    """Send nothing."""


def clerk(role="clerk", **options):
    return SupervisedAgent(
        role, make_system_prompt("Do."), [rent, lose, rented, note], _metadata={"MODEL": "gpt-4o"}, **options
    )


def test_messages_built_without_a_time(statek_app, facts):
    agent = DialogAgent(send, role="host", _metadata={"MODEL": "gpt-4o"})
    statek_app.script(host=[text("Hello"), text("Bye")])
    job = statek_app.create_job(agent, message="x")
    statek_app.run()
    for name, item in {
        "now": UserLogItem("Hi"),
        "by name": UserLogItem(message="Hi"),
        "none": UserLogItem("Hi", None),
    }.items():
        facts[name] = [item.message, str(item.timestamp)]
    job.chat_log.append(UserLogItem("More"))
    facts["memo"] = [db0.is_memo(item) for item in job.chat_log]
    job.set_status(JobStatus.STARTED)
    statek_app.run()
    facts["history"] = [str(item.content) for item in job.get_chat_history()]
    facts["messages"] = [item.message for item in job.chat_log if isinstance(item, UserLogItem)]


def test_messages_taken_by_prefix(statek_app, facts):
    queue, job = StatekPushQueue(), create_new_job(clerk())
    here = db0.get_current_prefix()
    facts["empty"] = queue.pop_from_job_console(2, prefix=here.name)
    for words in ("a", "b", "c"):
        queue.push_to_job_console(db0.uuid(job), words)
    for name, count, prefix in (
        ("none", 0, here.name),
        ("elsewhere", 1, "elsewhere"),
        ("name", 1, here.name),
        ("id", 1, here.uuid),
    ):
        facts[name] = [words for _, words in queue.pop_from_job_console(count, prefix=prefix)]
    queue.push_to_job_console("nobody", "d")
    facts.attempt("unknown", lambda: queue.pop_from_job_console(1, prefix=here.name))
    facts["left"] = [words for _, words in queue.pop_from_job_console(9)]
    queue.push_to_job_console(db0.uuid(job), "e")
    process_push_notifications(queue_prefixes=[here.name], job_prefix=here.name)
    facts["delivered"] = queue.is_empty()


def test_prefixes_of_values(statek_app, facts):
    here, job = db0.get_current_prefix().name, create_new_job(clerk())
    for name, value in {
        "text": "abc",
        "id": db0.uuid(job),
        "number": 1,
        "class": Locker,
        "none": None,
        "list": [1],
        "kept": Locker([1]).held,
        "enum": JobStatus.DONE,
        "plain": Plain(),
    }.items():
        facts.attempt(name, lambda value=value: db0.get_prefix_of(value).name == here)
    facts.attempt("missing", lambda: db0.open("elsewhere", "r"))
    facts.attempt("slash", lambda: db0.open(f"/{here}", "r"))


def test_classes_as_tags(statek_app, facts):
    locker, key = Locker(), Key()
    tag = db0.as_tag(Key)
    db0.tags(locker).add(tag)
    facts["tagged"] = [
        len(found)
        for found in (db0.find(Locker, tag), db0.find(tag), db0.find(Locker, db0.no(tag)), db0.find(Key))
    ]
    facts["own"] = len(db0.find(db0.as_tag(Locker)))
    db0.tags(locker).remove(tag, db0.as_tag(Locker))
    facts["untagged"] = [len(db0.find(Locker, tag)), len(db0.find(Locker))]
    db0.tags(locker).add(db0.find(Key))
    facts["found"] = len(db0.find(Locker, db0.as_tag(key)))
    for name, value in {
        "class": Key,
        "number": 5,
        "none": None,
        "plain": Plain(),
        "plain class": Plain,
    }.items():
        facts.attempt(f"add {name}", lambda value=value: db0.tags(locker).add(value))
        facts.attempt(f"remove {name}", lambda value=value: db0.tags(locker).remove(value))
        facts.attempt(f"find {name}", lambda value=value: len(db0.find(Locker, value)))
        facts.attempt(f"as_tag {name}", lambda value=value: type(db0.as_tag(value)).__name__)


COMPARISONS = {
    "<=": lambda one, other: one <= other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
    ">": lambda one, other: one > other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "subset": lambda one, other: other.issubset(one),
    "superset": lambda one, other: other.issuperset(one),
    "disjoint": lambda one, other: other.isdisjoint(one),
}


@pytest.mark.parametrize(
    "given",
    [
        {range(2)},
        {1j},
        {frozenset({1})},
        {len},
        {-1},
        {2**70},
        {1, -1},
        {0, 1, -1},
        frozenset({0, 1, range(2)}),
        {0, 1, 2, 3},
        {send},
        set(),
    ],
    ids=lambda given: (
        " ".join(sorted(map(repr, given))).partition(" at 0x")[0].replace("tests.", "") or "none"
    ),
)
def test_sets_compared(statek_app, facts, given):
    # Whether an empty-handed search reaches a bad item depends on the hashes of a set with several kinds.
    kept = Locker({0, 1, 2}).held
    for name, compare in COMPARISONS.items():
        if name != "disjoint" or len(given) != 3 or -1 in given:
            facts.attempt(name, lambda compare=compare: compare(given, kept))
    functions = Locker({send}).held
    facts["functions"] = (
        [compare(given, functions) for compare in COMPARISONS.values()] if send in given else None
    )


def test_superset_of_a_list(statek_app, facts):
    kept = Locker({0, 1, 2}).held
    for name, items in {"stops": [5, range(2)], "reaches": [0, range(2)], "first": [range(2), 5]}.items():
        facts.attempt(f"{name} superset", lambda items=items: kept.issuperset(items))
        facts.attempt(f"{name} disjoint", lambda items=items: kept.isdisjoint(items))


def test_attributes_that_are_missing(statek_app, facts):
    agent, locker = clerk(), Locker()
    job = create_new_job(agent)
    for name, owner in {
        "locker": locker,
        "agent": agent,
        "job": job,
        "definition": job.job_def,
        "workspace": job.py_env,
        "usage": job.usage,
        "prompt": agent._system_prompt,
        "queue": StatekPushQueue(),
        "list": Locker([1]).held,
        "index": db0.index(),
        "enum": JobStatus,
        "tags": db0.tags(locker),
        "query": db0.find(Locker),
        "prefix": db0.get_current_prefix(),
    }.items():
        facts.attempt(f"{name} read", lambda owner=owner: owner.missing)
        facts.attempt(f"{name} deleted", lambda owner=owner: delattr(owner, "missing"))
        facts.attempt(f"{name} set", lambda owner=owner: setattr(owner, "missing", Plain()))
        facts[f"{name} has"] = hasattr(owner, "missing")
    facts.attempt("special", lambda: getattr(locker, "__missing__"))  # noqa: B009  # not mangled
    for name, owner in {"job": job, "definition": job.job_def, "workspace": job.py_env}.items():
        owner.extra = 5
        facts[f"{name} extra"] = owner.extra
        del owner.extra
        facts.attempt(f"{name} gone", lambda owner=owner: owner.extra)


FAILING = (
    "x = rent()\n1/0",
    "rent()\n1/0",
    "lose()",
    "def get():\n    y = rent()\n    return 1/0\nget()",
    "[rent() for i in range(3)]\n1/0",
    "x = [rent()]\nx[0] = 1/0",
    "try:\n    lose()\nexcept ValueError as e:\n    raise RuntimeError('x') from e",
    "z = (lambda locker: 1/0)(rent())",
)


@pytest.mark.statek(
    limits={
        "max_turns": 99,
        "max_exceptions": 99,
        "max_consecutive_exceptions": 99,
        "max_token_usage": None,
    }
)
def test_lockers_of_failed_code(statek_app, facts):
    replies = [reply for code in FAILING for reply in (code, "rented()")]
    statek_app.script(clerk=[*replies, tool_call("lose"), "exit(rented())"], warm=[])
    statek_app.create_job(clerk())
    statek_app.run()
    statek_app.create_job(clerk("warm"), warmup_code="x = rent()\nlose()")
    statek_app.run()
    facts["left"] = len(db0.find(Locker))


CALL = "note(value=4) #STATEK: as tool\nx = 1"
SPLIT = "x = 1\n# ----------\nnote(value=x)\n# ----------\n#STATEK: hidden = True\ny = 2"
CALLS = "note(3)\nx = 1\n# ----------\n#STATEK: hidden = True\nnote(value=x) #STATEK: as tool\n# ----------\nnote(9) #STATEK: as tool"
UPDATES = {
    "named": CALL,
    "plain": "x = 1\nnote(9) #STATEK: as tool",
    "several": CALLS,
    "code": "x = 1\n# ----------\nx = 2",
}
AS_IT_IS = {
    "call": lambda: CALL,
    "split": lambda: SPLIT,
    "list": lambda: ["x = 1", "note(3) #STATEK: as tool"],
    "block": lambda: CodeBlock(CALL),
    "blocks": lambda: [CodeBlock(SPLIT), "\n  \n", "z = 1\n"],
    "blank": lambda: "  \n",
    "parsed": lambda: parse_warmup_code(CALLS),
}
OF_A_JOB = {
    "block": lambda: CodeBlock(CALL),
    "list": lambda: [CodeBlock(CALL), "note(4) #STATEK: as tool", "x = 5"],
    "parsed": lambda: parse_warmup_code(CALLS),
    "blank": lambda: CodeBlock("  "),
}


def blocks(code):
    given = [code] if code is None or isinstance(code, str) or hasattr(code, "tool_calls") else list(code)
    return [
        block
        if block is None or isinstance(block, str)
        else [
            block.code,
            [[call.id, call.format()] for call in block.tool_calls or ()],
            dict(block.metadata or {}),
        ]
        for block in given
    ]


@pytest.mark.parametrize("name", UPDATES)
def test_warmup_is_parsed_when_it_is_updated(statek_app, facts, name):
    agent = clerk()
    facts["changed"] = [agent.update_warmup_def(UPDATES[name]) for _ in range(2)]
    facts["code"] = blocks(agent.warmup_def.warmup_code)
    facts["locals"] = list(agent.referenced_locals)
    statek_app.script(clerk=["exit(1)", "exit(2)"])
    statek_app.create_job(agent)
    job = statek_app.create_job(agent, warmup_code="note(1) #STATEK: as tool\nz = 4\n# ----------\nq = 1")
    statek_app.run()
    facts["definition"] = blocks(job.job_def.warmup_code)


@pytest.mark.parametrize("name", AS_IT_IS)
def test_stored_warmup_stays_as_it_is(statek_app, facts, name):
    agent = clerk()
    agent.warmup_def = WarmupDef(AS_IT_IS[name]())
    facts["code"] = blocks(agent.warmup_def.warmup_code)
    statek_app.script(clerk=["exit(1)"])
    statek_app.create_job(agent)
    statek_app.run()


@pytest.mark.parametrize("name", OF_A_JOB)
def test_blocks_of_a_job_stay_as_they_are(statek_app, facts, name):
    statek_app.script(clerk=["exit(1)"])
    statek_app.create_job(clerk(), warmup_code=OF_A_JOB[name]())
    statek_app.run()


def test_warmup_that_cannot_be_parsed(statek_app, facts):
    agent = clerk()
    for name, code in {"line": "x = 3\n#STATEK: nonsense", "call": "x = note(3) #STATEK: as tool"}.items():
        agent.warmup_def = WarmupDef(code)
        facts.attempt(name, lambda: create_new_job(agent) and None)
        facts.attempt(f"{name} updated", lambda code=code: agent.update_warmup_def(code))
    facts["updated"] = agent.update_warmup_def("x = 1")


DEFINITIONS = {
    "agent": lambda agent: JobDef(agent),
    "model": lambda agent: JobDef(agent, {"MODEL": "gpt-4o-mini"}),
    "no model": lambda agent: JobDef(agent, {}),
    "code": lambda agent: JobDef(agent, warmup_code=SPLIT),
    "list": lambda agent: JobDef(agent, None, None, ["x = 1", CALL]),
    "values": lambda agent: JobDef(agent, None, {"a": 1, "b": [1]}),
    "bad value": lambda agent: JobDef(agent, None, {"a": Plain()}),
    "style": lambda agent: JobDef(agent, _chat_style=ChatStyle.DIRECT),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_definition_built_by_the_application(statek_app, facts, name):
    agent = clerk()
    try:
        built = DEFINITIONS[name](agent)
    except (AttributeError, ValueError) as error:
        facts["error"] = f"{type(error).__name__}: {error}"
        return
    members = (built.metadata, built.job_params, built.chat_style, built.locale, built.post_processing)
    facts["members"] = [str(member) for member in members]
    facts["code"] = blocks(built.warmup_code)
    facts["model"] = [built.model, built.provider, built.model_family]
    facts["found"] = [len(db0.find(JobDef)), len(db0.find(JobDef, db0.as_tag(agent)))]
    facts["kinds"] = [
        isinstance(built, JobDef),
        isinstance(built, Job),
        db0.is_memo(built),
        built.has_errors(),
    ]


def test_jobs_built_by_the_application(statek_app, facts):
    agent, porter = clerk(), clerk("porter")
    statek_app.script(clerk=["exit(1)", "exit(x)"], porter=["exit(note(x))"])
    parent = create_new_job(agent)
    known = JobDef(agent, {"MODEL": "gpt-4o"}, None, "x = 7\nnote(x)")
    job = Job(JobDef(porter, warmup_code="x = 6\nnote(x)"))
    child = Job(job_def=JobDef(agent, warmup_code="exit(3)"), parent_job=parent)
    facts["shared"] = [
        create_new_job(agent, warmup_code="x = 7\nnote(x)").job_def is known,
        create_new_job(agent, warmup_code="exit(3)").job_def is child.job_def,
    ]
    facts["new"] = [
        str(job.status),
        len(job.chat_log),
        job.error,
        job.parent_job,
        job.num_turns,
        str(job.created_at),
    ]
    facts["parent"] = child.parent_job is parent
    facts["found"] = [
        len(db0.find(Job)),
        len(db0.find(Job, JobStatus.READY)),
        len(db0.find(Job, db0.as_tag(porter))),
    ]
    statek_app.run()
    facts["ended"] = [job.py_env.exit_status, child.py_env.exit_status, len(db0.find(Job, JobStatus.DONE))]
    facts["names"] = [one.name for one in statek_app.jobs]


def test_limits_set_while_running(statek_app, facts):
    harness = get_llm_harness()
    limits = ("max_turns", "max_exceptions", "max_consecutive_exceptions", "max_token_usage")
    facts["before"] = [getattr(harness, name) for name in (*limits, "limit_extension_per_completion")]
    harness.max_token_usage = None
    harness.limit_extension_per_completion = 1
    harness.max_turns = 1
    facts["after"] = [getattr(harness, name) for name in (*limits, "limit_extension_per_completion")]
    statek_app.script(clerk=["1", "2"], other=["1", "1/0", "3"])
    statek_app.create_job(clerk())
    statek_app.run()
    harness.max_turns, harness.max_exceptions = 9, 0
    statek_app.create_job(clerk("other"))
    statek_app.run()
