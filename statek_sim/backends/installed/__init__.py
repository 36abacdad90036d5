"""Running scenarios on the real `statek` package.

`peer` starts the interpreter that has the package and answers its LLM requests; the other modules run there. Only they
import `statek` and `dbzero`.
"""
