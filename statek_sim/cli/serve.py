"""`statek-sim serve llm` and `serve mcp`: a scripted fake LLM server, and an MCP server with fault injection."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TextIO

import typer

from statek_sim.cli.app import app
from statek_sim.cli.inputs import say
from statek_sim.cli.options import argument, flag, option
from statek_sim.errors import BadInput
from statek_sim.input_files import read_text

if TYPE_CHECKING:
    from statek_sim.mcp.server import McpServer
    from statek_sim.server.llm_server import LLMServer


_PORTS: Final = 65535
"""The largest port number."""
_ATTENTION: Final = 0.1
"""Seconds between checks for a signal."""


serve = typer.Typer(
    help="Run a fake LLM server, or an MCP server with your tools.\n\nExample: statek-sim serve "
    "llm script.yaml",
    no_args_is_help=True,
)
app.add_typer(serve, name="serve")

PathArgument = Annotated[Path, argument("PATH", "A script file, or a scenario file that contains a script.")]
ScenarioOption = Annotated[
    str | None, option("ID", "The id of the scenario to play, if the file has several.")
]
HostOption = Annotated[str, option("HOST", "The address to listen on.")]
PortOption = Annotated[int, option("N", "The port to listen on, from 0 to 65535; 0 chooses a free port.")]
AnywhereOption = Annotated[bool, flag("Allow an address that other machines can reach.", "--anywhere")]
SpeedOption = Annotated[
    float | None, option("X", "The number of virtual seconds per real second. Default: skip latencies.")
]
TokenSecondsOption = Annotated[
    float, option("S", "The number of virtual seconds between streamed tokens.", min=0)
]
IgnoreOption = Annotated[
    list[str] | None,
    option("NAME", "Ignore this request parameter instead of rejecting it; can be repeated."),
]
CheckOption = Annotated[
    bool, flag("Exit 1 if a request had no reply, or if a reply or fault was unused.", "--check")
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
    """Run a fake LLM server that plays a script.

    Supports the OpenAI (chat completions, responses, embeddings),
    Anthropic and Gemini formats. Runs until Ctrl-C or SIGTERM, then lists unused replies.

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
    """Print the server's address and wait for SIGINT or SIGTERM."""
    with EndSignal() as ending:
        say([f"serving {path} at {server.url} (OpenAI's SDK: {server.openai_url})"])
        while not ending.to_end and not server.join(_ATTENTION):
            pass


class EndSignal:
    """Sets `to_end` when SIGINT or SIGTERM arrives inside the block.

    A handler that raises an exception may run inside a finalizer, where Python drops the exception, and a signal
    received by another thread does not wake the main thread. So the handler sets a flag that the main thread polls.
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


class Transport(StrEnum):
    """An MCP server's transport."""

    STDIO = "stdio"
    HTTP = "streamable-http"


SourceArgument = Annotated[
    str,
    argument(
        "TOOLS",
        "A Registry or a list of functions, given as module:attribute, or a scenario file that contains tools.",
    ),
]
ToolsOfOption = Annotated[
    str | None, option("ID", "The id of the scenario to use, if the file has several.", "--scenario")
]
TransportOption = Annotated[Transport, option("stdio|streamable-http", "The transport that the client uses.")]
FaultOption = Annotated[
    list[str] | None,
    option(
        "KIND[:TOOL][@N][=VALUE]",
        "Inject a fault into every call. KIND: slow, silent, dies, changes, malformed, no-json, wrong-id, huge, fails, "
        "refuses or loops. TOOL: only into calls to this tool, or to tools/list. N: only into the Nth of these calls. "
        "VALUE: a setting for this kind of fault, such as seconds. Can be repeated.",
    ),
]
ListedOption = Annotated[str | None, option("A,B", "The tools to list initially. Default: all tools.")]
PageOption = Annotated[
    int | None, option("N", "The number of tools per tools/list page. Default: all tools on one page.")
]
NameOption = Annotated[str, option("NAME", "The name that the server reports.")]
JournalOption = Annotated[
    Path | None,
    option(
        "FILE",
        "Append the client's requests to this file as JSON lines. Existing lines count towards @N, so a restarted "
        "server does not repeat a fault.",
    ),
]


ResourcesOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:ATTRIBUTE",
        help="The resources to serve: a dict that maps URIs to str or bytes, or a ServedResources object.",
    ),
]
PromptsOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:ATTRIBUTE",
        help="The prompts to serve: a list of functions, each of which returns a string or a list of messages.",
    ),
]


@serve.command()
def mcp(
    source: SourceArgument,
    scenario: ToolsOfOption = None,
    resources: ResourcesOption = None,
    prompts: PromptsOption = None,
    transport: TransportOption = Transport.STDIO,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    anywhere: AnywhereOption = False,
    fault: FaultOption = None,
    listed: ListedOption = None,
    page: PageOption = None,
    name: NameOption = "statek-sim",
    journal: JournalOption = None,
) -> None:
    """Run an MCP server with your tools, for testing an MCP client.

    Over stdio, the server handles one client until it closes the connection; over HTTP, it runs until Ctrl-C or
    SIGTERM.

    Example: statek-sim serve mcp shop.tools:TOOLS --fault slow
    """
    from statek_sim.backends.serving import served_tools
    from statek_sim.backends.setup import attribute_at
    from statek_sim.mcp.fault import fault_from
    from statek_sim.mcp.server import McpJournal, McpServer

    if not 0 <= port <= _PORTS:
        raise BadInput(f"--port {port}: expected a number from 0 to {_PORTS}")
    # A pipe is not read, because that might never end.
    before = [] if journal is None or not journal.is_file() else _asked_before(journal)
    with nullcontext() if journal is None else _added_to(journal) as file:
        server = McpServer(
            served_tools(source, scenario),
            name=name,
            resources=() if resources is None else attribute_at("--resources", resources),
            prompts=() if prompts is None else attribute_at("--prompts", prompts),
            faults=[fault_from(text) for text in fault or ()],
            listed=None if listed is None else [part.strip() for part in listed.split(",") if part.strip()],
            page=page,
            journal=McpJournal(None if file is None else lambda line: print(line, file=file)),
        )
        server.faults.count(before)
        if transport is Transport.HTTP:
            _over_http(server, host, port, anywhere=anywhere)
        else:
            _over_stdio(server)


def _added_to(journal: Path) -> TextIO:
    """Open the journal for appending; raises `BadInput` if it cannot be written."""
    try:
        return journal.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise BadInput(f"{journal}: cannot write the journal: {error.strerror}") from None


def _asked_before(journal: Path) -> list[str]:
    from statek_sim.mcp.server import counted

    try:
        return list(counted(read_text(journal).splitlines()))
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"{journal}: not a journal: {error}; choose a new file, or a journal written by this command"
        ) from None


def _over_stdio(server: McpServer) -> None:
    from statek_sim.mcp.transports import serve_stdio

    try:
        serve_stdio(server)
    except KeyboardInterrupt:
        raise typer.Exit from None


def _over_http(server: McpServer, host: str, port: int, *, anywhere: bool) -> None:
    from statek_sim.mcp.transports import McpHttpServer

    with (
        McpHttpServer(server, host=host, port=port, anywhere=anywhere, process=True) as served,
        EndSignal() as ending,
    ):
        say([f"serving {len(server.tools)} tools at {served.url}"])
        while not ending.to_end and not served.join(_ATTENTION):
            pass
    say([f"{len(server.journal.calls)} calls"])
