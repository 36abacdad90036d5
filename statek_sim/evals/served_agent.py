"""Your own agent at work on an eval: it runs in this process, its model is a fake server on loopback.

def agent(job: Assignment) -> str:
    client = OpenAI(base_url=job.llm.openai_url, api_key=job.llm.api_key)
    ...  # ask job.llm.model, call job.tools, return the answer

The simulated model answers in OpenAI's, Anthropic's and Gemini's formats, with the same draws as for our harness.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from statek_sim.backends.setup import attribute_at
from statek_sim.errors import BadInput, ProviderHTTPError
from statek_sim.evals.arms import Arm
from statek_sim.evals.outcome import Count, Outcome, Tokens, Turn
from statek_sim.evals.players import Agent, ModelAccess, play
from statek_sim.evals.profile import Profile
from statek_sim.evals.runner import MODEL, outcome_of
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.weak_model import WeakModel
from statek_sim.providers.network import KEY, client_environment
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import Chat, Reply, computed, fault
from statek_sim.server.exchange import Answer, Incoming, Streamed, Whole
from statek_sim.server.llm import FakeLLM
from statek_sim.server.llm_server import RunningServer
from statek_sim.usage.messages import completion_tokens, prompt_tokens
from statek_sim.usage.tokenizers import tokenizer_for_model
from statek_sim.usage.totals import BYTES_PER_TOKEN
from statek_sim.values import JSON

MOST_REQUESTS: Final = 100
"""Maximum requests to the model in one run; further ones get HTTP 400."""
TOO_MANY: Final = 400


def load_agent(name: str) -> Agent:
    """Import `module:attribute`; `BadInput` if it does not exist or is not callable."""
    found: Any = attribute_at("--agent", name)
    if not callable(found):
        raise BadInput(
            f"--agent {name}: expected a callable that takes an Assignment, got {type(found).__name__}"
        )
    agent: Agent = found
    return agent


def play_agent(scenario: EvalScenario, seed: int, arm: Arm, name: str, profile: Profile) -> Outcome:
    """Return the outcome of one run of the agent `name` with a simulated model; `seconds` is real time."""
    agent = load_agent(name)
    instance = scenario.instance(seed)
    model = WeakModel(profile, seed, instance, tier=scenario.tier, window=scenario.context)
    served = ServedModel(model)
    with served.running() as access:
        started = time.perf_counter()
        record = play(instance, agent, time="real", llm=access)
        seconds = time.perf_counter() - started
    return outcome_of(
        instance,
        arm,
        record,
        tokens=served.tokens,
        turns=served.turns,
        requests=served.requests,
        seconds=seconds,
    )


class ServedModel:
    """A simulated model behind HTTP. `requests` counts its requests, `tokens` their tokens."""

    def __init__(self, model: WeakModel, *, most_requests: int = MOST_REQUESTS) -> None:
        self.requests = 0
        self._model = model
        self._most = most_requests
        self._llm = FakeLLM([computed(self._reply).forever()], models=(MODEL,))
        self._tokenizer = tokenizer_for_model(MODEL).tokenizer
        self._prompt = self._completion = self._sent = self._received = 0

    @contextmanager
    def running(self) -> Iterator[ModelAccess]:
        """Serve the model inside the block, with the environment variables of clients pointing to it."""
        with RunningServer(self._answered) as server, _environment(client_environment(server.url)):
            yield ModelAccess(url=server.url, openai_url=f"{server.url}/v1", api_key=KEY, model=MODEL)

    @property
    def tokens(self) -> Tokens:
        """The tokens of all requests."""
        return Tokens(
            measured=Count(self._prompt, self._completion),
            estimated=Count(self._sent // BYTES_PER_TOKEN, self._received // BYTES_PER_TOKEN),
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The model's actions, request by request."""
        return tuple(turn._replace(number=number) for number, turn in enumerate(self._model.turns, 1))

    def _answered(self, request: Incoming) -> Answer:
        answer = self._llm.answer(request)
        self._sent += len(request.body)
        match answer:
            case Whole(body=body):
                self._received += len(body)
            case Streamed(frames=frames):
                self._received += sum(len(frame.data) for frame in frames)
            case _:
                pass
        return answer

    def _reply(self, request: ChatRequest) -> Reply:
        self.requests += 1
        if self.requests > self._most:
            return fault(TOO_MANY)
        try:
            reply = self._model.reply(request)
        except ProviderHTTPError as refusal:
            return fault(refusal.status)
        self._prompt += prompt_tokens(request.messages, request.tools, self._tokenizer)
        chat = reply.answer
        assert isinstance(chat, Chat), "a simulated model answers with text and calls"
        calls: list[JSON] = [
            {"function": {"name": call.name, "arguments": call.arguments}} for call in chat.calls
        ]
        self._completion += completion_tokens(chat.text, calls, self._tokenizer)
        # It may call tools that were not offered: this is one of a weak model's mistakes.
        return reply.mistaken()


@contextmanager
def _environment(variables: dict[str, str | None]) -> Iterator[None]:
    """Set or unset environment variables inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
