"""Compares two releases, profiles or backends: their differences and the rules that cause them."""
