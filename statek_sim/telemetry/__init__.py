"""Health metrics of runs, with warnings and alerts (harness document §7), and the export of spans to OpenTelemetry."""
