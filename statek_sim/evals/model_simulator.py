"""A simulated model that knows the correct action, and makes mistakes at the rates in its profile.

The correct action follows from the task's plan and the prompt. Then each class of mistakes is drawn in a fixed order: a
class has a propensity for each scenario, and a draw for each turn. A turn is identified by its position in the task and
the number of earlier visits, so two harnesses get the same draws as long as they lead to the same positions. After a
call with a wrong argument, the model believes that it got the correct call's result. `wrong_replies` builds the replies
with mistakes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from statek_sim.agent.tools.tool import Tool, tool_of_schema
from statek_sim.errors import BadInput, ProviderHTTPError
from statek_sim.evals import wrong_replies
from statek_sim.evals.ideal_plan import PlannedCall, call_key, is_corrected, shown_calls
from statek_sim.evals.outcome import Called, FailureClass, Turn
from statek_sim.evals.profile import (
    HEEDS,
    INVENTS,
    NATIVE,
    RENAMES,
    STAYS,
    UNREAD,
    UNREAD_CLASSES,
    Profile,
    load_profile,
)
from statek_sim.evals.random_draws import uniform
from statek_sim.evals.wrong_replies import called, cut_arguments, kind_of_damage, rendered
from statek_sim.providers.delivery import deliver, manner
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.script import Chat, Reply, computed, fault, text
from statek_sim.usage.conversation import shared_meter
from statek_sim.usage.messages import REPLY_PRIMING, tools_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.values import JSON, ToolSpec

TOKENIZER_OF: Final = "gpt-4o"
"""The model whose tokenizer counts prompts and the agent's budget, because simulated models have no tokenizer."""
TOO_LONG: Final = 400
_MANNER: Final = manner(None, None)
GIVES_UP: Final = "I could not find what is needed to answer that."
"""A model's answer when the results it believes are insufficient for the task."""


class Task(Protocol):
    """The task that a simulated model solves: an eval with a seed, or a script."""

    @property
    def eval_id(self) -> str:
        """The eval's id."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that may be called."""

    def right(self, seen: Sequence[Called]) -> Sequence[PlannedCall] | str | None:
        """Return the correct calls or the answer, given the calls in the prompt; None if those are insufficient."""

    def steps_after(self, tool: str) -> Sequence[str]:
        """Return the required tools that come after this tool."""


class SimulatedModel:
    """Answers one run's requests, making mistakes according to a profile and a seed. `turns` records its actions.

    `window` is the server's own limit on prompt tokens; it applies if it is smaller than the profile's.
    """

    def __init__(
        self, profile: Profile, seed: int, task: Task, *, tier: str, window: int | None = None
    ) -> None:
        self._profile = profile
        self._words = (profile.name, seed, task.eval_id)
        self._task = task
        self._window = profile.window if window is None else min(window, profile.window)
        self._schemas = {tool.name: tool.parameters for tool in task.tools}
        self._shares = {name: profile.propensity(name, task.eval_id, tier) for name in FailureClass}
        self._visits: dict[int, int] = {}
        self._believed: dict[str, PlannedCall] = {}
        self._looping: PlannedCall | None = None
        self._reply: Reply | None = None
        self._tools: Sequence[ToolSpec] = ()
        self._tools_tokens = 0
        self.turns: list[Turn] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer a request with the body that a server would send; rejects a prompt that is too long."""
        return deliver(self.reply(request), request, _MANNER)

    def reply(self, request: ChatRequest) -> Reply:
        """Answer a request with a scripted reply for a fake server.

        Raises `ProviderHTTPError` for a prompt that is too long.
        """
        tokens = self._tokens(request)
        if tokens > self._window:
            raise ProviderHTTPError(
                f"HTTP {TOO_LONG}: context_length_exceeded: {tokens} tokens, the window has {self._window}",
                status=TOO_LONG,
            )
        shown = [self._as_believed(call) for call in shown_calls(request.messages)]
        turn = _Turn(self, request, shown, long=tokens > self._profile.long_prompt)
        act, reply = turn.taken()
        self.turns.append(act)
        self._reply = reply
        return reply

    def _tokens(self, request: ChatRequest) -> int:
        """Return a prompt's token count; the count for unchanged tools is cached."""
        meter = shared_meter(tokenizer_for_model(TOKENIZER_OF))
        if request.tools is not self._tools:
            self._tools = request.tools
            self._tools_tokens = tools_tokens(request.tools, meter.model_tokenizer.tokenizer)
        message_tokens = sum([meter.measure(message)[1] for message in request.messages])
        return message_tokens + self._tools_tokens + REPLY_PRIMING

    def _as_believed(self, call: Called) -> Called:
        """Return a call as the model remembers it: a call with a wrong argument is remembered as the correct one."""
        meant = self._believed.get(call_key(call.name, call.arguments)) if self._believed else None
        if meant is None or call.error is not None:
            return call
        return replace(call, name=meant.name, arguments=meant.arguments)


