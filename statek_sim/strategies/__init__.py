"""Hypothesis strategies for agents: arguments, scripts, jobs, scenarios, faults, schedules, and a stateful machine.

The extra `pytest-statek[hypothesis]`. Nothing here is drawn by anybody but Hypothesis: its profiles, seeds and database
are yours.
"""

from statek_sim.explore.subject import InvariantBroken as InvariantBroken
from statek_sim.explore.subject import Subject as Subject
from statek_sim.strategies.arguments import arguments as arguments
from statek_sim.strategies.arguments import calls as calls
from statek_sim.strategies.machine import machine as machine
from statek_sim.strategies.scripts import EXIT as EXIT
from statek_sim.strategies.scripts import jobs as jobs
from statek_sim.strategies.scripts import replies as replies
from statek_sim.strategies.scripts import scenarios as scenarios
from statek_sim.strategies.scripts import scripts as scripts
from statek_sim.strategies.variations import deviations as deviations
from statek_sim.strategies.variations import faults as faults
from statek_sim.strategies.variations import kills as kills
from statek_sim.strategies.variations import schedules as schedules
from statek_sim.strategies.variations import variations as variations
