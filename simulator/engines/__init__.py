"""Engines: the same simulated network twice, to be read and to be fast.

==============  ===============================================================================
``setup``       from a scenario to the start of a run: what both engines begin with
``event_rows``  the form of what happened, where it is recorded
``watch``       the metric that is followed at every update, for both engines
``reference``   the network and the clock with SimPy; the agents' processes are in ``agents``
``compiled``    the same events in Numba, on flat arrays
==============  ===============================================================================
"""

from pathlib import Path

from agents.machinery.code_cache import register_sources

register_sources(__name__, Path(__file__).resolve().parent)
