"""The rules by which dbzero's store changes values, used by the runtime and `statek_sim.shim`.

The rules were observed with dbzero 0.7.0, which STATEK 1.2.5, 1.2.7 and 1.4.2 install. See docs/storage.md.
"""
