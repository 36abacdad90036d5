"""Metrics of runs with bands and alerts (harness document §7), and the export of spans to OpenTelemetry."""
