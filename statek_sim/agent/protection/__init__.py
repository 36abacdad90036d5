"""Loop protection (document 002, section 6): step limits, repetition, circuit breakers."""
