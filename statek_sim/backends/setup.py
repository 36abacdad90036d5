"""Creates a scenario's live objects: limits, settings, world, tools and script."""

from __future__ import annotations

import importlib
import json
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from statek_sim.backends.driver import style_of_all
from statek_sim.errors import BadInput, BadScenario
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import ExtensionRule, HarnessLimits
from statek_sim.harness.preset import BUILT_IN, load_preset
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.condition import Condition, TextMatch
from statek_sim.providers.http_provider import Exchanges, HttpLLM, access_from, client_options
from statek_sim.providers.protocol import CLIENT_TIMEOUT, Provider
from statek_sim.providers.script import (
    Chat,
    Computed,
    HttpError,
    NoAnswer,
    RawBody,
    Reply,
    ScriptedCall,
    UsageKind,
)
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.reply import ReportedUsage
from statek_sim.providers.wire.request import PLAIN, ClientOptions
from statek_sim.scenario import reply as written
from statek_sim.scenario.check import unknown_tool
from statek_sim.scenario.schema import Limits, Scenario
from statek_sim.scenario.schema import World as WrittenWorld
from statek_sim.scriptable import measured
from statek_sim.semantics import DOCS, Profile, profile_named
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.values import unchanged
from statek_sim.world.queue import ItemStatus, WorkItem
from statek_sim.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options for a run besides its scenario and profile.

    `preset` and `seed` override the scenario's, and `exchanges` replace its script. `tokenizers` take
    precedence over the bundled tokenizers. `harness` may change the harness derived from the preset and the
    scenario.
    """

    preset: str | None = None
    seed: int | None = None
    allow_network: bool = False
    tokenizers: TokenizerRegistry | None = None
    exchanges: Exchanges | None = None
    harness: Callable[[LLM_Harness], LLM_Harness] = unchanged

    @property
    def client_options(self) -> ClientOptions:
        """Options for the LLM client, read from the environment in `exchanges`, or the defaults if there is none."""
        return PLAIN if self.exchanges is None else client_options(self.exchanges.environment)

    def seed_of(self, scenario: Scenario) -> int:
        """Return the seed for a run: the option `seed`, or the scenario's own seed."""
        return scenario.seed if self.seed is None else self.seed

    def llm_of(self, scenario: Scenario) -> tuple[Provider, Callable[[], None]]:
        """Return the provider for a run, and a function that raises at the end if replies or recordings are unused."""
        if self.exchanges is not None:
            llm = HttpLLM(self.exchanges.transport, partial(access_from, self.exchanges.environment))
            return llm, self.exchanges.check_finished
        script = ScriptedLLM(script_of(scenario), measure=partial(measured, tokenizers=self.tokenizers))
        return script, script.check_finished


AS_WRITTEN: Final = RunOptions()
"""Options for running a scenario with its own preset, seed and script."""


def settings_of(scenario: Scenario, *, preset: str | None = None) -> StatekSettings:
    """Return the settings for a run: the preset's variables, overridden by the scenario's `settings`.

    `preset` overrides the scenario's preset, to run a whole suite under one preset.
    """
    chosen = preset or scenario.preset
    place = scenario.path.parent / chosen
    if chosen in BUILT_IN and not place.is_file():
        settings = _built_in_settings(chosen)
    else:
        settings = StatekSettings.from_env(load_preset(str(place) if place.is_file() else chosen).values)
    if not scenario.settings:
        return settings
    try:
        return StatekSettings(**{**settings.given, **scenario.settings})
    except Exception as error:
        raise BadScenario(f"{scenario.place}: {error}") from error


def job_settings(scenario: Scenario, *, preset: str | None = None) -> StatekSettings:
    """Return the settings for STATEK's jobs: those from `settings_of`, with the chat style that all agents share."""
    settings, style = settings_of(scenario, preset=preset), style_of_all(scenario)
    return settings if style is None else StatekSettings(**{**settings.given, "chat_style": style})


@cache
def _built_in_settings(name: str) -> StatekSettings:
    return StatekSettings.from_env(load_preset(name).values)


def harness_for(limits: Limits, settings: StatekSettings, profile: Profile) -> LLM_Harness:
    """Return the harness with the scenario's limits (null means unlimited), or else those from the settings."""
    own = {name: value for name, value in limits.model_dump().items() if limits.said(name)}
    return LLM_Harness.from_limits(
        replace(settings.harness_limits(), **own), rule=ExtensionRule(profile.limit_extension)
    )


def scenario_harness(
    scenario: Scenario, profile: str, settings: StatekSettings, *, preset: str | None
) -> LLM_Harness:
    """Return the harness for a scenario on either engine.

    STATEK's presets are meant for STATEK's jobs, so on engine two, a preset applies only if the scenario or
    the run names it. On engine two, completions extend limits as described in "Harness Policies".
    """
    if scenario.engine == "statek":
        return harness_for(scenario.limits, settings, profile_named(profile))
    if preset is not None or scenario.said("preset"):
        return harness_for(scenario.limits, settings, DOCS)
    limits = HarnessLimits(**scenario.limits.model_dump())
    return LLM_Harness.from_limits(limits, rule=ExtensionRule(DOCS.limit_extension))


def world_for(
    written_world: WrittenWorld,
    changed: Callable[[str, str], None],
    before: Callable[[], None] | None = None,
) -> World:
    """Return the world at the start of a run; `changed` and `before` are passed to `World`."""
    queue = written_world.queue
    items = [
        WorkItem(item.id, ItemStatus(item.status), item.owner)
        for item in (queue.items if queue is not None else ())
    ]
    owner = queue.owner if queue is not None else "worker-1"
    return World(owner=owner, items=items, futures=written_world.futures, changed=changed, before=before)


