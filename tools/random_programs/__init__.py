"""Small random scenarios for the comparison with the real package.

Everything here is written against `draw.Draw`; `search` alone knows the library that decides and makes failing
examples small.
"""