class _Turn:
    """A turn of the model: draws the mistake, if any, and builds the reply."""

    def __init__(
        self, model: SimulatedModel, request: ChatRequest, shown: Sequence[Called], *, long: bool
    ) -> None:
        self._model = model
        self._request = request
        self._shown = shown
        self._long = long
        position = sum(call.error is None for call in shown)
        attempt = model._visits.get(position, 0)
        model._visits[position] = attempt + 1
        self._place = f"{position}.{attempt}"
        offered = [_name_of(tool) for tool in request.tools] or list(model._schemas)
        self._offered = {name: model._schemas.get(name, {}) for name in offered}

    def taken(self) -> tuple[Turn, Reply]:
        """Return this turn's action, and the reply that contains it."""
        model, number = self._model, self._request.turn
        right = self._right(self._shown)
        corrected = is_corrected(self._request.messages)
        if corrected and self._draw(HEEDS) < model._profile.rates[HEEDS]:
            better = self._better(right)
            if better is not None:
                model._looping = None
                return Turn(number, None, "", True, True), better
        for failure in FailureClass:
            if failure is FailureClass.LOOP and model._looping is not None:
                reply = self._going_on()
            elif self._acts(failure):
                reply = self._wrongly(failure, right)
            else:
                continue
            if reply is not None:
                return Turn(number, failure, reply[1], corrected, False), reply[0]
        return Turn(number, None, "", corrected, False), self._plainly(right)

    def _better(self, right: Sequence[PlannedCall] | str) -> Reply | None:
        """Return the correct action after a correction, or None if that is the action that was corrected.

        If a believed result led to the corrected action, the model stops believing it.
        """
        model = self._model
        reply = self._plainly(right)
        if reply == model._reply and model._believed:
            model._believed.clear()
            reply = self._plainly(self._right(shown_calls(self._request.messages)))
        return None if reply == model._reply else reply

    def _acts(self, failure: FailureClass) -> bool:
        shares = self._model._shares
        if failure in UNREAD_CLASSES:
            return failure is self._unread()
        return shares[failure] > 0 and self._draw(failure.value) < shares[failure]

    def _unread(self) -> FailureClass | None:
        """Return the class of mistakes that leaves this turn without a readable call, or None.

        One draw decides whether the turn has a readable call, and another decides the class.
        """
        early, malformed = (self._model._shares[failure] for failure in UNREAD_CLASSES)
        both = early + malformed
        if not both or self._draw(UNREAD) >= both:
            return None
        meant_one = self._draw(f"{UNREAD}, though one was meant") < malformed / both
        return UNREAD_CLASSES[1] if meant_one else UNREAD_CLASSES[0]

    def _right(self, shown: Sequence[Called]) -> Sequence[PlannedCall] | str:
        found = self._model._task.right(shown)
        return GIVES_UP if found is None else found

    def _draw(self, what: str) -> float:
        return uniform(*self._words(what))

    def _words(self, what: str) -> tuple[str | int, ...]:
        return (*self._model._words, self._place, what)

    def _plainly(self, right: Sequence[PlannedCall] | str) -> Reply:
        return text(right) if isinstance(right, str) else called(right)

    # -- mistakes: each method returns the reply and a description, or None if the mistake is impossible here -----

    def _wrongly(self, failure: FailureClass, right: Sequence[PlannedCall] | str) -> tuple[Reply, str] | None:
        match failure:
            case FailureClass.CONTEXT_LOSS:
                return self._forgetting(right)
            case FailureClass.LOOP | FailureClass.REPEATED_CALL:
                return self._repeating(looping=failure is FailureClass.LOOP)
            case FailureClass.WRONG_ARGUMENT if isinstance(right, str):
                return (text(wrong_replies.wrong_text(right)), "answer") if right else None
            case _ if isinstance(right, str):
                return None
            case FailureClass.EARLY_ANSWER:
                return text(wrong_replies.early_answer(right[0].name, *self._words("early"))), "prose"
            case FailureClass.SKIPPED_STEP:
                return self._skipping(right[0])
            case FailureClass.WRONG_TOOL:
                return self._misdirected(right)
            case FailureClass.MISSING_ARGUMENT | FailureClass.WRONG_ARGUMENT:
                return self._misfilled(right, lacking=failure is FailureClass.MISSING_ARGUMENT)
            case FailureClass.MALFORMED:
                return self._malformed(right)
        return None

    def _forgetting(self, right: Sequence[PlannedCall] | str) -> tuple[Reply, str] | None:
        """Act on only the newer half of the calls in a long prompt, unless that leads to the same action."""
        if not self._long or len(self._shown) < 2:
            return None
        left = self._right(self._shown[len(self._shown) // 2 :])
        return None if left == right else (self._plainly(left), f"forgot {len(self._shown) // 2}")

    def _repeating(self, *, looping: bool) -> tuple[Reply, str] | None:
        last = next((call for call in reversed(self._shown) if call.error is None), None)
        if last is None or last.name not in self._offered:
            return None
        again = PlannedCall(last.name, last.arguments)
        if looping:
            self._model._looping = again
        return called([again]), again.name

    def _going_on(self) -> tuple[Reply, str] | None:
        """Repeat a loop's call, unless its tool was removed or the model leaves the loop."""
        model = self._model
        again = model._looping
        assert again is not None, "asked only within a loop"
        if again.name not in self._offered or self._draw(STAYS) >= model._profile.rates[STAYS]:
            model._looping = None
            return None
        return called([again]), again.name

    def _skipping(self, right: PlannedCall) -> tuple[Reply, str] | None:
        later = [tool for tool in self._model._task.steps_after(right.name) if tool in self._offered]
        if not later:
            return text(
                wrong_replies.early_answer(right.name, *self._words("skipped"))
            ), f"without {right.name}"
        call = PlannedCall(later[0], wrong_replies.guessed(later[0], right.arguments, self._offered))
        return called([call]), f"{later[0]} without {right.name}"

    def _misdirected(self, right: Sequence[PlannedCall]) -> tuple[Reply, str]:
        invented = self._draw(INVENTS) < self._model._profile.rates[INVENTS]
        name = wrong_replies.other_tool(right[0].name, self._offered, *self._words("tool"), invented=invented)
        known = right[0].arguments
        arguments = (
            wrong_replies.guessed(name, known, self._offered) if name in self._offered else dict(known)
        )
        return called([PlannedCall(name, arguments), *right[1:]]), name

    def _misfilled(self, right: Sequence[PlannedCall], *, lacking: bool) -> tuple[Reply, str] | None:
        first = right[0]
        if not first.arguments:
            return None
        if lacking:
            renamed = self._draw(RENAMES) < self._model._profile.rates[RENAMES]
            required = wrong_replies.required_of(first.name, self._offered)
            arguments = wrong_replies.without_argument(
                first.arguments, required, *self._words("argument"), renamed=renamed
            )
        else:
            arguments = wrong_replies.with_wrong_value(first.arguments, *self._words("value"))
            self._model._believed[call_key(first.name, arguments)] = first
        wrong = PlannedCall(first.name, arguments)
        return called([wrong, *right[1:]]), first.name

    def _malformed(self, right: Sequence[PlannedCall]) -> tuple[Reply, str]:
        profile = self._model._profile
        if self._draw(NATIVE) < profile.rates[NATIVE] and right[-1].arguments:
            return called(right, arguments=cut_arguments(right[-1])), "native"
        kind = kind_of_damage(profile.damage, *self._words("damage"))
        return text(rendered(right, profile.dialect, kind)), kind


def _name_of(tool: ToolSpec) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, dict) else tool).get("name"))


