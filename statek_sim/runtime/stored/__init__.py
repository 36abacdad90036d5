"""What a value becomes when it crosses dbzero's store: one set of rules for the runtime and for `statek_sim.shim`.

Found by running dbzero 0.7.0, which is what STATEK 1.2.5, 1.2.7 and 1.4.2 install. docs/storage.md says it in words.
"""
