"""The arguments of a call as JSON, from how a trace writes them: `place='a', n=3`.

A trace has the arguments of a tool-calling agent's calls as names with the Python literals of JSON's values. Who reads
spans expects JSON.
"""

from __future__ import annotations

import ast
import json


def as_json(written: str) -> str | None:
    """Return the arguments of a call as a JSON object; None for what has none.

    That is what is not written as keyword arguments of Python with literals (a name like `from` or `a-b` is no keyword
    argument), and numbers that JSON does not have: `inf` and `nan`.
    """
    try:
        call = ast.parse(f"_({written})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            return None
        found = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        return json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
