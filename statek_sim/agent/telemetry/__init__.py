"""What watches a harness (002 §7): metrics with bands and alerts, spans for OpenTelemetry."""
