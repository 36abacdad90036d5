"""LLM providers that need no network.

`protocol` what a provider is · `script`, `condition` replies and when they apply · `scripted` plays a script, in order
· `function` a plain callable as a model · `delivery` turns a reply into a raw answer · `mismatch` what to say
when script and job disagree · `wire` the formats of OpenAI, Anthropic and Gemini · `http_provider` a provider behind
HTTP, and what carries its bytes · `retry` when a client tries again · `network` forbids real connections
· `contract` checks any provider.
"""
