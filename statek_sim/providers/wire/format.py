"""The interface of a wire format, implemented by the modules `openai`, `responses`, `anthropic` and `gemini`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from statek_sim.providers.wire import anthropic, gemini, openai, responses
from statek_sim.providers.wire.reply import ParsedReply, Split, WireReply
from statek_sim.providers.wire.request import PLAIN, ClientOptions, FormatName, RequestContent, WireRequest
from statek_sim.values import JSON


class WireFormat(Protocol):
    """One provider's format. All functions are pure: no sockets, no clock, no randomness."""

    @property
    def NAME(self) -> FormatName:  # noqa: N802  # a constant of the module
        """The format's name."""

    # The client's side, as in STATEK.

    def request_url(self, api_url: str, model: str) -> str:
        """Return the address of a request; `api_url` is the provider's `<P>_API_URL`."""

    def request_headers(self, api_key: str, options: ClientOptions = PLAIN) -> dict[str, str]:
        """Return the headers of a request, `Content-Type` included."""

    def request_body(self, request: RequestContent, options: ClientOptions = PLAIN) -> dict[str, JSON]:
        """Return the JSON body of a request, keys in STATEK's order."""

    def read_reply(self, body: bytes) -> ParsedReply:
        """Read a successful answer; for a body that STATEK cannot read, raise STATEK's error."""

    # The provider's side.

    def read_request(self, body: JSON, url: str = "") -> WireRequest:
        """Read a request; an invalid one is a `BadRequest`. `url`, or its path, contains Gemini's model."""

    def reply_body(self, reply: WireReply) -> bytes:
        """Return the body of an answer: compact UTF-8 JSON."""

    def reply_stream(self, reply: WireReply, split: Split, *, usage: bool = True) -> Iterator[bytes]:
        """Yield the server-sent events of an answer; `usage` off leaves the usage out."""

    def error_body(
        self, status: int, message: str, *, parameter: str | None = None, code: str | None = None
    ) -> bytes:
        """Return the body of a failed answer, with the name of the wrong parameter if the format has a field for it."""

    def join_stream(self, stream: bytes) -> bytes:
        """Return the unstreamed body of a streamed answer."""


FORMATS: Final[Mapping[FormatName, WireFormat]] = {
    "openai": openai,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
}
"""The formats by name."""

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
"""Every provider that STATEK knows."""

DEFAULT_URL: Final = "https://llm.invalid/v1/chat/completions"
"""The `<P>_API_URL` of a fake in OpenAI's format; `.invalid` never resolves (RFC 6761)."""

FAKE_URLS: Final[Mapping[FormatName, str]] = {
    "openai": DEFAULT_URL,
    "responses": "https://llm.invalid/v1/responses",
    "anthropic": DEFAULT_URL,
    "gemini": "https://llm.invalid/v1/models",
}
"""The `<P>_API_URL` of a fake by format; STATEK ignores Anthropic's."""


_GENERATE: Final = (":generateContent", ":streamGenerateContent")


def format_of_url(url: str) -> WireFormat:
    """Return the format of a request that STATEK sent to `url`."""
    if url == anthropic.request_url("", ""):
        return anthropic
    return gemini if url.partition("?")[0].endswith(":generateContent") else openai


def format_of(provider: str, *, custom: Collection[str] = ()) -> WireFormat:
    """Return the format that STATEK uses for a provider, named in any letter case.

    `custom` are upper-case names registered with `add_provider`, which use STATEK's default implementation; any other
    unknown name raises STATEK's `ValueError`.
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
    """Return the format of any client's request to this address, by its ending; None if it is not a chat."""
    path = uri.partition("?")[0]
    if path.endswith("/chat/completions"):
        return openai
    if path.endswith("/responses"):
        return responses
    if path.endswith("/messages"):
        return anthropic
    return gemini if path.endswith(_GENERATE) else None
