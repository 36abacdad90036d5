"""The server benchmark's requests and answers, the same for wrk, aimock and our server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

ANSWER: Final = "Paris is the capital of France."
ENTRIES_PER_LOAD: Final[Mapping[str, int]] = MappingProxyType({"one": 1, "thousand": 1000})
"""Loads by number of script entries, each requested in turn; in `different`, every request is different."""

LOADS: Final = (*ENTRIES_PER_LOAD, "different")

FIRST: Final = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "question?"}]})
"""A request that makes a server load everything it needs, whether or not it has an answer."""

_LUA: Final = """\
local bodies, at, load = {}, 0, "%(load)s"
for line in io.lines("%(messages)s") do
  bodies[#bodies + 1] = '{"model":"gpt-4o","messages":[{"role":"user","content":"' .. line .. '"}]}'
end
local headers = {["Content-Type"] = "application/json", ["Authorization"] = "Bearer sk-none"}
request = function()
  at = at + 1
  local body = bodies[(at - 1) %% #bodies + 1]
  if load == "different" then body = body:gsub("NUMBER", at) end
  return wrk.format("POST", "/v1/chat/completions", headers, body)
end
"""


def messages(count: int) -> list[str]:
    """Return this many messages, none of which contains another."""
    return [f"What is the answer to number {number:04d}?" for number in range(count)]


def write_load(folder: Path, load: str) -> tuple[Path, Path]:
    """Write wrk's script and aimock's fixtures for a load; return their paths."""
    questions = messages(ENTRIES_PER_LOAD.get(load, 0)) or ["question NUMBER"]
    lines, script, fixtures = folder / "messages.txt", folder / "load.lua", folder / "fixtures.json"
    lines.write_text("\n".join(questions) + "\n", encoding="utf-8")
    script.write_text(_LUA % {"load": load, "messages": lines}, encoding="utf-8")
    matched = ["question"] if load == "different" else questions
    answers = [{"match": {"userMessage": message}, "response": {"content": ANSWER}} for message in matched]
    fixtures.write_text(json.dumps({"fixtures": answers}), encoding="utf-8")
    return script, fixtures
