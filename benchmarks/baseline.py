"""A plain SimPy baseline: what one would write first.

The same clocks, partners, latency and loss as the engine, with a ``simpy.Store`` as each agent's
mailbox and a process for each message, and no learning at all.
"""

from __future__ import annotations

import numpy as np
import simpy


def deliveries(neighbours: list[list[int]], mean: float, sigma: float, drop: float, time: float):
    """Run request–reply gossip for some simulated time; return the number of deliveries."""
    env = simpy.Environment()
    rng = np.random.default_rng(0)
    mailboxes = [simpy.Store(env) for _ in neighbours]
    log_mean = np.log(mean) - sigma**2 / 2
    delivered = 0

    def message(receiver: int, content: tuple[str, int]):
        if rng.random() < drop:
            return
        yield env.timeout(rng.lognormal(log_mean, sigma))
        yield mailboxes[receiver].put(content)

    def clock(i: int):
        while True:
            yield env.timeout(rng.exponential(1.0))
            j = neighbours[i][int(rng.random() * len(neighbours[i]))]
            env.process(message(j, ("request", i)))

    def agent(i: int):
        nonlocal delivered
        while True:
            kind, sender = yield mailboxes[i].get()
            delivered += 1
            if kind == "request":
                env.process(message(sender, ("reply", i)))

    for i in range(len(neighbours)):
        env.process(clock(i))
        env.process(agent(i))
    env.run(until=time)
    return delivered
