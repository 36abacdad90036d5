"""Analyses runs: scenario usage, the effects of STATEK's token estimate, and suitable limits.

`run_usage` usage and costs · `limits` the effects of a preset's limits · `needs` the limits that a scenario needs ·
`calibration` the token limit for a budget · `corpus_model` the ratio of estimated to measured tokens in 15 languages
and text types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.analysis.calibration import Calibration as Calibration
    from statek_sim.analysis.calibration import calibrate as calibrate
    from statek_sim.analysis.limits import Sensitivity as Sensitivity
    from statek_sim.analysis.limits import compare_stops as compare_stops
    from statek_sim.analysis.limits import sensitivities as sensitivities
    from statek_sim.analysis.run_usage import analyse as analyse

__all__, __getattr__, __dir__ = lazy_exports(__name__)
