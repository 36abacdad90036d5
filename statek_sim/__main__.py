"""`python -m statek_sim`: the same as `statek-sim`."""

from __future__ import annotations

from statek_sim.cli import main

main()
