"""What a scripted provider reports as usage: the tokens that a tokenizer counts."""

from __future__ import annotations

from statek_sim.providers.protocol import ChatRequest
from statek_sim.usage.messages import completion_tokens, prompt_tokens
from statek_sim.usage.tokenizers import TokenizerRegistry, tokenizer_for_model


def measured(
    request: ChatRequest, content: str, *, tokenizers: TokenizerRegistry | None = None
) -> tuple[int, int]:
    """Return (prompt, completion) tokens as a provider with this model's tokenizer would report them."""
    tokenizer = tokenizer_for_model(request.model, tokenizers).tokenizer
    prompt = prompt_tokens(request.messages, request.tools, tokenizer)
    return prompt, completion_tokens(content, None, tokenizer)
