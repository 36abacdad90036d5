"""LangChain or litellm asks a server: `drive_frameworks.py NAME URL`, run in an environment that has both.

Prints what they made of the answers as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import warnings

warnings.simplefilter("ignore")

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look somewhere.",
        "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
    },
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def langchain(url: str) -> dict[str, object]:
    """Ask in both of OpenAI's formats, in one piece and in a stream, with a tool, an image and texts to embed."""
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    told: dict[str, object] = {}
    for name, responses in (("chat", False), ("responses", True)):
        options = {"use_responses_api": responses, "stream_usage": True, "max_retries": 0}
        model = ChatOpenAI(model="gpt-4o", base_url=f"{url}/v1", api_key="none", **options).bind_tools([TOOL])
        question = HumanMessage("Look.")
        called = model.invoke([question])
        (call,) = called.tool_calls
        answer = model.invoke([question, called, ToolMessage("empty", tool_call_id=call["id"])])
        streamed = None
        for chunk in model.stream([question]):
            streamed = chunk if streamed is None else streamed + chunk
        seen = model.invoke([HumanMessage([{"type": "text", "text": "What is this?"}, PICTURE])])
        told[name] = [call["name"], call["args"], answer.text, streamed.tool_calls == [call], seen.text]
        told[f"{name} tokens"] = [made.usage_metadata["total_tokens"] for made in (called, streamed)]
    embeddings = OpenAIEmbeddings(
        model="text-embedding-3-small",
        base_url=f"{url}/v1",
        api_key="none",
        check_embedding_ctx_length=False,
        dimensions=8,
    )
    told["embedded"] = [embeddings.embed_query("a cat"), *embeddings.embed_documents(["a cat", "a dog"])]
    return told


def litellm(url: str) -> dict[str, object]:
    """Ask the formats of three providers, the Responses API and two kinds of embeddings."""
    import litellm as client

    told: dict[str, object] = {}
    question = [{"role": "user", "content": "Look."}]
    places = {
        "openai/gpt-4o": f"{url}/v1",
        "anthropic/claude-sonnet-4-5": url,
        "gemini/gemini-2.5-pro": f"{url}/v1beta",
    }
    for model, base in places.items():
        asked = {"model": model, "api_base": base, "api_key": "none", "tools": [TOOL], "num_retries": 0}
        first = client.completion(messages=question, **asked).choices[0].message
        (call,) = first.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": "empty"}
        answer = client.completion(messages=[*question, first.model_dump(), result], **asked)
        pieces = list(client.completion(messages=question, stream=True, **asked))
        streamed = client.stream_chunk_builder(pieces).choices[0].message.tool_calls[0]
        picture = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, PICTURE]}]
        seen = client.completion(messages=picture, **asked).choices[0].message.content
        said = json.loads(call.function.arguments)
        same = json.loads(streamed.function.arguments) == said
        told[model] = [call.function.name, said, answer.choices[0].message.content, same, seen]
    asked = {"model": "openai/gpt-4o", "api_base": f"{url}/v1", "api_key": "none"}
    looking = {**asked, "tools": [{"type": "function", **TOOL["function"]}]}
    told["responses"] = client.responses(input="Look.", **looking).output[0].name
    told["responses stream"] = [
        event.type for event in client.responses(input="Look.", stream=True, **looking)
    ][-1]
    embedded = []
    for model, base in (("openai/text-embedding-3-small", f"{url}/v1"), ("gemini/m", f"{url}/v1beta")):
        found = client.embedding(model=model, api_base=base, api_key="none", input=["a cat"], dimensions=8)
        embedded.append(found.data[0]["embedding"])
    told["embedded"] = embedded
    return told


if __name__ == "__main__":
    print(json.dumps({"langchain": langchain, "litellm": litellm}[sys.argv[1]](sys.argv[2])))
