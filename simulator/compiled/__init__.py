"""The compiled engine: the network, the protocols and the built-in rules in Numba, on flat arrays.

It gives what the SimPy engine gives (``simulator/engine.py`` and ``agents/agent.py``, which are
the reference and easier to read), event by event: the same generators are drawn from in the same
order, and ties in time are broken by the same order of scheduling.

==============  ===============================================================================
``queue``       the event queue
``network``     uplinks, delays, losses, and the counts of messages (design, section 4)
``messages``    the pool in which messages wait to arrive or to be handled
``world``       the agents and links: what a protocol works on
``gossip``      asynchronous runs (section 2)
``rounds``      synchronous runs (section 3)
``mp, admm``    the two rules, as ``agents.model_propagation`` and ``agents.admm`` define them
``engine``      the class that a run drives; all that is Python
==============  ===============================================================================

Importing this package compiles nothing and does not import Numba.
"""
