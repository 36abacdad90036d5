"""A nursery whose agents have long prompts: with tools, with sections by difficulty, and from files."""
# mypy: ignore-errors

import dbzero as db0
import pytest
from statek import PromptDef, create_new_job, docstr, tool, update_prompt_config
from statek.agents import DialogAgent, Researcher, SupervisedAgent
from statek.executors.job import Job
from statek.prompt_config import (
    PromptStyle,
    SystemPromptData,
    format_system_prompt,
    load_prompt_files,
    make_system_prompt,
    parse_prompt_file,
    parse_system_prompt,
)
from statek.system import panic
from statek.task import start_dialog
from statek.task_difficulty import TaskDifficulty, max_task_difficulty, parse_task_difficulty

from statek_sim import text

SENT = []


def send(body: str, media=None):
    SENT.append(body)


def ask_user(question):
    """Ask."""
    return "yes"


@tool
def plant(name: str, depth: int = 3, **kwargs) -> int:
    """Plant a seed.

    It needs water.

    Args:
        name (required): Of the seed.
        depth: In cm, as {brief_tools} say.
    """
    return depth


@tool
def water(**kwargs):
    """Water all."""


@tool(hidden=True)
def poison(**kwargs):
    """Kill all."""


@tool
def undocumented(place, **kwargs):
    """Look at a place."""


def _weed():
    """Weed."""


SECTIONS = """Grow {what}.

--- L:EASY ---
Be quick with {brief_tools}

***  MH: CARE  ***
Be careful.
<rules target_difficulties="high, medium">Think twice.</rules>
So far.
<plain>
kept  as
 it is
</plain>

### NO:SUCH LEVEL ###
Always.
---- Q ----
<deep difficulty='h'></deep>
"""


def agent(role, prompt, *tools, **metadata):
    made = SupervisedAgent(
        role=role,
        _system_prompt=None,
        _tools=list(tools),
        _metadata={"MODEL": "L:openai/a,M:openai/b,H:openai/c", **metadata},
    )
    made.update_system_prompt(make_system_prompt(prompt))
    return made


def sections(prompt):
    return [
        [s.title, s.contents, s.target_difficulties and sorted(map(str, s.target_difficulties))]
        for s in prompt.sections
    ]


PROMPTS = {
    "tools": "You may:\n{tools}\nGo.",
    "brief": "{brief_tools}",
    "detailed": "{detailed_tools}",
    "commented": "Use\n# {tools}\nor {tools}\n  #{detailed_tools}",
    "parameters": "{what}: {tools} for {shared_var_names}.",
    "sections": SECTIONS,
    "empty": "  \n ",
}


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_as_they_are_sent(statek_app, facts, name):
    statek_app.script(grower=["exit(1)"])
    made = agent("grower", PROMPTS[name], plant, water, poison, _weed, docstr)
    facts["intro"], facts["sections"] = made._system_prompt.intro, sections(made._system_prompt)
    job = create_new_job(made, **({"what": "figs"} if "{what}" in PROMPTS[name] else {}))
    for level in TaskDifficulty.values():
        facts.attempt(f"at {level}", lambda level=level: job.system_prompt(level))
    statek_app.run()


@pytest.mark.not_what_was_sent
def test_a_tool_without_documentation_ends_the_job(statek_app, facts):
    made = DialogAgent(send_message=send, tools=[undocumented], role="chat", _metadata={"MODEL": "openai/b"})
    made.update_system_prompt(make_system_prompt("{tools}"))
    job = start_dialog(made, "hello")
    statek_app.run()
    job.push_user_message("again")
    statek_app.run()
    facts["prompt"] = made._system_prompt.intro
    made.update_system_prompt(make_system_prompt("Talk."))
    statek_app.script(chat=[text("Hi.")])
    job.push_user_message("and now?")
    statek_app.run()
    facts["sent"] = list(SENT)


@pytest.mark.statek(limits={"max_turns": 9, "max_token_usage": 90000})
def test_the_prompt_follows_the_difficulty_and_changes(statek_app, facts):
    made = agent("grower", SECTIONS, plant, panic, DEFAULT_DIFFICULTY="L")

    def changed(_):
        made.update_system_prompt(make_system_prompt("Only this."))
        return "exit(1)"

    statek_app.script(
        grower=["print(1)", "panic()", "print(2)", "panic()", "plant('x')", "print(3)", changed]
    )
    job = create_new_job(made, what="figs")
    statek_app.run()
    facts["prompts"] = [request.messages[0]["content"] for request in statek_app.requests]
    facts["models"] = [request.model for request in statek_app.requests]
    facts["now"] = job.system_prompt()


def test_a_researcher_knows_its_tools(statek_app, facts):
    made = Researcher(send_message=ask_user, role="finder")
    made.update_system_prompt(make_system_prompt("Find.\n{tools}\n\n## MORE\n{detailed_tools}"))
    made.update_metadata({"MODEL": "openai/b"})
    statek_app.script(finder=["exit(1)"])
    facts["prompt"] = create_new_job(made).system_prompt()
    statek_app.run()


