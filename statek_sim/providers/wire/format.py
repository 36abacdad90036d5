"""The interface of the wire formats `openai`, `responses`, `anthropic` and `gemini`, and the format per provider."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from statek_sim.providers.wire import anthropic, gemini, openai, responses
from statek_sim.providers.wire.reply import ParsedReply, Split, WireReply
from statek_sim.providers.wire.request import PLAIN, ClientOptions, FormatName, RequestContent, WireRequest
from statek_sim.values import JSON


class WireFormat(Protocol):
    """The format of a provider's HTTP bodies, as pure functions. Each format is implemented by a module."""

    @property
    def NAME(self) -> FormatName:  # noqa: N802  # a constant of the module
        """The format's name."""

    # The client, which behaves like STATEK's.

    def request_url(self, api_url: str, model: str) -> str:
        """Return a request's URL; `api_url` is the value of a variable such as `OPENAI_API_URL`."""

    def request_headers(self, api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
        """Return a request's HTTP headers, including `Content-Type` and the API key."""

    def request_body(self, request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
        """Return a request's JSON body, with keys in STATEK's order."""

    def read_reply(self, body: bytes) -> ParsedReply:
        """Parse the body of a successful response; raises STATEK's error if STATEK cannot parse the body."""

    # The provider.

    def read_request(self, body: JSON, url: str = "") -> WireRequest:
        """Parse a request body; raises `BadRequest` if it is invalid. Gemini's model is in `url` or its path."""

    def reply_body(self, reply: WireReply) -> bytes:
        """Return the response body for a reply, as compact UTF-8 JSON."""

    def reply_stream(self, reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
        """Yield a response's server-sent events; `usage=False` omits the usage."""

    def error_body(
        self, status: int, message: str, *, parameter: str | None = None, code: str | None = None
    ) -> bytes:
        """Return an error body, with the invalid parameter and the code if the format supports them."""

    def join_stream(self, stream: bytes) -> bytes:
        """Return the body that a streamed response would have without streaming."""


FORMATS: Final[Mapping[FormatName, WireFormat]] = {
    "openai": openai,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
}
"""Maps names to formats."""

_OPENAI_NAMES: Final = """
    OPENAI OPENROUTER GROQ MISTRAL MISTRALAI MISTRAL_AI DEEPSEEK DEEP_SEEK XAI X_AI GROK TOGETHER TOGETHERAI
    TOGETHER_AI FIREWORKS FIREWORKSAI FIREWORKS_AI CEREBRAS PERPLEXITY SAMBANOVA SAMBA_NOVA NVIDIA NVIDIA_NIM NIM
    NEBIUS COHERE MOONSHOT MOONSHOTAI MOONSHOT_AI KIMI DASHSCOPE DASH_SCOPE ALIBABA ALIBABA_CLOUD QWEN CLOUDFLARE
    CLOUDFLARE_WORKERS_AI WORKERS_AI CLOUDFLARE_AI_GATEWAY AI_GATEWAY GITHUB GITHUB_MODELS BEDROCK AMAZON_BEDROCK
    AWS_BEDROCK MICROSOFT_FOUNDRY MS_FOUNDRY AZURE_FOUNDRY AZURE_OPENAI AZURE_OPEN_AI GEMINI_ENTERPRISE
    GOOGLE_GEMINI_ENTERPRISE GOOGLE_OPENAI OLLAMA LMSTUDIO LM_STUDIO VLLM SGLANG LLAMA_CPP LLAMACPP
    LLAMA_CPP_PYTHON
"""
OPENAI_PROVIDERS: Final = frozenset(_OPENAI_NAMES.split())
ANTHROPIC_PROVIDERS: Final = ("CLAUDEAI", "CLAUDE_AI", "CLAUDE", "ANTHROPIC")
GEMINI_PROVIDERS: Final = ("VERTEXAI", "VERTEX_AI", "GOOGLE_VERTEXAI", "GOOGLE")


PROVIDERS: Final = (*sorted(OPENAI_PROVIDERS), *ANTHROPIC_PROVIDERS, *GEMINI_PROVIDERS)
"""The names of all providers that STATEK supports."""

DEFAULT_URL: Final = "https://llm.invalid/v1/chat/completions"
"""The `<P>_API_URL` of a fake provider in OpenAI's format; `.invalid` never resolves (RFC 6761)."""

FAKE_URLS: Final[Mapping[FormatName, str]] = {
    "openai": DEFAULT_URL,
    "responses": "https://llm.invalid/v1/responses",
    "anthropic": DEFAULT_URL,
    "gemini": "https://llm.invalid/v1/models",
}
"""The `<P>_API_URL` of a fake provider in each format; STATEK ignores Anthropic's."""


_GENERATE: Final = (":generateContent", ":streamGenerateContent")


def format_of_url(url: str) -> WireFormat:
    """Return the format of a request sent by STATEK to `url`."""
    if url == anthropic.request_url("", ""):
        return anthropic
    return gemini if url.partition("?")[0].endswith(":generateContent") else openai


def format_of(provider: str, *, custom: Collection[str] = ()) -> WireFormat:
    """Return the format that STATEK uses for a provider; names are case-insensitive.

    `custom` are upper-case names registered with `add_provider`; they use OpenAI's format. Any other unknown name
    raises STATEK's `ValueError`.
    """
    key = provider.upper()
    if key in OPENAI_PROVIDERS or key in custom:
        return openai
    if key in ANTHROPIC_PROVIDERS:
        return anthropic
    if key in GEMINI_PROVIDERS:
        return gemini
    raise ValueError(f"Unsupported LLM API provider: {provider}")


def format_at(uri: str) -> WireFormat | None:
    """Return the format for a chat request to this URL, based on the end of the path, or None for any other URL."""
    path = uri.partition("?")[0]
    if path.endswith("/chat/completions"):
        return openai
    if path.endswith("/responses"):
        return responses
    if path.endswith("/messages"):
        return anthropic
    return gemini if path.endswith(_GENERATE) else None
