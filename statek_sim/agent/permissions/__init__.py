"""Permissions for an agent's calls: rules for paths, hosts and commands, and file access that obeys them."""
