"""Who runs a scenario: `reference` is this package's own runtime."""
