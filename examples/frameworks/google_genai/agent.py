"""A weather assistant on google-genai: automatic function calling, and a second agent that it asks for facts."""

from collections.abc import Iterator

from google import genai
from google.genai import types
from pydantic import BaseModel

MODEL = "gemini-2.5-pro"
RETRIES = types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=3, initial_delay=0.01))


class Forecast(BaseModel):
    """A forecast for one city."""

    city: str
    degrees: int


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 9 degrees"


def ask_geographer(question: str) -> str:
    """Ask the agent that knows about places."""
    config = types.GenerateContentConfig(system_instruction="You know about places.")
    with genai.Client() as client:
        return client.models.generate_content(model=MODEL, contents=question, config=config).text or ""


def answer(question: str) -> str:
    """Answer a question about the weather."""
    config = types.GenerateContentConfig(tools=[get_weather, ask_geographer])
    with genai.Client(http_options=RETRIES) as client:
        return client.models.generate_content(model=MODEL, contents=question, config=config).text or ""


def forecast(question: str) -> Forecast:
    """Answer with a forecast."""
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Forecast)
    with genai.Client() as client:
        return client.models.generate_content(model=MODEL, contents=question, config=config).parsed


def stream(question: str) -> Iterator[str]:
    """Answer piece by piece."""
    with genai.Client() as client:
        for chunk in client.models.generate_content_stream(model=MODEL, contents=question):
            if chunk.text:
                yield chunk.text
