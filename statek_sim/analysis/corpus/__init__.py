"""The corpus: the same dialogue in many languages and kinds of text, as data beside this file, and as scenarios."""
