"""Comparison of two releases, profiles or backends: the differences, and the rules that cause them."""
