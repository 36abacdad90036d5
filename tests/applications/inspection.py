"""A back office that looks at its jobs, definitions and agents."""
# mypy: ignore-errors

from decimal import Decimal

import dbzero as db0
import pytest
from statek import create_new_job, tool
from statek.agents import Agent, SupervisedAgent
from statek.executors.job import Job, JobDef, JobStatus
from statek.model_pricing import get_model_pricing, set_model_pricing
from statek.prompt_config import make_system_prompt
from statek.task_difficulty import TaskDifficulty

from statek_sim import code, text, tool_call


@tool
def work(**kwargs):
    """Work."""
    return "worked"


@tool
def _hidden_helper(**kwargs):
    """Help."""
    return "helped"


def create(role="clerk", **metadata):
    return SupervisedAgent(
        role=role,
        _system_prompt=make_system_prompt("You count."),
        _tools=[work, _hidden_helper],
        _metadata={"MODEL": "openai/gpt-4o", **metadata},
    )


MANY = pytest.mark.statek(
    limits={"max_turns": 30, "max_exceptions": 9, "max_consecutive_exceptions": 9, "max_token_usage": None}
)
MODELS = [
    "openai/gpt-4o",
    "gpt-4o",
    "openrouter/openai/gpt-5-mini",
    "L:a,MH:b",
    "L:x/a,M:x/b,H:x/c",
    "LMH:one/two",
    "openai/gpt-4o[/rl=50]",
    "groq/meta/llama",
]


@pytest.mark.parametrize("model", MODELS)
def test_what_a_job_says_about_its_model(statek_app, facts, model):
    def look():
        job = create_new_job(create(MODEL=model))
        return [
            job.model,
            job.model_family,
            job.get_current_model(),
            str(job.get_current_difficulty()),
            job.job_def.model,
            job.job_def.model_family,
            job.job_def.provider,
        ]

    facts.attempt("job", look)
    facts.attempt("high", lambda: create_new_job(create(MODEL=model)).get_current_model(TaskDifficulty.high))


def test_what_a_fresh_job_is(statek_app, facts):
    agent = create()
    job = create_new_job(agent, {"a": 1}, topic="x")
    facts["status"] = [
        str(job.status),
        str(job.job_status),
        job.status == JobStatus.READY,
        job.job_status == JobStatus.READY,
    ]
    facts["numbers"] = [
        job.num_turns,
        job.exception_count,
        job.max_consecutive_exceptions,
        job.approx_token_usage,
        job.num_completions,
    ]
    facts["nothing"] = [
        job.error,
        job.parent_job,
        job.awaited_result,
        job.next_instr_num,
        job.py_env.exit_status,
        job.py_env.perm_ctx,
    ]
    facts["agent"] = [job.agent == agent, job.job_def.agent == agent]
    facts["params"] = dict(job.job_def.job_params)
    facts["usage"] = [job.usage.context_bytes, job.usage.total_cost, job.usage.total_reported_cost]
    facts["last"] = job.last_response
    facts["created"] = str(job.created_at)
    facts["prompt"] = job.system_prompt()
    facts["memo"] = db0.is_memo(job)
    statek_app.script(clerk=["exit(a)"])
    statek_app.run()


@MANY
def test_difficulty_rises(statek_app, facts):
    agent = create(MODEL="L:a,M:b,H:c", DEFAULT_DIFFICULTY="L")
    job = create_new_job(agent)
    statek_app.script(clerk=["panic()", "panic()", "panic()", "exit(1)"])
    facts["before"] = [str(job.get_current_difficulty()), job.get_current_model()]
    statek_app.run()
    facts["after"] = [
        str(job.get_current_difficulty()),
        job.get_current_model(),
        job.get_current_difficulty() == TaskDifficulty.high,
    ]
    facts["models"] = [request.model for request in statek_app.requests]
    facts["values"] = [str(value) for value in TaskDifficulty.values()]


@MANY
def test_costs(statek_app, facts):
    set_model_pricing(
        "OPENROUTER", "openai/gpt-4o", Decimal("2.5"), Decimal("10"), Decimal("1.25"), model_family="openai"
    )
    set_model_pricing("OPENAI", "gpt-4o", Decimal("2.5"), Decimal("10"))
    facts["valid"] = [
        get_model_pricing("OPENAI", "gpt-4o").is_valid,
        get_model_pricing("x", "y").is_valid,
        get_model_pricing("x", "z", no_create=True),
    ]
    for number, metadata in enumerate(({}, {"PROVIDER": "OPENAI"}, {"MODEL": "mystery"})):
        job = create_new_job(create(f"clerk{number}", **metadata))
        statek_app.script(
            **{
                f"clerk{number}": [
                    code("x = 1").reporting(prompt=1000, completion=50),
                    code("exit(1)").reporting(prompt=2000, completion=70, cost=0.5),
                ]
            }
        )
        statek_app.run()
        facts[f"cost {number}"] = [
            job.usage.total_cost,
            job.usage.total_input_tokens,
            job.usage.total_output_tokens,
            job.usage.total_reported_cost,
        ]
        facts[f"pricing {number}"] = job.usage.pricing.is_valid