# -- for a test's script


def simulated_model(script: Sequence[Reply], *, seed: int, profile: str = "ministral-3-8b-instruct") -> Reply:
    """Return a script entry for a conversation that follows a script of tool calls and text, but with mistakes.

    Use it as `statek_llm_server.script([simulated_model(script, seed=statek_seed)])`. `profile` is the name of a
    built-in profile or a .toml file. As for evals, each seed has its own propensities for mistakes.
    """
    known = load_profile(profile)
    if not script or not all(isinstance(reply.answer, Chat) for reply in script):
        raise BadInput("simulated_model: expected a script of tool calls and text that ends with the answer")
    chats = [reply.answer for reply in script if isinstance(reply.answer, Chat)]
    models: list[SimulatedModel] = []

    def reply(request: ChatRequest) -> Reply:
        if not models:
            models.append(
                SimulatedModel(known, seed, _ScriptedTask(chats, request.tools, seed), tier="medium")
            )
        try:
            return models[0].reply(request).mistaken()
        except ProviderHTTPError as refusal:
            return fault(refusal.status)

    return computed(reply).forever()


class _ScriptedTask:
    """A script as a task: the calls, in order, are the correct actions, and the final text is the correct answer."""

    def __init__(self, script: Sequence[Chat], tools: Sequence[ToolSpec], seed: int) -> None:
        self.eval_id = f"script {seed}"
        self.tools = [_declared(tool) for tool in tools]
        self._turns = [[PlannedCall(call.name, dict(call.args)) for call in chat.calls] for chat in script]
        self._answer = script[-1].text or ""

    def right(self, seen: Sequence[Called]) -> Sequence[PlannedCall] | str:
        """Return the calls in the first turn for which a result is missing, or the final text."""
        done = Counter(call_key(call.name, call.arguments) for call in seen if call.error is None)
        for turn in self._turns:
            wanted = Counter(call_key(call.name, call.arguments) for call in turn)
            if wanted - done:
                return [call for call in turn if call_key(call.name, call.arguments) in wanted - done]
            done -= wanted
        return self._answer

    def steps_after(self, tool: str) -> Sequence[str]:
        """Return the tools that the script calls after its first call to a tool."""
        order = [call.name for turn in self._turns for call in turn]
        return order[order.index(tool) + 1 :] if tool in order else order[1:]


def _declared(tool: ToolSpec) -> Tool:
    given = tool.get("function")
    function = given if isinstance(given, dict) else tool
    parameters = function.get("parameters")
    schema: Mapping[str, JSON] = parameters if isinstance(parameters, dict) else {}
    return tool_of_schema(_name_of(tool), str(function.get("description", "")), schema, _never_run)


def _never_run(**_: JSON) -> str:
    raise AssertionError("the agent's own tools are run")
