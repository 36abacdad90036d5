"""Forge under a few scripts and faults, run by the interpreter that has it: prints one JSON object per case."""

import json
from typing import Any

from forge import ContextManager, NoCompact, ToolDef, ToolSpec, Workflow, WorkflowRunner

from statek_sim.guests.forge import ScriptedClient
from statek_sim.guests.guest import Guest
from statek_sim.providers.script import ScriptEntry, fault, raw, text, timeout, tool_call

WEATHER = tool_call("get_weather", city="Tokyo")
ANSWER = tool_call("answer", text="22 C.")

CASES: dict[str, list[ScriptEntry]] = {
    "good": [WEATHER, ANSWER],
    "text": [text("Warm."), WEATHER, ANSWER],
    "too early": [ANSWER, WEATHER, ANSWER],
    "no such tool": [tool_call("get_whether", city="Tokyo").mistaken(), WEATHER, ANSWER],
    "text without end": [text("Warm.").forever()],
    "early without end": [ANSWER.forever()],
    "rate limit": [fault(429, retry_after=7)],
    "server error": [fault(500)],
    "timeout": [timeout()],
    "no json": [raw("{")],
    "no choices": [raw('{"choices": []}')],
    "bad arguments": [tool_call("get_weather").with_arguments('{"city": '), WEATHER, ANSWER],
}


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"22 C in {city}"


def answer(text: str) -> str:
    """Give the final answer."""
    return text


def tool(guest: Guest, name: str, argument: str) -> Any:
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return ToolDef(ToolSpec.from_json_schema(name, name, schema), guest.tools[name])


def played(script: list[ScriptEntry]) -> dict[str, Any]:
    guest = Guest(script, tools=[get_weather, answer])
    tools = {"get_weather": tool(guest, "get_weather", "city"), "answer": tool(guest, "answer", "text")}
    workflow = Workflow("weather", "Weather.", tools, ["get_weather"], "answer", "You answer.")
    runner = WorkflowRunner(ScriptedClient(guest), ContextManager(NoCompact(), None))
    try:
        said = guest.run(runner.run(workflow, "What is the weather in Tokyo?"))
        guest.check(said)
    except Exception as error:  # noqa: BLE001  # whatever Forge raises is what is looked at
        said = f"{type(error).__name__}: {error}"
    calls = [call["name"] for call in guest.calls]
    return {"said": said, "calls": calls, "requests": guest.llm.journal.total, "at": guest.clock.now()}


print(json.dumps({name: played(script) for name, script in CASES.items()}))
