"""Durable state of the STATEK runtime: its objects as tagged JSON, in SQLite or PostgreSQL (docs/durability.md)."""
