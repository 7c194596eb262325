"""The network in compiled code: that of the reference engine on flat arrays, draw for draw."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import floats, kernel
from simulator.engines.compiled.draws import LATENCY, LOSS, draw
from simulator.engines.compiled.on_off import parted
from simulator.engines.compiled.record import ADDRESS, Fields, view
from simulator.engines.compiled.slowness import AGENTS, LINKS, factor_now, pair_of
from simulator.engines.setup import Setup
from simulator.scenario.network import GilbertElliott

#: An agent's uplink, and the factor on its latencies.
UPLINK = np.dtype([("free", np.float64), ("factor", np.float64)], align=True)
#: The last arrival on a directed link (fifo); its last state and when (Gilbert–Elliott).
LINK = np.dtype(
    [("last_arrival", np.float64), ("bad", np.float64), ("since", np.float64)], align=True
)
FIELDS: Fields = [
    ("uplinks", ADDRESS),
    ("links", ADDRESS),
    #: The factor on the latencies of each directed edge, where they differ.
    ("link_factors", ADDRESS),
    #: Of an uplink, in bytes a second; infinite where there is no limit.
    ("bandwidth", np.float64),
    ("unequal_agents", np.bool_),
    ("unequal_links", np.bool_),
    ("fifo", np.bool_),
    ("bursty", np.bool_),
    ("drop_good", np.float64),
    ("drop_bad", np.float64),
    #: The stationary share of time in the bad state, and the rate at which the past is forgotten.
    ("bad_share", np.float64),
    ("forget_rate", np.float64),
    ("sent", np.int64),
    ("delivered", np.int64),
    ("dropped", np.int64),
    ("missed", np.int64),
    ("bytes", np.int64),
]


def fill(run: NDArray[Any], setup: Setup) -> tuple[NDArray[Any], NDArray[Any]]:
    """Describe the network in the record; the uplinks (n) and links (edges, or 0 if not needed)."""
    config, drop = setup.scenario.network, setup.scenario.network.drop
    run["bandwidth"] = config.bandwidth or math.inf
    run["fifo"], run["bursty"] = config.fifo, isinstance(drop, GilbertElliott)
    uplinks = np.zeros(setup.problem.n, UPLINK)
    if setup.latency_factors is not None:
        run["unequal_agents"], uplinks["factor"] = True, setup.latency_factors
    links = np.zeros(len(setup.neighbour) if run["fifo"] or run["bursty"] else 0, LINK)
    if isinstance(drop, GilbertElliott):
        good_to_bad, bad_to_good = 1.0 / drop.mean_good, 1.0 / drop.mean_bad
        run["bad_share"] = good_to_bad / (good_to_bad + bad_to_good)
        run["forget_rate"] = good_to_bad + bad_to_good
        run["drop_good"], run["drop_bad"] = drop.drop_good, drop.drop_bad
        links["bad"], links["since"] = run["bad_share"], -np.inf
    else:
        run["drop_good"] = drop.rate
    return uplinks, links


@kernel
def _lost(run: Any, edge: int) -> bool:
    """Is a message on this link lost?  See ``loss_model`` there."""
    if not run.bursty:
        return draw(run, LOSS) < run.drop_good
    link = view(run.links, run.edge_count, LINK)[edge]
    stay = math.exp(-run.forget_rate * (run.now - link.since))
    is_bad = draw(run, LOSS) < run.bad_share + (link.bad - run.bad_share) * stay
    link.bad = 1.0 if is_bad else 0.0
    link.since = run.now
    return draw(run, LOSS) < (run.drop_bad if is_bad else run.drop_good)


@kernel
def send(run: Any, edge: int, sender: int, receiver: int, size: int) -> tuple[float, float]:
    """Put a message on its way: when it leaves the uplink, and arrives (infinity: it is lost)."""
    departure = run.now
    if run.bandwidth < math.inf:
        uplink = view(run.uplinks, run.n, UPLINK)[sender]
        departure = max(departure, uplink.free) + size / run.bandwidth
        uplink.free = departure
    run.sent += 1
    run.bytes += size
    lost = _lost(run, edge)
    latency = draw(run, LATENCY)
    of_agent = factor_now(run, AGENTS, sender) if run.slow_agents else 1.0
    of_link = factor_now(run, LINKS, pair_of(run, edge)) if run.slow_links else 1.0
    if lost or (run.cuts > 0 and parted(run, sender, receiver)):
        run.dropped += 1
        return departure, math.inf
    if run.unequal_agents:
        of_agent = view(run.uplinks, run.n, UPLINK)[sender].factor
    if run.unequal_links:
        of_link *= floats(run.link_factors, run.edge_count)[edge]
    latency = latency * of_agent * of_link
    arrival = departure + latency
    if run.fifo:
        link = view(run.links, run.edge_count, LINK)[edge]
        arrival = max(arrival, link.last_arrival)
        link.last_arrival = arrival
    return departure, arrival
