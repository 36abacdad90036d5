"""Modules that take the place of `statek` and `dbzero` while an application runs on the reference runtime.

`covered_names` says which names they have and puts them where `import` looks. A name that they lack is an
ImportError: the reference runtime must not pretend to be more of STATEK than it is.
"""
