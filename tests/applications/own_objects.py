"""A workshop whose agents look at STATEK's own stored objects, and at methods of its parts."""
# mypy: ignore-errors

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import dbzero as db0
import pytest
from statek import create_new_job, get_current_agent, get_current_job, tool
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt
from statek.task import delegate_task

MANY = pytest.mark.statek(
    limits={"max_turns": 99, "max_exceptions": 99, "max_consecutive_exceptions": 99, "max_token_usage": None},
)


@db0.memo
class Part:
    def __init__(self):
        self.calls = 0

    def fails(self, *args):
        self.calls += 1
        raise ValueError(f"no {args}")

    def bends(self, number: int):
        self.calls += 1
        raise TypeError(f"not {number}")

    def counts(self):
        self.calls += 1
        return self.calls

    @property
    def lacks(self):
        return self.nothing


@db0.memo
@dataclass
class Coin:
    value: int

    def worth(self):
        return self.value


@db0.memo
class Held:
    def __init__(self, what):
        self.what = what

    def __eq__(self, other):
        return isinstance(other, Held) and self.what == other.what

    def __hash__(self):
        return 7


@tool
def part(**kwargs):
    """Make a part."""
    return Part()


@tool
def coin(**kwargs):
    """Make a coin."""
    return Coin(3)


@tool
def my_job(**kwargs):
    """Find the job."""
    return get_current_job()


@tool
def my_agent(**kwargs):
    """Find the agent."""
    return get_current_agent()


@tool
def hire(**kwargs):
    """Have somebody write."""
    return delegate_task(create("writer"), shared_vars={"topic": "x"}, parent_job=get_current_job())


def create(role="fitter"):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You build."),
        _tools=[part, coin, my_job, my_agent, hire],
        _metadata={"MODEL": "openai/gpt-4o"},
    )


def run(app, lines, agent=None, **others):
    app.script(fitter=[*lines, "exit(1)"], **others)
    app.create_job(agent or create())
    app.run()


LOOKS = [
    "print(j)",
    "j",
    "print([j, j])",
    "print({'k': j})",
    "print(f'{j}')",
    "print(d, u, e)",
    "print(j.job_def.agent)",
    "print(*[str(one).partition(' instance')[0] for one in (j, d, u, e, a)])",
    "print(f'{j!r}'[:40])",
    *[f"print(f'{{{name}!r}}')" for name in "adue"],
    *[f"print({name} == {name})" for name in "ajdue"],
    *[f"{name}()" for name in "ajdue"],
    *[f"print({name}.nothing)" for name in "ajdue"],
    "print(f'{j.chat_log[0]}'.partition('timestamp')[0])",
    "print(f'{j.chat_log[0]}'.partition('llm_reasoning')[1])",
]
READS = {
    "j": "job_status status model model_family num_turns exception_count error parent_job awaited_result next_instr_num "
    "warmup_block_num num_completions error_handlers difficulty_token_extension max_consecutive_exceptions usage "
    "agent host id history inbox life signal keeping job_log sent steps llm_calls tool_via chat_style shared_names "
    "get_current_model push_user_message console locals stop exit trace",
    "d": "metadata job_params warmup_code locale model model_family provider chat_style errors extra_resources "
    "provider_config post_processing has_errors",
    "e": "console exceptions push_log exit_status global_state perm_ctx stores in_block unweighed warmup_block_num "
    "next_instr_id future_result",
    "u": "total_cost total_reported_cost total_input_tokens pricing turns approx_tokens",
    "a": "role metadata context tools all_tools system_prompt description warmup_def prompt warmup chat_style",
}
CALLS = [
    "j.get_current_model()",
    "j.get_current_difficulty()",
    "j.system_prompt()",
    "j.count_llm_actions()",
    "j.is_step_final(None)",
    "list(j.get_dialog())",
    "list(j.get_chat_responses())",
    "j.push_user_message('x')",
    "j.panic()",
    "j.find_sub_task_handler()",
    "list(j.find_locals(str))",
    "j.add_locals(z=1)",
    "j.notify_handlers()",
    "d.has_errors()",
    "list(d.get_errors())",
    "e.update_locals(w=1)",
    "a.get_adapter('x')",
    "a.get_examples()",
    "a.update_description('x')",
    "a.update_system_prompt('x')",
]
METHODS = [
    "print(p.fails)",
    "p.fails",
    "print([p.fails], {'k': p.fails})",
    "print(str(p.fails)[:22], f'{p.fails!r}'[:22])",
    "print(p.fails.nothing)",
    "p.fails.nothing = 1",
    "print(p.fails > 1)",
    "print(p.fails + 1)",
    "print(p.fails[0])",
    "print(len(p.fails), 1)",
    "for x in p.fails: pass",
    "print(callable(p.fails), bool(p.fails))",
    "p.fails()",
    "print(p.calls)",
    "p.fails(1, 2)",
    "print(p.calls)",
    "p.bends('x')",
    "print(p.calls)",
    "p.bends()",
    "print(p.calls)",
    "p.counts(1)",
    "print(p.calls)",
    "again = lambda use: use()\nprint(again(p.counts))",
    "again = lambda use: use()\nagain(p.fails)",
    "print(p.calls)",
    "p.kept = p.fails",
    "print(p.lacks)",
    "print(f'{p:>5}')",
    "print(f'{c:>5}')",
    "print(f'{c!r}')",
    "print(str([c])[:9])",
    "c()",
    "p()",
    "print(c.worth, c.worth())",
]


