"""Running scenarios, and tests of applications, on the real `statek` package.

`peer` starts the interpreter that has the package and answers its LLM requests. The other modules run in that
interpreter, and only they import `statek` and `dbzero`.
"""
