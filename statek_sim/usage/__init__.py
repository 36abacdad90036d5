"""Job usage: bytes as STATEK counts them, measured tokens, reported tokens, and costs.

`messages` request sizes and tokens · `conversation` a conversation's running size · `token_usage` STATEK's token
estimate, and call totals · `tokenizers`, `vocabularies` tokenizers by model · `pricing` price files · `breakdown` usage
by scenario, with the waterfall from the estimate to the measured tokens.
"""