@MANY
@pytest.mark.not_what_was_sent
def test_what_agents_are_shown(statek_app, facts):
    run(
        statek_app,
        ["j = my_job()\na = my_agent()\nd, u, e = j.job_def, j.usage, j.py_env", *LOOKS],
    )


@MANY
@pytest.mark.not_what_was_sent
@pytest.mark.parametrize("name", READS)
def test_what_agents_may_read(statek_app, facts, name):
    lines = [f"print({name}.{attribute})" for attribute in READS[name].split()]
    run(statek_app, ["j = my_job()\na = my_agent()\nd, u, e = j.job_def, j.usage, j.py_env", *lines])


@MANY
@pytest.mark.not_what_was_sent
def test_what_agents_may_call(statek_app, facts):
    lines = [f"print({call})" for call in CALLS]
    run(statek_app, ["j = my_job()\na = my_agent()\nd, u, e = j.job_def, j.usage, j.py_env", *lines])


@MANY
def test_methods_of_parts(statek_app, facts):
    run(statek_app, ["p, c = part(), coin()", *METHODS])


@MANY
@pytest.mark.not_what_was_sent
def test_what_is_written_to_a_job(statek_app, facts):
    lines = [
        "my_job().note = 5\nprint(my_job().note, my_job())",
        "my_job().note = [1]\nmy_job().note.append(2)\nprint(my_job().note)",
        "my_job().note = range(3)",
        "status, job = hire()\nprint(status, job)",
        "print(job.parent_job, job == my_job(), job.parent_job == my_job())",
        "print(job.status, job.py_env.exit_status)",
    ]
    run(statek_app, lines, writer=["exit('written')"])


@MANY
@pytest.mark.not_what_was_sent
def test_a_job_that_warms_up(statek_app, facts):
    agent = create()
    agent.update_warmup_def("x = 1\nprint(my_job())")
    run(statek_app, ["print(my_job())", "print(my_job().job_def)", "print(my_job().py_env)"], agent)
    facts["tools"] = type(agent.tools).__name__
    job = create_new_job(agent, {"a": 1}, topic="y")
    job.note = 5
    facts["note"] = job.note
    facts.attempt("not there", lambda: job.nothing)
    facts.attempt("a text", lambda: agent.update_system_prompt("x"))


ALIKE = {
    "numbers": [1, 2**62, 1.5, True, None],
    "text": "a",
    "long text": "a long text" * 9,
    "bytes": b"x",
    "moment": datetime(2026, 1, 1, 9),
    "price": Decimal("1.5"),
    "list": [1],
    "tuple": ("a",),
    "dict": {1: 2},
    "set": {1},
    "nothing": [],
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("kind", [list, tuple])
def test_which_stored_collections_are_equal(statek_app, facts, kind, name):
    plain = kind([0, ALIKE[name]])
    one, other = Held(plain).what, Held(plain).what
    facts["equal"] = [one == other, one != other, one == one, one == plain, plain == other]
    if kind is list:
        copy = one.copy()
        facts["copies"] = [copy == one, copy != one, one == copy.copy(), copy == other]
        one.append(1)
        copy.append(1)
        facts["with a number"] = copy == one
        one.append("a")
        copy.append("a")
        facts["with a text"] = copy == one


def test_numbers_of_different_types_are_stored_differently(statek_app, facts):
    facts["equal"] = [
        Held([a]).what == Held([b]).what for a, b in ((1, True), (1, 1.0), (0.5, Decimal("0.5")))
    ]


def test_a_hash_of_its_own_is_ignored(statek_app, facts):
    one, other = Held(1), Held(1)
    facts["found"] = [hash(one) == 7, one == other, len({one, other}), other in {one}, other in [one]]
    facts["stored"] = [
        other in Held({one}).what,
        len(Held({one, other}).what),
        Held({one: 2}).what.get(other),
    ]
