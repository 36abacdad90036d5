"""Usage of jobs: bytes as STATEK counts them, measured tokens, reported tokens, and costs.

`messages` sizes and tokens of requests · `conversation` the running size of a conversation · `token_usage` STATEK's
token estimate, and totals of calls · `tokenizers`, `vocabularies` tokenizers by model · `pricing` price files ·
`breakdown` usage by scenario, with the waterfall from the estimate to the measured tokens.
"""
