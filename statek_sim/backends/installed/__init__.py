"""Runs scenarios and application tests on the real `statek` package.

`peer` starts the interpreter that has the package and answers its LLM requests. The other modules run in that
interpreter; only they import `statek` and `dbzero`.
"""
