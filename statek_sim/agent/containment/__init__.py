"""Attacks on what is meant to hold the programs and calls of an agent, and what came of them."""
