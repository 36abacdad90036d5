"""Permissions of an agent's calls: rules for paths, hosts and commands, and file access that follows them."""
