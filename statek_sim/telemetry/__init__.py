"""Health metrics for runs, with warnings and alerts (harness document §7), and span export to OpenTelemetry."""
