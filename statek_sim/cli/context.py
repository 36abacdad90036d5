"""`statek-sim context audit`, `check` and `vram`: what an agent remembers, and how much it can."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import app
from statek_sim.cli.inputs import say
from statek_sim.errors import BadInput
from statek_sim.unreadable import content_of, why_unreadable

if TYPE_CHECKING:
    from statek_sim.agent.context.transcripts import Talk
    from statek_sim.agent.context.vram.models import Model

context = typer.Typer(help="Look at what an agent remembers, and how much it can.", no_args_is_help=True)
app.add_typer(context, name="context")

JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON, too.")
]


class Wire(StrEnum):
    """A format that requests are sent in."""

    OPENAI = "openai"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


@context.command()
def audit(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CONVERSATIONS.jsonl|SCENARIOS",
            show_default=False,
            help='Lines {"id", "messages"}, maybe with "needles", or scenarios of engine agent, which are run; none: '
            "conversations of the Berkeley Function Calling Leaderboard.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Tokens of a prompt and its answer; none: by --share."),
    ] = None,
    share: Annotated[
        float,
        typer.Option(metavar="S", min=0.01, max=1.0, help="The budget as a share of the largest prompt."),
    ] = 0.5,
    keep: Annotated[int, typer.Option(metavar="N", min=0, help="Newest turns that stay as they are.")] = 4,
    pin: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A fact that is pinned (repeatable).")
    ] = None,
    wire: Annotated[Wire, typer.Option(help="The format that has to take the result.")] = Wire.OPENAI,
    model: Annotated[str, typer.Option(metavar="M", help="The model whose tokens are counted.")] = "gpt-4o",
    json_file: JsonOption = None,
) -> None:
    """Tell what each way to shorten histories forgets and saves.

    Facts are planted in each conversation: in prompt, task, later messages of the user, results, arguments, words of
    the model, early, in the middle and late. A place's column says how many are in the last prompt. `saved` and
    `cached` are parts of the tokens sent; `over`: prompts above the budget; `refused`: prompts that the provider
    would not take.
    """
    from statek_sim.agent.context.audit import audited
    from statek_sim.agent.context.settings import ContextSettings
    from statek_sim.agent.context.transcripts import planted
    from statek_sim.agent.conversation import Envelopes
    from statek_sim.cli.inputs import check_writable
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.context_tables import aligned, audit_json, audit_rows

    check_writable(json_file=json_file, folder=None)
    meter = Envelopes().meter(model)
    talks = [planted(talk) for talk in _talks(paths)]
    found = audited(
        talks,
        lambda message: meter.measure(message)[1],
        share=share,
        budget=budget,
        settings=ContextSettings(keep=keep, pinned=tuple(pin or ())),
        wire=wire.value,
    )
    say(aligned(audit_rows(found)))
    label = meter.model_tokenizer.label
    say([f"{len(talks)} conversations; tokens by {label}"])
    if json_file is not None:
        write_artifact(json_file, json.dumps(audit_json(found), ensure_ascii=False, indent=1) + "\n")


def _talks(paths: list[Path] | None) -> list[Talk]:
    """Return the conversations of files, of scenarios, or those that come with the package."""
    from importlib import resources

    from statek_sim.agent.context.transcripts import read_talks

    if not paths:
        text = resources.files("statek_sim.agent.context").joinpath("talks.jsonl").read_text(encoding="utf-8")
        return read_talks(text, "talks.jsonl")
    found: list[Talk] = []
    scenarios = [path for path in paths if path.suffix != ".jsonl"]
    for path in paths:
        if path not in scenarios:
            found += read_talks(_text(path), str(path))
    if scenarios:
        found += _talks_of(scenarios)
    if not found:
        raise BadInput("no conversation in these scenarios, expected engine: agent")
    return found


def _talks_of(paths: list[Path]) -> list[Talk]:
    from statek_sim.agent.context.transcripts import Talk
    from statek_sim.backends.agent import run_agent_scenario
    from statek_sim.scenario.load import load_or_fail

    found = []
    for scenario in load_or_fail(paths):
        if scenario.engine == "agent":
            record = run_agent_scenario(scenario, compacts=False)
            found += [
                Talk(id=f"{scenario.id}/{name}", messages=tuple(job.history))
                for name, job in record.jobs.items()
                if job.history
            ]
    return found


@context.command()
def check(
    file: Annotated[
        Path, typer.Argument(metavar="CONVERSATIONS.jsonl", show_default=False, help='Lines {"messages"}.')
    ],
    wire: Annotated[Wire, typer.Option(help="The provider's format.")] = Wire.OPENAI,
    alternating: Annotated[
        bool,
        typer.Option("--alternating", help="User and model have to take turns, as many templates want it."),
    ] = False,
) -> None:
    """Say what a provider would refuse in conversations, or never see. Exits 1 when there is anything."""
    from statek_sim.agent.context.transcripts import lines_of
    from statek_sim.agent.context.wire_check import wire_faults

    lines = [
        f"{where}: {name}: {fault.sentence} ({fault.rule.value})"
        for where, name, messages in lines_of(_text(file), str(file))
        for fault in wire_faults(messages, wire.value, alternating=alternating)
    ]
    say(lines)
    if lines:
        raise typer.Exit(1)


@context.command()
def vram(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A .gguf file, a config.json or its folder, or a name of the table; none: the table.",
        ),
    ] = None,
    free: Annotated[
        list[int] | None,
        typer.Option(
            metavar="MIB", min=0, help="Free memory of a card (repeatable); none: what nvidia-smi says."
        ),
    ] = None,
    kv: Annotated[
        str, typer.Option(metavar="T", help="Type of the cache: f16, q8_0, q4_0 and others.")
    ] = "f16",
    weights: Annotated[
        int | None,
        typer.Option(
            metavar="MIB", min=0, help="Weights that are not loaded yet; none: a GGUF file's size, else 0."
        ),
    ] = None,
    loaded: Annotated[bool, typer.Option("--loaded", help="The weights are loaded already.")] = False,
    share: Annotated[
        float, typer.Option(metavar="S", min=0.01, max=1.0, help="The part of the free memory that is used.")
    ] = 0.7,
    no_windows: Annotated[
        bool, typer.Option("--no-windows", help="The server keeps everything in layers with a window, too.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Tell how many tokens of context fit on the graphics cards.

    By the layers, heads and windows of the model and the type of its cache, over all cards, less what is used.
    """
    from statek_sim.agent.context.vram.models import known_models, model_called
    from statek_sim.reporting.context_tables import aligned, model_rows

    if model is None:
        say(aligned(model_rows(list(known_models().values()))))
        say(["*: the model's longest context; 70 % of the free memory is used, the weights are elsewhere"])
        return
    chosen = model_called(model)
    size = 0 if loaded else chosen.weights if weights is None else weights * 1024 * 1024
    _fit(chosen, free, kv, size, share, windows=not no_windows, json_file=json_file)


