"""Named variants of the harness: every rule on which the documents' code and a good part differ.

A rule that differs is one field of `Variant`, read by the code that follows it; nothing else asks which variant it
is. `document` does what the code printed in documents 002 and 004 does, defects included; `hardened` is the default;
`forge` does what Forge (antoinezambelli/forge, its `guardrails` package) does where that differs in kind. Where a
document is silent and its code cannot say either, `document` is as `hardened`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.agent.named import named


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One consistent set of answers to the questions on which documents, good practice and Forge disagree."""

    name: str

    # -- the loop (004 §4) -------------------------------------------------------------------------------------

    expected_step: Literal["iteration", "progress"]
    """Which step a reply is held against: the one with the number of the iteration, whatever was done before
    (004 §4: `workflow.get_expected_step(iteration)`), or the next one that is not done."""

    calls_of_reply: Literal["first", "all"]
    """How many calls of one reply are executed: the first, the others are lost without a word (004 §4:
    `validated_response.tool_name`), or all."""

    tool_error: Literal["ends_run", "result"]
    """What a tool's exception is: the end of the run (004 §4: nothing catches it), or a result the model reads."""

    sends_tools: bool
    """Whether the tools reach the model, as the request's `tools` parameter. 004 §4 says so in a comment, but its
    loop calls `client.chat(prompt)` without them."""

    retries_provider: bool
    """Whether a temporary failure of the provider is tried again, as STATEK's client does (behaviour 8), or ends the
    run (004 §4: no retry loop)."""

    retry_after: Literal["ignored", "heeded"]
    """Whether a provider that says when to ask again (`Retry-After`) is asked then, up to 60 s later, or after the
    client's own 3 and 15 s (STATEK's client; 004 §4 has no retry loop)."""

    compacts: bool
    """Whether the context manager is asked before each request. 004 §5 says so in a docstring; the loop of §4 never
    calls it."""

    # -- the registry (002 §2) ---------------------------------------------------------------------------------

    empty_tag_filter: Literal["everything", "error"]
    """What `filterByTags([])` gives: every tool (002 §2: `[].every` is true), or an error."""

    unknown_task_type: Literal["nothing", "error"]
    """What an unknown task type gives: no tools (002 §2: `?? []`), or an error."""

    missing_task_tool: Literal["dropped", "error"]
    """What becomes of a tool that a task type names and nobody registered: left out in silence (002 §2:
    `filter(t !== undefined)`), or an error."""

    executes: Literal["registered", "offered"]
    """Which calls are executed: of every registered tool, so that a task's tools are no permission (002 §2: `get()`
    knows nothing of the loaded subset), or only of those that were offered on that turn."""

    server_tools: Literal["bare", "prefixed"]
    """How the tools of MCP servers are called: by their own names, so that two servers with the same one collide
    (002 §2: `register` throws for a name that is taken), or with the server's name before it: `server__tool`."""

    list_changes: Literal["ignored", "next_turn"]
    """When a server's changed list of tools is taken over: never (002 §2: tools are registered once, at the start), or
    when the next turn's tools are chosen."""

    validates_arguments: bool
    """Whether arguments are held against the tool's JSON Schema before it runs. 002 §2 has the schema and never
    looks at it."""

    coerces_arguments: bool
    """Whether arguments of a wrong type are converted where nothing is lost (`schema.converted`)."""

    converts_arguments: bool
    """Whether a tool made of a function gets the values that its type hints promise, a date or a dataclass for
    instance, or the JSON of the call (002 §2: `execute(params)` is given what was parsed)."""

    tool_timeout: float | None
    """Virtual seconds that a tool may take unless it says so itself; None: for ever (002 §2 has no timeout)."""

    # -- nudges (004 §6, component 2) --------------------------------------------------------------------------

    nudge_names: Literal["document", "enum"]
    """How failures are named: the document's texts, where a validator says `missing_field` and the template is
    called `missing_required_field`, so that the general sentence is sent; or an enum with a text for each."""

    nudge_formatting: Literal["strict", "safe"]
    """What a template does whose details are not there: KeyError ends the run (004 §6: `template.format(**details)`),
    or the gap is shown as `?`."""

    keeps_bad_output: bool
    """Whether the reply that failed is in the history before its nudge. In 004 §6 it is not: the model is corrected
    for something it cannot see."""

    nudge_budget: Literal["each_failure", "streak"]
    """What the limit of nudges counts: failures of one kind, so that a model alternating between two stays under
    both; or failing replies in a row, whatever the kind. 004 §6 leaves `retry_count` to the caller."""

    nudge_reset: Literal["accepted", "progress", "never"]
    """What sets the count back: a reply that was accepted; one of whose calls a tool returned something it had not
    returned for the same arguments before; or nothing. 004 §6 says nothing."""

    nudges_in_all: int | None
    """How many nudges a run gets in all, however often the count is set back; None: no such bound."""

    # -- steps (004 §6, component 3) ---------------------------------------------------------------------------

    step_done: Literal["proposed", "succeeded"]
    """When a step counts as done: when it is proposed, so that a tool that failed cannot be tried again (004 §6), or
    when its tool succeeded (reserve, commit, roll back)."""

    step_order: Literal["strict", "declared", "any"]
    """In which order required steps may come: only as listed (004 §6), as the workflow declares, or any (Forge)."""

    helpers: Literal["refused", "declared"]
    """Whether a tool that is no step may be called while steps are open: never (004 §6: it blocks reads), or as the
    workflow declares (all, unless it names some)."""

    counts_repeats: bool
    """Whether a tool that is required twice has to succeed twice. In 004 §6 one call does both."""

    final_gate: bool
    """Whether a final answer is refused while steps are open. 004 §6 says so in words; its code never looks."""

    final_answer: Literal["text", "terminal_tool"]
    """What ends a run: a reply without calls, or only a call of a terminal tool, so that a bare text is a failure
    (Forge)."""

    batch: Literal["each", "whole"]
    """What a bad call does to the other calls of its reply: they are executed, or the whole reply is refused
    (Forge)."""

    tool_errors_in_a_row: int | None
    """Batches in a row in which a tool failed, after which the run ends (Forge: 2); None: no such bound."""

    # -- checkpoints (002 §4) ----------------------------------------------------------------------------------

    resumes: Literal["steps", "everything"]
    """What a run that is taken up again has: the steps that are done and the number of the iteration, so that a crash
    resets budgets, counters and conversation (002 §4: `completedSteps` and `stepNumber` are all that `restore` reads
    back), or everything."""

    commits_calls: bool
    """Whether calls are committed before they are made, and each has a receipt, so that none is made twice. In 002 §4
    the effect comes before the save, and is done again after a crash."""

    # -- the budget (002 §3.4) ---------------------------------------------------------------------------------

    budget_check: Literal["after", "reserved"]
    """How a budget is held: looked at before each request, when it may long be overspent, and passed at exactly its
    size (002 §3.4: `totalTokens > MAX_TOKENS`); or the request and the room for its answer are reserved before."""


