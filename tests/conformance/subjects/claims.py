"""Claims and their cleanup: when handlers are registered, run, and with what (003; behaviour 8)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import (
    END,
    AgentPlan,
    ConformanceJob,
    Limits,
    Reply,
    Resolve,
    Say,
    call,
    calls,
    cli,
    console,
    dialog,
)

CLAIMS = (
    "claim",
    "claim_nothing",
    "claim_fragile",
    "claim_and_fail",
    "claim_later",
    "status_of",
    "fail",
    "note",
)
CRASH = Reply(body='{"choices": []}')

JOBS: Final[tuple[ConformanceJob, ...]] = (
    console(
        "claim_and_exit", "a job that ends well cleans nothing up", "item = claim('one')", END, tools=CLAIMS
    ),
    console("claim_and_crash", "a crash gives the claim back", "item = claim('one')", CRASH, tools=CLAIMS),
    console(
        "claims_in_order",
        "handlers run oldest first, each once; a failing one stops nobody",
        "a = claim('one')\nb = claim_fragile('two')\nc = claim('three')",
        CRASH,
        tools=CLAIMS,
    ),
    console(
        "claim_nothing",
        "a tool that found nothing: the handler gets None",
        "x = claim_nothing()",
        CRASH,
        tools=CLAIMS,
    ),
    console(
        "claim_fails", "a tool that failed registers nothing", "claim_and_fail('one')", CRASH, tools=CLAIMS
    ),
    console(
        "claim_then_error",
        "an exception in code is no death: the claim stays",
        "item = claim('one')\n1/0",
        "status_of(item)",
        END,
        tools=CLAIMS,
    ),
    console(
        "claim_and_limit",
        "a stop by the harness gives the claim back",
        "item = claim('one')",
        "1/0",
        "2/0",
        "3/0",
        tools=CLAIMS,
        limits=Limits(streak=1),
    ),
    console(
        "claim_in_warmup",
        "a claim of a warmup that fails later is given back",
        warmup="item = claim('one')\nfail('no')",
        tools=CLAIMS,
    ),
    console(
        "claim_in_warmup_call",
        "the same for a marked call",
        warmup="claim(name='one') #STATEK: as tool\nfail('no')",
        tools=CLAIMS,
    ),
    console(
        "claim_in_warmup_kept",
        "a claim of a warmup that ends well",
        "status_of(item)",
        CRASH,
        warmup="item = claim('one')",
        tools=CLAIMS,
    ),
    console(
        "claim_in_loop",
        "one handler per call, also of a statement that ran twice",
        "for n in range(2):\n    item = claim(str(n))\n    print(wait_for('a'))",
        CRASH,
        tools=(*CLAIMS, "wait_for"),
        happens=(Resolve("a", 7),),
    ),
    console(
        "claim_later",
        "a claim that comes with a future is registered when its value is fetched",
        "item = claim_later('one')\nnote('asked')\nprint(item.name)\nnote('got it')",
        CRASH,
        tools=CLAIMS,
        happens=(Resolve("one"),),
    ),
    console(
        "claim_later_unused",
        "a future that nobody asked for",
        "item = claim_later('one')",
        CRASH,
        tools=CLAIMS,
    ),
    console(
        "claim_later_as_statement",
        "a future claim that is shown, not bound",
        "claim_later('one')",
        CRASH,
        tools=CLAIMS,
        happens=(Resolve("one"),),
    ),
    dialog(
        "claim_as_call",
        "a claim made by a tool call, and the result that the model sees",
        calls(call("claim", name="one")),
        calls(cli("print('next')")),
        CRASH,
        scope="ALL",
        tools=CLAIMS,
    ),
    dialog(
        "claim_after_success",
        "a claim is still there when a later message ends in a crash",
        calls(call("claim", name="one")),
        "done",
        CRASH,
        scope="APPLICATION",
        tools=CLAIMS,
        happens=(Say("more"),),
    ),
    console(
        "claim_twice_dead",
        "handlers run once: a revived job that dies again has none left",
        "item = claim('one')",
        CRASH,
        CRASH,
        tools=CLAIMS,
        happens=(Say("again"),),
    ),
    console(
        "child_inherits",
        "a child has copies of its parent's handlers, as they were when it was made",
        "a = claim('one')\ntask = start_task('child')\nb = claim('two')",
        END,
        tools=(*CLAIMS, "start_task"),
        others={"child": AgentPlan(replies=("c = claim('three')", CRASH), tools=CLAIMS)},
    ),
    console(
        "parent_and_child_die",
        "the parent's handler runs in both",
        "a = claim('one')\ntask = start_task('child')",
        CRASH,
        tools=(*CLAIMS, "start_task"),
        others={"child": AgentPlan(replies=(CRASH,), tools=CLAIMS)},
    ),
    console(
        "latest_input_reported",
        "from 1.3.1 the application hears of the input over which a job died",
        "exit('one')",
        CRASH,
        happens=(Say("first"),),
        warns=True,
    ),
    console(
        "latest_input_replaced",
        "only the latest input is reported, after the claims made before it",
        Reply(text="item = claim('one')", meanwhile=(Say("early"), Say("late"))),
        CRASH,
        tools=CLAIMS,
        warns=True,
    ),
)
