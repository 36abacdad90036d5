"""Running scenarios on the real `statek` package.

`peer` starts the interpreter that has the package and answers its LLM requests; the other modules run over there.
`statek` and `dbzero` are imported by nobody else.
"""
