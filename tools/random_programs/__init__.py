"""Generates small random scenarios for comparison with the real package.

Everything here uses `draw.Draw`; only `search` uses the library that makes the choices and shrinks failing examples.
"""
