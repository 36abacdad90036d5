"""Metrics and spans: the cost and health of runs, for reports and OpenTelemetry (docs/metrics.md).

`task_facts` reads a trace, `trajectory_facts` reads the record of a server's client, and `metrics_report` computes
metrics for many runs. `send` and `trace_spans` need the extra `otel`, and import OpenTelemetry when they are called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.guests.run_facts import trajectory_facts as trajectory_facts
    from statek_sim.spans.span import Span as Span
    from statek_sim.telemetry.facts import TaskFacts as TaskFacts
    from statek_sim.telemetry.facts import task_facts as task_facts
    from statek_sim.telemetry.measures import Measured as Measured
    from statek_sim.telemetry.measures import Metric as Metric
    from statek_sim.telemetry.otel import LiveSpans as LiveSpans
    from statek_sim.telemetry.otel import send as send
    from statek_sim.telemetry.otel import trace_spans as trace_spans
    from statek_sim.telemetry.report import Bands as Bands
    from statek_sim.telemetry.report import MetricsReport as MetricsReport
    from statek_sim.telemetry.report import Status as Status
    from statek_sim.telemetry.report import metrics_json as metrics_json
    from statek_sim.telemetry.report import metrics_report as metrics_report

__all__, __getattr__, __dir__ = lazy_exports(__name__)
