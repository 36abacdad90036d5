"""`json.loads` and `json.dumps` for model-written code, paid for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.weigh import pay_for_deep_walk

_MAX_NESTING: Final = 200
_MUCH_TEXT: Final = 65_536
_CALL_ITERATIONS: Final = 2


Guard = Callable[[Any], Any]
"""Takes a callable from model code, returns one that pays."""


def paid_loads(budget: ExecutionBudget, guard: Guard) -> Callable[..., Any]:
    """Return `json.loads`. Nesting beyond 200 levels is the `RecursionError` that a deep stack would get."""

    def loads(s: Any, **options: Any) -> Any:
        budget.work(_CALL_ITERATIONS)
        if isinstance(s, str | bytes):
            budget.scan(len(s))
            budget.allocate(len(s) * (4 if len(s) < _MUCH_TEXT else 24))
            _check_nesting(s if isinstance(s, str) else s.decode("latin-1"))
        return json.loads(s, **{name: guard(option) for name, option in options.items()})

    return loads


def paid_dumps(budget: ExecutionBudget, guard: Guard) -> Callable[..., str]:
    """Return `json.dumps`."""

    def dumps(obj: Any, **options: Any) -> str:
        budget.work(_CALL_ITERATIONS)
        weight, depth = pay_for_deep_walk(budget, obj, "while encoding a JSON object")
        indent = options.get("indent")
        width = indent if isinstance(indent, int) else len(indent) if isinstance(indent, str) else 0
        separators = options.get("separators") or ()
        # A line begins with as much as its level asks for.
        each = 1 + max(0, width) * depth + sum(len(text) for text in separators if isinstance(text, str))
        budget.allocate(weight * each)
        text = json.dumps(obj, **{name: guard(option) for name, option in options.items()})
        # Escapes and what `default` made.
        budget.allocate(max(0, len(text) - weight * each))
        return text

    return dumps


def _check_nesting(text: str) -> None:
    if text.count("[") + text.count("{") <= _MAX_NESTING:
        return
    depth = 0
    quoted = escaped = False
    for char in text:
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
            if depth > _MAX_NESTING:
                kind = "array" if char == "[" else "object"
                raise RecursionError(
                    f"maximum recursion depth exceeded while decoding a JSON {kind} from a unicode string"
                )
        elif char in "]}":
            depth -= 1
