"""Modules that replace `statek` and `dbzero` while an application runs on the reference runtime.

`covered_names` defines the importable names. Importing a name that the reference runtime does not support
raises ImportError.
"""
