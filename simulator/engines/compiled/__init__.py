"""The compiled engine: the network and the verbs of protocols in Numba, on flat arrays.

It gives what the SimPy engine gives (``simulator.engines.reference``, which is easier to read),
event by event: the same generators are drawn from in the same order, ties in time are broken by
the same order of scheduling, and the rule's functions are the same machine code.

==============  ===============================================================================
``record``      a run's state as one record of numbers and addresses of arrays
``queue``       the event queue
``draws``       random numbers, in blocks that NumPy draws
``network``     uplinks, delays, losses, and the counts of messages
``slowness``    factors that last for a while only
``pool``        the pool in which messages wait to arrive or to be handled
``event_notes`` what happened, as rows, where it is recorded
``on_off``      who is on, and who is cut off from whom
``world``       the agents and links, the record's layout, and the calls of the rule
``exchange``    sending a message, and what its arrival means
``switching``   going on and off, and being busy
``verbs``       what protocols are made of: the verbs of ``agents.protocol``
``gossip``      asynchronous runs
``rounds``      synchronous runs
``engine``      the class that a run drives; all that is Python
==============  ===============================================================================

Importing this package compiles nothing and does not import Numba.
"""
