"""What runs mean for usage: where bytes and tokens are, what the estimate does to decisions, which limits fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.analysis.calibration import Calibration as Calibration
    from statek_sim.analysis.calibration import calibrate as calibrate
    from statek_sim.analysis.conversations import Traffic as Traffic
    from statek_sim.analysis.conversations import traffic_under as traffic_under
    from statek_sim.analysis.limit_stops import calibrate_recorded as calibrate_recorded
    from statek_sim.analysis.limit_stops import compare_stops as compare_stops
    from statek_sim.analysis.run_usage import analyse as analyse
    from statek_sim.analysis.sensitivity import Sensitivity as Sensitivity
    from statek_sim.analysis.sensitivity import sensitivities as sensitivities

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "statek_sim.analysis.calibration": (
            "Calibration",
            "calibrate",
        ),
        "statek_sim.analysis.conversations": (
            "Traffic",
            "traffic_under",
        ),
        "statek_sim.analysis.limit_stops": (
            "calibrate_recorded",
            "compare_stops",
        ),
        "statek_sim.analysis.run_usage": ("analyse",),
        "statek_sim.analysis.sensitivity": (
            "Sensitivity",
            "sensitivities",
        ),
    },
)
