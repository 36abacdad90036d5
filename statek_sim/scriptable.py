"""A scripted LLM whose script is set after the agent is created."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, final, runtime_checkable

from statek_sim.errors import BadInput, ProviderBug, ScriptError, UnmatchedRequest
from statek_sim.providers.protocol import ChatRequest, Provider, RawReply, ask
from statek_sim.providers.script import ScriptEntry, replies_by_role
from statek_sim.providers.scripted import Script, ScriptedLLM
from statek_sim.usage.messages import completion_tokens, prompt_tokens
from statek_sim.usage.tokenizers import TokenizerRegistry, tokenizer_for_model

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def at_the_caller(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorate a function so that errors about the test itself point to the line in the test, not into this package."""

    @wraps(function)
    def called(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except (BadInput, ProviderBug, ScriptError) as error:
            # The traceback inside this package does not help; the message does. The cause is kept: it is the error of
            # the user's own code, with its traceback.
            raise error.with_traceback(None) from error.__cause__

    return called


@runtime_checkable
class _Finishing(Protocol):
    """A provider that can check whether all its replies were used."""

    def check_finished(self) -> None:
        """Raise `UnusedReplies` if any replies are left."""


@final
class ScriptableLLM:
    """A provider whose replies are set after the runtime is created, with `script` or, for any provider, with `use`.

    `requests` contains every request.
    """

    def __init__(self, *, given_by: str | None = None) -> None:
        """Create an LLM without replies; `given_by` shows how a test sets the script, for error messages."""
        self._provider: Provider | None = None
        self._given_by = given_by
        self.requests: list[ChatRequest] = []
        self.refusals: list[ScriptError] = []
        """The errors raised for requests without a reply."""

    @at_the_caller
    def script(self, everybody: Script | None = None, /, **by_role: Iterable[ScriptEntry]) -> None:
        """Set the replies: for all agents, `script([...])`, or by agent role, `script(worker=[code("exit(1)")])`.

        A mapping allows keys that are not Python names: `script({"job:job-2": [...]})`. A new script replaces the
        previous one; raises `UnusedReplies` if the previous script has replies left.
        """
        if everybody is not None and by_role:
            raise BadInput("pass either a single script or one script per role, not both")
        script = replies_by_role(by_role) if everybody is None else everybody
        if not script:
            raise BadInput("a script needs replies; to set them by agent role, call script(worker=[...])")
        self.check_finished()
        self._provider = ScriptedLLM(script, measure=measured, keep_requests=False)

    @at_the_caller
    def use(self, provider: Provider) -> None:
        """Send all further requests to `provider`."""
        if not callable(getattr(provider, "complete", None)):
            raise BadInput(
                f"{provider!r} is not a provider: it has no method `complete`; "
                "wrap a callable in FunctionLLM: statek_llm.use(FunctionLLM(answer))"
            )
        self.check_finished()
        self._provider = provider

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the current provider's answer."""
        self.requests.append(request)
        try:
            return self._answer(request)
        except ScriptError as error:
            self.refusals.append(error)
            raise

    def _answer(self, request: ChatRequest) -> RawReply:
        if self._provider is None:
            raise UnmatchedRequest(
                f"job {request.job_id!r} of agent {request.role!r} requested a reply, but the LLM has no script; "
                f"give it one before the run: {self._given_by or f'statek_llm.script({_key(request.role)})'}"
            )
        # Called as the runtime calls it, so that an error names the broken provider rather than this class.
        return ask(self._provider, request)

    def saved(self) -> Mapping[str, Any] | None:
        """Return the position in the script, or None if there is no script."""
        return script_position(self._provider)

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Continue with the same script at a position returned by `saved` in another process."""
        if not isinstance(self._provider, ScriptedLLM):
            raise BadInput(
                "set the script before calling `keep_in`, because the store keeps the script's position"
            )
        self._provider.resume(saved)

    def check_finished(self) -> None:
        """Raise `UnusedReplies` if the current script has replies left."""
        if isinstance(self._provider, _Finishing):
            self._provider.check_finished()


def _key(role: str) -> str:
    return f"{role}=[...]" if role.isidentifier() else f"{{{role!r}: [...]}}"


def measured(
    request: ChatRequest, content: str, *, tokenizers: TokenizerRegistry | None = None
) -> tuple[int, int]:
    """Return the number of prompt and completion tokens, counted with the tokenizer for the request's model."""
    tokenizer = tokenizer_for_model(request.model, tokenizers).tokenizer
    prompt = prompt_tokens(request.messages, request.tools, tokenizer)
    return prompt, completion_tokens(content, None, tokenizer)


def script_position(provider: object) -> Mapping[str, Any] | None:
    """Return a provider's position in its script, or None if it has no script."""
    saved = getattr(provider, "saved", None)
    return saved() if callable(saved) else None
