"""Memory across sessions: instructions of a project, and the handoff file (004 §7)."""
