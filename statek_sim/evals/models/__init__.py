"""Simulated weak models: profiles of failure classes, and the provider that acts them out."""
