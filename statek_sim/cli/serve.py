"""`statek-sim serve llm`: a fake LLM server that plays a script."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import typer

from statek_sim.cli.app import app
from statek_sim.cli.inputs import say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.server.llm_server import LLMServer

_PORTS: Final = 65535
"""The highest port there is."""
_ATTENTION: Final = 0.1
"""Seconds until a signal is noticed, at most."""


serve = typer.Typer(
    help="Serve a fake LLM, or tools as an MCP server, to test clients.\n\nExample: statek-sim serve llm script.yaml",
    no_args_is_help=True,
)
app.add_typer(serve, name="serve")

PathArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", show_default=False, help="A script file, or a scenario file whose script to play."
    ),
]
ScenarioOption = Annotated[
    str | None, typer.Option(metavar="ID", help="The scenario to play, where the file has several.")
]
HostOption = Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")]
PortOption = Annotated[int, typer.Option(metavar="N", help="Port up to 65535; 0 takes a free one.")]
AnywhereOption = Annotated[
    bool, typer.Option("--anywhere", help="Allow an address that other machines reach.")
]
SpeedOption = Annotated[
    float | None,
    typer.Option(
        metavar="X", help="Virtual seconds that pass per real second; not said: latencies take no time."
    ),
]
TokenSecondsOption = Annotated[
    float,
    typer.Option(metavar="S", min=0, help="Virtual seconds from one token of a stream to the next."),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Take this parameter of requests without heed instead of refusing it. Repeatable.",
    ),
]
CheckOption = Annotated[
    bool,
    typer.Option("--check", help="Exit 1 when a request found no reply, or a reply or fault no request."),
]


@serve.command()
def llm(
    path: PathArgument,
    scenario: ScenarioOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    anywhere: AnywhereOption = False,
    speed: SpeedOption = None,
    token_seconds: TokenSecondsOption = 0.0,
    ignore: IgnoreOption = None,
    check: CheckOption = False,
) -> None:
    """Serve a fake LLM over HTTP, from a script.

    It speaks the formats of OpenAI (chat completions, responses, embeddings), Anthropic and Gemini. Runs until it is
    interrupted (Ctrl-C) or terminated, then prints what is left over.

    Example: statek-sim serve llm script.yaml --port 8123 --check
    """
    from statek_sim.backends.serving import load_playable
    from statek_sim.reporting.text_format import plural
    from statek_sim.server.llm_server import LLMServer

    if not 0 <= port <= _PORTS:
        raise BadInput(f"--port {port}: expected a number from 0 to {_PORTS}")
    playable = load_playable(path, scenario)
    with LLMServer(
        host=host,
        port=port,
        anywhere=anywhere,
        styles=playable.styles,
        models=playable.models,
        count_usage=playable.count_usage,
        speed=speed,
        token_seconds=token_seconds,
        ignored=(*playable.ignored, *(ignore or ())),
    ) as server:
        server.llm.play(playable.script, faults=playable.faults)
        server.llm.warm_up()
        _serve(server, path)
    problems = list(_problems(server))
    say([f"{plural(server.journal.total, 'request')} answered"])
    say(problems, err=True)
    if check and problems:
        raise typer.Exit(1)


def _serve(server: LLMServer, path: Path) -> None:
    """Say where the server is, and return when this process is told to end."""
    with Told() as ending:
        say([f"serving {path} at {server.url} (OpenAI's SDK: {server.openai_url})"])
        while not ending.to_end and not server.join(_ATTENTION):
            pass


class Told:
    """Whether SIGINT or SIGTERM has come, from entering the block on.

    A handler that raises may do so inside a finalizer, where Python drops the exception, and a signal that another
    thread receives does not wake the main thread. So the handler leaves a note, and the main thread looks at it.
    """

    def __init__(self) -> None:
        self.to_end = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.to_end = True


def _problems(server: LLMServer) -> Iterator[str]:
    from statek_sim.errors import ScriptError

    try:
        server.check_finished()
    except ScriptError as error:
        yield str(error)
