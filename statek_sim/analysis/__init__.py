"""Usage analysis of runs: the usage of scenarios, the effects of STATEK's estimate, and fitting limits.

`run_usage` usage and costs of runs · `limits` effects and needed values of a preset's limits · `calibration` the token
limit for a budget · `corpus_model` the ratio of estimate and measured tokens in 15 languages and kinds of text.
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
