"""Modules that replace `statek` and `dbzero` while an application runs on the reference runtime.

`covered_names` lists their names and makes them importable. A missing name is an ImportError: the reference runtime
must not pretend to cover more of STATEK than it does.
"""
