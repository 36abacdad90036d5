"""`statek-sim tools`, `presets` and `profiles`: what is built in."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from statek_sim.cli.app import app
from statek_sim.cli.inputs import say


@app.command()
def tools() -> None:
    """List the built-in tools that scenarios can use."""
    from statek_sim.suite.listing import tool_lines

    say(tool_lines())


@app.command()
def presets() -> None:
    """List the built-in presets with their settings."""
    from statek_sim.suite.listing import preset_lines

    say(preset_lines())


@app.command()
def profiles() -> None:
    """List the rules on which the behaviour profiles differ.

    Each comes with its value in every profile.
    """
    from statek_sim.suite.listing import profile_lines

    say(profile_lines())