@MANY
def test_what_was_done_is_counted(statek_app, facts):
    job, prepared = create_new_job(create()), create_new_job(create("cook"), warmup_code=["a = 1", "b = 2"])
    statek_app.script(clerk=["print(work())", "# nothing", "x = 1\ny = 2", "exit('ok')"], cook=["exit(1)"])
    statek_app.run()
    facts["warmup blocks"] = [job.warmup_block_num, prepared.warmup_block_num]
    facts["counted"] = [
        job.count_llm_actions(),
        job.num_turns,
        len(list(job.get_chat_responses())),
        len(list(job.get_dialog())),
    ]
    facts["responses"] = list(job.get_chat_responses())
    facts["console"] = list(job.py_env.console)
    facts["locals"] = {name: value for name, value in dict(job.py_env.local_state).items()}
    facts["found"] = sorted(job.find_locals(int))
    facts["last"] = job.last_response
    facts["log"] = [type(item).__name__.removeprefix("Memo_") for item in job.chat_log]
    facts["done"] = [one in (job, prepared) for one in db0.find(Job, JobStatus.DONE)]


def test_requested_calls_and_errors_are_logged(statek_app, facts):
    job = create_new_job(create(LLM_TOOLS_SCOPE="APPLICATION"))
    statek_app.script(clerk=[tool_call("work"), "1/0", "1/0", "exit(1)"])
    statek_app.run()
    call = job.chat_log[0].llm_resp.tool_calls[0]
    facts["call"] = [call.func_name, dict(call.kwargs), len(call.args), hasattr(call, "name")]
    facts["error"] = [f"{job.error}", job.error.error_message]
    job.job_def.set_error(ValueError("no"))
    facts["errors"] = [str(error) for error in job.job_def.get_errors()]


def test_definitions(statek_app, facts):
    agent = create()
    one, other = create_new_job(agent), create_new_job(agent)
    third = create_new_job(agent, topic="x")
    facts["shared"] = [one.job_def == other.job_def, one.job_def == third.job_def]
    facts["errors"] = [list(one.job_def.get_errors()), one.job_def.has_errors()]
    facts["params"] = [one.job_def.job_params, dict(third.job_def.job_params)]
    facts["warmup"] = bool(one.job_def.warmup_code)
    facts["metadata"] = dict(one.job_def.metadata)
    facts["locale"] = one.job_def.locale
    made = agent.create_job_def(topic="y")
    facts["made"] = [
        made.model,
        dict(made.job_params),
        made.agent == agent,
        made.has_errors(),
    ]
    made.set_error(ValueError("no"))
    facts["set"] = [made.has_errors(), [error.error_message for error in made.get_errors()]]
    made.clear_errors()
    facts["cleared"] = made.has_errors()
    facts.attempt(
        "without model",
        lambda: create(MODEL=None) and SupervisedAgent("x", None, [], _metadata={}).create_job_def(),
    )
    statek_app.script(clerk=["exit(1)"] * 3)
    statek_app.run()


def test_agents(statek_app, facts):
    agent = create()
    facts["tools"] = [[f.__name__ for f in agent.tools], [f.__name__ for f in agent.all_tools]]
    facts["description"] = [
        agent.description,
        agent.update_description("d"),
        agent.update_description("d"),
        agent.description,
    ]
    facts["metadata"] = [
        agent.update_metadata({"MODEL": "x/y"}),
        agent.update_metadata({"MODEL": "x/y"}),
        dict(agent._metadata),
    ]
    facts["prompt"] = [
        agent.update_system_prompt(make_system_prompt("new")),
        agent.update_system_prompt(make_system_prompt("new")),
    ]
    facts["referenced"] = list(agent.referenced_locals)
    facts["warmup"] = [
        agent.warmup_def,
        agent.update_warmup_def("print(ticket)"),
        agent.update_warmup_def("print(ticket)"),
        list(agent.referenced_locals),
    ]
    facts["hidden"] = [agent.warmup_def.hidden, agent.warmup_def.warmup_code, agent.warmup_def.metadata]
    facts["hidden now"] = [
        agent.update_warmup_def("#STATEK: hidden = True\nprint(1)"),
        agent.warmup_def.hidden,
    ]
    facts["none"] = [agent.update_warmup_def(None), agent.warmup_def, agent.update_warmup_def(None)]
    facts["adapter"] = [agent.get_adapter("x"), agent.context.update(_x=5), agent.get_adapter("x")]
    facts["find"] = [agent._find_tool("work") is not None, agent._find_tool("nope")]
    facts["roles"] = [one.role for one in db0.find(Agent)]
    facts.attempt("examples", lambda: agent.get_examples())
    facts.attempt("system prompt", lambda: agent.system_prompt(TaskDifficulty.medium, {"a": 1}))


def test_tools_added_later(statek_app, facts):
    agent = create(LLM_TOOLS_SCOPE="APPLICATION")

    @tool
    def extra(**kwargs):
        """Extra."""
        return "extra!"

    statek_app.script(clerk=["print(work())", "print(extra())", "exit(1)"])
    statek_app.create_job(agent)
    statek_app.at(0, lambda: agent.append_tool(extra))
    statek_app.run()
    facts["offered"] = [[one["function"]["name"] for one in request.tools] for request in statek_app.requests]
    facts["names"] = [list(agent._tools_by_name), [f.__name__ for f in agent.tools]]