def test_parsed_prompts(statek_app, facts):
    for number, prompt in enumerate(
        [
            SECTIONS,
            "<a>x</a>y",
            "<a>\nx\n</b></a>\n",
            "## One\n## Two",
            "--- a:b ---",
            "text --- no ---",
            "##no",
            "<a b='c'>d</a>",
            "---\nno\n---",
            '<A difficulty="">x</A>',
            "--- l m/H|L:ALL ---\n<i>x</i>\ny",
        ]
    ):
        facts.attempt(
            str(number),
            lambda prompt=prompt: [parse_system_prompt(prompt).intro, sections(parse_system_prompt(prompt))],
        )
    for label in ("l", "Medium", " H ", "x", "", None, 3, TaskDifficulty.low):
        facts.attempt(f"level {label}", lambda label=label: str(parse_task_difficulty(label)))
    facts["highest"] = str(max_task_difficulty(TaskDifficulty.medium, TaskDifficulty.low))
    data = parse_system_prompt("a")
    facts["data"] = [isinstance(data, SystemPromptData), data == parse_system_prompt("a")]
    made = agent("grower", "a\n## B\nc")
    facts["changes"] = [
        made.update_system_prompt(parse_system_prompt(prompt))
        for prompt in ("a\n\n## B\n c", "a\n## C\nc", "a\n## C\nc", "a")
    ]


def test_prompt_files(statek_app, facts, tmp_path):
    head = "# MODEL: openai/b\n#  Chat_Style:  direct \n# DESCRIPTION: Grows: figs\n# bad line\n# POST_PROCESSORS: FinalCheck()\n"
    (tmp_path / "grower.md").write_text(
        f"{head}text\n#   system prompt  \n\nGrow {{what}}.\n# MODEL: x\n## H:HARD\nHard.\n"
    )
    (tmp_path / "other.md").write_text("# System Prompt\n")
    (tmp_path / "none.txt").write_text("nothing")
    found = load_prompt_files(str(tmp_path))
    facts["found"] = {
        role: [one.metadata, one.system.intro, sections(one.system)] for role, one in sorted(found.items())
    }
    facts["nowhere"] = [load_prompt_files(str(tmp_path / "none")), load_prompt_files("")]
    made, bare = agent("grower", "Old."), agent("other", "Kept.")
    job = create_new_job(made, what="figs")
    update_prompt_config(found)
    facts["grower"] = [
        made.description,
        dict(made._metadata),
        str(job.job_def.chat_style),
        job.system_prompt(),
        len(job.job_def.post_processing),
    ]
    facts["other"] = [bare.description, dict(bare._metadata), bare._system_prompt.intro]
    update_prompt_config(
        {"grower": PromptDef(parse_system_prompt("New."), {"MODEL": "openai/c"})}, agents=[made]
    )
    facts["again"] = [
        str(job.job_def.chat_style),
        job.system_prompt(),
        dict(made._metadata),
        job.job_def.post_processing,
    ]
    facts["definitions"] = len(list(db0.find(Job, db0.as_tag(made))))
    (tmp_path / "bad.md").write_text("# MODEL: x\nno prompt")
    with pytest.raises(ValueError, match="is missing the '# System Prompt' section") as raised:
        parse_prompt_file(tmp_path / "bad.md")
    facts["bad"] = str(raised.value).replace(str(tmp_path), "DIR")


PLAN = "Plant {x}.\n--- MH: Soil ---\n  Dig.\n--- My tools ---\nA\nB {y}\n<water>\nDaily.\n</water>"


@pytest.mark.parametrize("style", ["XML", "DASHED", "ASTERISK", "MARKDOWN"])
@pytest.mark.parametrize("prompt", [PLAN, PLAN.replace("My tools", "Tools"), "-- only", "## a\n", ""])
def test_prompts_in_a_style(statek_app, facts, style, prompt):
    style = PromptStyle[style]
    for level in TaskDifficulty.values():
        for made in (make_system_prompt(prompt), parse_system_prompt(prompt)):
            name = f"{level} {type(made).__name__}"
            facts.attempt(name, lambda made=made, level=level: format_system_prompt(made, level, style))


def test_prompts_with_formatters(statek_app, facts):
    prompt, level = make_system_prompt(PLAN), TaskDifficulty.high

    def shown(*args, **options):
        return lambda: format_system_prompt(prompt, level, *args, **options)

    facts.attempt("plain", shown())
    facts.attempt("sections", shown(section_formatter=lambda text: f"  [{text}]"))
    facts.attempt("parts", shown(prompt_part_formatter=lambda text: text.upper() + "\n"))
    facts.attempt("both", shown(PromptStyle.MARKDOWN, lambda text: f"s{text}", lambda text: f"p{text}"))
    facts.attempt("no style", shown("BOLD"))
    facts.attempt("style as text", shown("XML"))
    facts["styles"] = [str(style) for style in PromptStyle.values()]
