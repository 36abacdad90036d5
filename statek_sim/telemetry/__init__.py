"""Metrics of runs with bands and alerts (002 §7), and the export of spans to OpenTelemetry."""