HARDENED: Final = Variant(
    name="hardened",
    expected_step="progress",
    calls_of_reply="all",
    tool_error="result",
    sends_tools=True,
    retries_provider=True,
    retry_after="heeded",
    compacts=True,
    empty_tag_filter="error",
    unknown_task_type="error",
    missing_task_tool="error",
    executes="offered",
    server_tools="prefixed",
    list_changes="next_turn",
    validates_arguments=True,
    coerces_arguments=True,
    converts_arguments=True,
    tool_timeout=30.0,
    nudge_names="enum",
    nudge_formatting="safe",
    keeps_bad_output=True,
    nudge_budget="streak",
    nudge_reset="progress",
    nudges_in_all=12,
    step_done="succeeded",
    step_order="declared",
    helpers="declared",
    counts_repeats=True,
    final_gate=True,
    final_answer="text",
    batch="each",
    tool_errors_in_a_row=None,
    resumes="everything",
    commits_calls=True,
    budget_check="reserved",
)
"""What a good part does; the default."""

DOCUMENT: Final = Variant(
    name="document",
    expected_step="iteration",
    calls_of_reply="first",
    tool_error="ends_run",
    sends_tools=False,
    retries_provider=False,
    retry_after="ignored",
    compacts=False,
    empty_tag_filter="everything",
    unknown_task_type="nothing",
    missing_task_tool="dropped",
    executes="registered",
    server_tools="bare",
    list_changes="ignored",
    validates_arguments=False,
    coerces_arguments=False,
    converts_arguments=False,
    tool_timeout=None,
    nudge_names="document",
    nudge_formatting="strict",
    keeps_bad_output=False,
    nudge_budget="each_failure",
    nudge_reset="never",
    nudges_in_all=None,
    step_done="proposed",
    step_order="strict",
    helpers="refused",
    counts_repeats=False,
    final_gate=False,
    final_answer="text",
    batch="each",
    tool_errors_in_a_row=None,
    resumes="steps",
    commits_calls=False,
    budget_check="after",
)
"""The code of documents 002 and 004, to the letter."""

FORGE: Final = replace(
    HARDENED,
    name="forge",
    nudge_reset="accepted",
    nudges_in_all=None,
    step_order="any",
    final_answer="terminal_tool",
    batch="whole",
    tool_errors_in_a_row=2,
)
"""As `hardened`, but with Forge's terminal tool, unordered steps and whole batches, and its budgets."""

VARIANTS: Final[dict[str, Variant]] = {one.name: one for one in (HARDENED, DOCUMENT, FORGE)}
"""Every variant by name, the default first."""


def variant_named(name: str) -> Variant:
    """Return the variant called `name`; an unknown name is `BadInput`: the known ones, and the one it is like."""
    return named(VARIANTS, name, of="the agent")
