"""Modules that replace `statek` and `dbzero` while an application runs on the reference runtime.

`covered_names` lists their names and makes them importable. A name that the reference runtime does not cover raises
ImportError.
"""
