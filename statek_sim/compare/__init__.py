"""Two releases, profiles or backends compared: what differs, and which rule makes the difference."""
