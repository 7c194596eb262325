"""The protocols, one a file, each with ``tick``, ``handle`` and ``finish``.

*Average* differs from *answer, then solve* in ``handle`` alone.

``tick(run, i, edge)``: agent i's clock rang and it is free; ``edge`` leads to the chosen neighbour.
``handle(run, i, slot)``: agent i is free and turns to a message, whose slot it passes on or gives
back.  ``finish(run, i)``: agent i has finished computing.
"""

#: The protocols by number, in the order of ``agents.rule.PROTOCOLS``.
ANSWER_THEN_SOLVE, SOLVE_THEN_ANSWER, TELL, AVERAGE = range(4)
