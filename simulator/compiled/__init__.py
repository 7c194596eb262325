"""The compiled engine: the network, the protocols and the built-in rules in Numba, on flat arrays.

It gives what the SimPy engine gives (``simulator/engine.py`` and ``agents/agent.py``, which are
the reference and easier to read), event by event: the same generators are drawn from in the same
order, and ties in time are broken by the same order of scheduling.

==============  ===============================================================================
``memory``      a run's state as one record of numbers and addresses of arrays
``queue``       the event queue
``draws``       random numbers, in blocks that NumPy draws
``network``     uplinks, delays, losses, and the counts of messages (design, section 4)
``messages``    the pool in which messages wait to arrive or to be handled
``world``       the agents and links, and the record's layout
``gossip``      asynchronous runs (section 2)
``rounds``      synchronous runs (section 3)
``dispatch``    how these two come to the rule at hand
``mp, admm``    the two rules, as ``agents.model_propagation`` and ``agents.admm`` define them
``primal``      admm's primal step, for every loss
``engine``      the class that a run drives; all that is Python
==============  ===============================================================================

Importing this package compiles nothing and does not import Numba.
"""