def _fit(
    model: Model,
    free: list[int] | None,
    kv: str,
    weights: int,
    share: float,
    *,
    windows: bool,
    json_file: Path | None,
) -> None:
    from statek_sim.agent.context.vram.budget import fitting, mib
    from statek_sim.agent.context.vram.cards import MIB, Card, cards
    from statek_sim.cli.inputs import check_writable
    from statek_sim.reporting.artifact import write_artifact

    check_writable(json_file=json_file, folder=None)
    found = (
        [Card(index=at, name="given", total=size, used=0, free=size) for at, size in enumerate(free)]
        if free
        else cards()
    )
    fit = fitting(
        model.shape, [card.free * MIB for card in found], kv=kv, weights=weights, share=share, windows=windows
    )
    for card in found:
        say(
            [f"card {card.index} ({card.name}): {card.free:,} of {card.total:,} MiB free, {card.used:,} used"]
        )
    tokens = "any number of" if fit.tokens is None else f"{fit.tokens:,}"
    rate = f"{mib(fit.per_token * 1000):.1f} MiB per 1,000 tokens of {kv}"
    say(
        [
            f"{model.name}: {len(model.shape.layers)} layers, {rate}",
            f"{mib(fit.usable):,.0f} MiB for the cache, after {mib(weights):,.0f} MiB of weights",
            f"{tokens} tokens fit, bounded by {fit.bound}",
        ]
    )
    if json_file is not None:
        figures = {
            "schema": "statek-sim/vram@1",
            "model": model.name,
            "source": model.shape.source,
            "kv": kv,
            "bytes_per_token": fit.per_token,
            "usable": fit.usable,
            "weights": weights,
            "tokens": fit.tokens,
            "bound": fit.bound,
            "cards": [asdict(card) for card in found],
        }
        write_artifact(json_file, json.dumps(figures, indent=1) + "\n")


def _text(path: Path) -> str:
    try:
        return content_of(path).decode()
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8") from None
