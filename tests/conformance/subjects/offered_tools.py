"""What the model is told: tools, prompt, model, temperature, and what that costs (behaviour 5, 6.6, 11)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import END, ConformanceJob, call, calls, cli, console, dialog

MANY = ("note", "how_many", "day_after", "maybe", "slow", "secret", "start_task", "wait_for", "_count")

JOBS: Final[tuple[ConformanceJob, ...]] = (
    dialog("no_scope", "without a scope no tools are offered", "bye", tools=MANY),
    *(
        dialog(f"scope_{name}", f"the tools of scope {scope!r}", "bye", scope=scope, tools=MANY)
        for name, scope in (
            ("all", "ALL"),
            ("system", "SYSTEM"),
            ("application", "APPLICATION"),
            ("minus", "ALL -note,panic"),
            ("malformed", "ALL -note, -panic"),
            ("plus", "APPLICATION +python_cli"),
            ("hidden", "APPLICATION +secret"),
            ("unknown", "APPLICATION +nosuch"),
            ("unselected", "SYSTEM -note"),
        )
    ),
    dialog(
        "scope_all_markdown",
        "python_cli belongs to DIRECT",
        "bye",
        style="MD_DIALOG",
        scope="ALL",
        tools=MANY,
    ),
    console(
        "scope_all_console", "the tools of a code style", END, metadata={"LLM_TOOLS_SCOPE": "ALL"}, tools=MANY
    ),
    console("prompt", "the system prompt is the first message", END, prompt="You are a clerk.\n\nBe brief."),
    console("temperature", "a temperature in the metadata", END, metadata={"TEMPERATURE": "0.25"}),
    console("temperature_zero", "temperature zero is sent", END, metadata={"TEMPERATURE": "0"}),
    console(
        "temperature_too_high", "a temperature above one ends the job", END, metadata={"TEMPERATURE": "1.5"}
    ),
    console(
        "temperature_no_number", "a temperature that is no number", END, metadata={"TEMPERATURE": "warm"}
    ),
    console(
        "model_family",
        "OPENROUTER is sent family and model",
        END,
        metadata={"MODEL": "meta/llama-3", "PROVIDER": "OPENROUTER"},
    ),
    console(
        "model_family_openai", "others are sent the model alone", END, metadata={"MODEL": "meta/llama-3"}
    ),
    console(
        "model_by_difficulty", "one model per difficulty", END, metadata={"MODEL": "L:small,M:middle,H:large"}
    ),
    console(
        "model_by_default_difficulty",
        "the difficulty that the metadata say",
        END,
        metadata={"MODEL": "L:small,M:middle,H:large", "DEFAULT_DIFFICULTY": "HIGH"},
    ),
    console(
        "model_with_colon", "a colon in a model's name ends the job", END, metadata={"MODEL": "llama3.1:8b"}
    ),
    console(
        "panic",
        "panic moves the job to a larger model, twice at most",
        "panic()",
        "print('larger')",
        "panic()",
        "panic()",
        END,
        metadata={"MODEL": "L:small,M:middle,H:large", "DEFAULT_DIFFICULTY": "LOW"},
    ),
    console("panic_single_model", "panic with one model for all", "panic()", END),
    dialog(
        "panic_call",
        "panic as a tool call",
        calls(call("panic"), cli("print('same reply')")),
        "bye",
        scope="ALL",
        metadata={"MODEL": "L:small,M:middle,H:large"},
    ),
)
