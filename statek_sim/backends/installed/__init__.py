"""Runs scenarios and application tests on the real `statek` package.

`peer` starts an interpreter that has the package installed, and answers its LLM requests. The other modules
run in that interpreter; only they import `statek` and `dbzero`.
"""