def attribute_at(where: str, name: str) -> Any:
    """Import `module:attribute`; raises `BadScenario` with a message that starts with `where`."""
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # importing runs the user's code
        why = f"{type(error).__name__}: {error}{_failed_at(error)}"
        raise BadScenario(f"{where}: {name!r} cannot be imported: {why}") from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise BadScenario(f"{where}: module {module_name!r} has no {path!r}") from None
    return found


def _failed_at(error: BaseException) -> str:
    """Return the file and line in the user's code that raised, or an empty string if no user code ran."""
    library = sysconfig.get_path("stdlib")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)[1:]
        if not frame.filename.startswith(("<frozen", library)) or "site-packages" in frame.filename
    ]
    if not frames:
        return ""
    file = Path(frames[-1].filename)
    try:
        shown = file.relative_to(Path.cwd())
    except (ValueError, OSError):  # the file is outside the current folder, or the folder was removed
        shown = file
    return f" ({shown}:{frames[-1].lineno})"


def tool_named(
    scenario: Scenario, name: str, builtin: Mapping[str, Callable[..., Any]]
) -> Callable[..., Any]:
    """Return a built-in tool by name, or the user's tool `module:attribute`."""
    from_user = ":" in name
    if from_user:
        found = attribute_at(scenario.place, name)
        if not callable(found) or not hasattr(found, "tool_hidden"):
            raise BadScenario(f"{scenario.place}: {name!r} is not a tool; decorate the function with @tool")
        return found  # type: ignore[no-any-return]  # checked just above
    if name not in builtin:
        raise BadScenario(f"{scenario.place}: {unknown_tool(name, builtin)}")
    return builtin[name]


def script_of(scenario: Scenario) -> dict[str, list[Reply]]:
    """Return the scripted replies by agent role or by `job:NAME`."""
    return {
        key: [reply_at(scenario.place, entry) for entry in replies]
        for key, replies in scenario.script.items()
    }


def reply_at(where: str, entry: written.Reply) -> Reply:
    """Return the reply in an entry; raises `BadScenario` with a message that starts with `where`."""
    reply = Reply(
        answer=_answer(where, entry),
        latency=CLIENT_TIMEOUT if entry.kind == "timeout" and not entry.said("latency") else entry.latency,
        usage=_usage(entry),
        condition=condition_of(entry.when),
        repeat=None if entry.repeat == "forever" else int(entry.repeat),
        job=entry.job,
        truncated=entry.truncated,
        malformed_arguments=entry.malformed_arguments if entry.said("malformed_arguments") else None,
        is_mistaken=entry.mistaken,
    )
    try:
        if entry.thinking:
            reply = reply.thinking(entry.thinking)
        for cited in entry.citations:
            reply = reply.citing(cited.url, title=cited.title, span=cited.span, quote=cited.quote)
        if entry.logprobs:
            reply = reply.logprobs(*[(one.token, one.logprob, one.others) for one in entry.logprobs])
    except BadInput as error:
        raise BadScenario(f"{where}: {error}") from None
    return reply


def _answer(where: str, entry: written.Reply) -> Chat | HttpError | NoAnswer | RawBody | Computed:
    match entry.kind:
        case "http":
            return HttpError(entry.http, entry.retry_after)
        case "timeout":
            return NoAnswer()
        case "body":
            text = entry.body if isinstance(entry.body, str) else json.dumps(entry.body)
            return RawBody(text.encode())
        case "call":
            return Computed(attribute_at(where, entry.call))
        case "python":
            return Chat(calls=(ScriptedCall("python_cli", {"code": entry.python}),))
        case _:
            calls = tuple(ScriptedCall(call.name, dict(call.args), call.id) for call in entry.tools)
            code = entry.code if entry.said("code") else None
            spoken = entry.text if entry.said("text") else None
            return Chat(text=spoken, code=code, calls=calls, refuses=entry.refuses)


def _usage(entry: written.Reply) -> ReportedUsage | UsageKind:
    if not entry.said("usage"):
        return UsageKind.ABSENT
    if entry.usage is None:
        return UsageKind.NULL
    if entry.usage == "measured":
        return UsageKind.MEASURED
    report = entry.usage
    if isinstance(report, str):
        raise AssertionError("the schema allows no other string")
    counts: dict[str, Any] = {key: getattr(report, key) for key in ("prompt", "completion", "cached", "cost")}
    return ReportedUsage(**{key: value for key, value in counts.items() if report.said(key)})


def condition_of(when: written.When | None) -> Condition | None:
    """Return the condition on requests described in `when`, or None if there is none."""
    if when is None:
        return None
    return Condition(
        last_message=_text_match(when.last_message),
        tool_result=_text_match(when.tool_result),
        turn=when.turn,
        attempt=when.attempt,
        at=when.at,
        model=_text_match(when.model),
        headers=tuple(
            (name.lower(), TextMatch(**_said(match))) for name, match in (when.headers or {}).items()
        ),
    )


def _text_match(match: written.TextMatch | None) -> TextMatch | None:
    if match is None:
        return None
    return TextMatch(**_said(match))


def _said(match: written.TextMatch) -> dict[str, str]:
    return {key: getattr(match, key) for key in ("contains", "equals", "matches") if match.said(key)}
