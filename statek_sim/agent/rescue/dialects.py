"""The formats of models by name. A model's own format may have text before its call, where its token opens a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput


@dataclass(frozen=True, slots=True)
class Dialect:
    """A format. `readers`: names in `call_scanner.OPENINGS`; `models`: how the names of its models begin."""

    name: str
    readers: frozenset[str]
    models: tuple[str, ...] = ()


def _dialect(name: str, *readers: str, models: str = "") -> Dialect:
    return Dialect(name, frozenset(readers), tuple(models.split()))


DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        _dialect("beam", "beam"),
        _dialect("cline"),
        _dialect("cohere", "wrapper", models="command c4ai-command"),
        _dialect("deepseek", "deepseek", "invoke", models="deepseek"),
        _dialect("functionary", "function", "all_name", "recipient", models="functionary"),
        _dialect("functools", "wrapper", models="phi"),
        _dialect("gemma", "gemma", models="gemma functiongemma"),
        _dialect("glm", "wrapper", models="glm"),
        _dialect("harmony", "harmony", "recipient_only", models="gpt-oss"),
        _dialect("hermes", "wrapper", models="hermes qwen2.5 qwen3 qwq"),
        _dialect("json"),
        _dialect("kimi", "kimi", "kimi3", models="kimi"),
        _dialect("lfm2", "wrapper", models="lfm"),
        _dialect("llama", "wrapper", "function", models="llama meta-llama"),
        _dialect("minimax", "wrapper", "invoke", "minimax", models="minimax"),
        _dialect("mistral", "wrapper", "mistral", models="mistral ministral magistral devstral mixtral"),
        _dialect("olmo", "wrapper", models="olmo"),
        _dialect("plamo", "plamo", models="plamo"),
        _dialect("python"),
        _dialect("qwen-agent", "qwen_agent"),
        _dialect("qwen-coder", "wrapper", "function", "param", models="qwen3-coder qwen3.5 seed-oss"),
        _dialect("react", "react", "wrapper"),
        _dialect("tool_calls", "wrapper", models="jamba hunyuan nemotron"),
    )
}
"""What `dialect` may be. `hermes` is Qwen 2.5 and 3 as well; `tool_calls` is Jamba, Hunyuan, MiniMax M1, Nemotron."""


def dialect_called(name: str | None) -> Dialect | None:
    """Return the dialect called `name`, None for none, or raise BadInput."""
    if name is not None and name not in DIALECTS:
        raise BadInput(f"no dialect is called {name!r}: {', '.join(DIALECTS)}.{suggestion(name, DIALECTS)}")
    return None if name is None else DIALECTS[name]


def dialect_of(model: str) -> str | None:
    """Return the dialect that a model's name says: `qwen/Qwen3-Coder-30B` writes `qwen-coder`. None: not known.

    The longest beginning of the name's last part wins.
    """
    name = model.rpartition("/")[2].lower()
    known = [
        (len(begins), dialect.name)
        for dialect in DIALECTS.values()
        for begins in dialect.models
        if name.startswith(begins)
    ]
    return max(known)[1] if known else None
