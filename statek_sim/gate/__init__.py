"""Preset quality gates: a team's requirements, checked on scenarios."""
