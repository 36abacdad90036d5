"""The effect of dbzero's store on values: one set of rules for the runtime and for `statek_sim.shim`.

Observed with dbzero 0.7.0, which STATEK 1.2.5, 1.2.7 and 1.4.2 install. docs/storage.md describes it.
"""
