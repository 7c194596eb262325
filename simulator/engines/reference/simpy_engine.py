"""The SimPy engine: the readable reference.  One place that schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import simpy
from simpy.core import StopSimulation

from agents.messages import Message, Sheets, World
from agents.processes import GossipAgent, LooseRoundAgent, RoundAgent
from agents.running import RunningRule
from simulator.engines.event_rows import NONE, ROUND, SKIP, STALE, Sink
from simulator.engines.reference.changing import Changing
from simulator.engines.reference.journal import Journal, ignore
from simulator.engines.reference.network import Links
from simulator.engines.reference.others import checked
from simulator.engines.reference.steps import steps_for
from simulator.engines.reference.switches import Switches
from simulator.engines.reference.timeline import FIRST, LAST, Happening, Timeline
from simulator.engines.setup import Setup, progress
from simulator.engines.slowness import Renewed
from simulator.engines.watch import Watch
from simulator.errors import DivergenceError
from simulator.problem.problem import Floats
from simulator.scenario.laws import Constant, sampler, stream


class SimpyEngine:
    """A run that can be advanced from sample to sample.

    It makes the agents' world: what passes messages on to the links, hands out random numbers, and
    notes what the agents report.
    """

    def __init__(self, setup: Setup, watch: Watch | None, events: Sink | None = None):
        self.setup, self.watch = setup, watch
        scenario, streams = setup.scenario, setup.streams
        self.env = Timeline()
        self.rule = RunningRule(setup.rule, setup.start(), streams.rule)
        hello = scenario.algorithm.start == "hello"
        callbacks = (lambda: self.env.now, self._reached, self._diverged)
        self.steps = steps_for(self.rule, watch, hello, *callbacks)
        self.journal = None if events is None else Journal(setup, lambda: self.env.now, events)
        self.links = Links(self.env, setup, self._enough_sent, self.journal)
        #: When the copy at each directed edge was sent; copies of the start count as of time 0.
        self.sent_at = np.zeros(len(setup.neighbour))
        self.world = World(
            env=self.env,
            steps=self.steps,
            sheets=Sheets(self.rule.numbers),
            send=self.links.send,
            send_surely=self.links.send_surely,
            wind=clock(self.env, setup),
            uniform=stream(lambda: streams.peers.random(4096)),
            random=streams.rule.random,
            compute_time=_compute_time(setup, lambda: self.env.now),
            refreshed=self.sent_at.__setitem__,
            handled=ignore if self.journal is None else self.journal.handled,
            stale=self._stale,
            ticked=ignore if self.journal is None else self.journal.ticked,
            skipped=self._skipped,
            solved=ignore if self.journal is None else self.journal.solved,
            renew=self.renew,
            round_done=self._round_done,
            most_links=setup.most_links,
            most_sends=setup.most_sends,
            deadline=scenario.rounds.deadline or math.inf,
            alarm=self._alarm,
        )
        self.memory = setup.memory()
        vars(self.world).update({name: array for name, (array, _) in self.memory.items()})
        self.protocol = checked(setup.protocol, setup.protocol)
        self.stale_messages = self.skipped_ticks = 0
        #: True from the event that ends the run on.
        self.finished = False
        self._limit = scenario.stop.communications or math.inf
        self._next_sample = math.inf
        self._stop_by_time = scenario.stop.time
        if self._stop_by_time is not None:
            self._halt_at(self._stop_by_time, LAST, end=True)

        self.synchronous = scenario.algorithm.mode == "sync"
        if self.synchronous:
            assert setup.protocol.rounds is not None
            self.rounds = checked(setup.protocol.rounds, setup.protocol)
        make = self._round_agent if self.synchronous else self._gossip_agent
        self.agents: list[Any] = [make(i) for i in range(setup.problem.n)]
        self.world.agents = self.agents
        self.switches = Switches(self)
        availability = setup.availability
        if availability is not None and availability.forget:
            self._fresh = setup.fresh()
        # What takes a message at the far end of each directed edge, and the edge there.
        self.links.mailboxes = [
            (self.agents[j].receive, back)
            for j, back in zip(setup.neighbour.tolist(), setup.back.tolist(), strict=True)
        ]
        if setup.arrivals is not None:
            self._changing = Changing(self, setup.arrivals)
        if self.synchronous:
            self._begin_rounds()

    def _gossip_agent(self, i: int) -> GossipAgent:
        setup, scenario = self.setup, self.setup.scenario
        edges = setup.links_of(i)
        weights = setup.problem.W.data[edges.start : edges.stop]
        agent = GossipAgent(
            self.world,
            i,
            edges,
            self.protocol,
            peer_weights=weights.tolist() if setup.peers == "weighted" else None,
            in_turn=setup.peers == "turn",
            to_all=setup.peers == "all",
            hello=scenario.algorithm.start == "hello",
        )
        agent.start()
        return agent

    def _round_agent(self, i: int) -> RoundAgent:
        rule, edges = self.setup.rule, self.setup.links_of(i)
        more: dict[str, Any] = {
            "same_for_all": rule.same_for_all,
            "needed": int(self.setup.needed[i]),
        }
        if self.setup.loose:
            slack = self.setup.scenario.rounds.slack
            return LooseRoundAgent(self.world, i, edges, self.rounds, slack=slack, **more)
        return RoundAgent(self.world, i, edges, self.rounds, **more)

    # --- what agents report -----------------------------------------------------------------------
    def _stale(self, message: Message) -> None:
        """Count a message that came too late."""
        self.stale_messages += 1
        if self.journal is not None:
            self.journal.message(STALE, message)

    def _skipped(self, agent: int) -> None:
        """Count a tick that found its agent busy."""
        self.skipped_ticks += 1
        if self.journal is not None:
            self.journal.agent(SKIP, agent)

    def _alarm(self, i: int, time: float, action: Callable[[], None]) -> None:
        self.env.schedule_of(i, Happening(self.env, [lambda _: action()]), time)

    def _begin_rounds(self) -> None:
        """Everybody begins the first one; who has no neighbours takes part in a barrier only."""
        if not self.setup.near:
            self._open_barrier()
            return
        agents, owners = self.agents, self.setup.owners.tolist()
        receivers = self.setup.neighbour.tolist()
        self.links.awaited = lambda message: agents[receivers[message.edge]].awaits(
            message, agents[owners[message.edge]].said
        )
        for agent in self.agents:
            if agent.edges:
                agent.go()

    def _round_done(self, agent: int) -> None:
        """The barrier: when all have finished, the round is over and the next one begins.

        Where agents wait for their neighbours only, their rounds are their own.
        """
        if self.setup.near:
            if self.journal is not None:
                self.journal.agent(ROUND, agent)
            self.agents[agent].go()
            return
        self._still_working -= 1
        if self._still_working == 0:
            if self.journal is not None:
                self.journal.agent(ROUND, NONE)
            self._enough_sent()
            if not self.reached:
                self._open_barrier()

    def renew(self, agent: int) -> None:
        """Give an agent the state of the start again; it is an update, as any other."""
        edges = self.setup.links_of(agent)
        self.rule.renew(agent, edges, self._fresh, f"{self.env.now:g} s")
        for array, of_links in self.memory.values():
            array[slice(edges.start, edges.stop) if of_links else agent] = 0
        self.sent_at[edges.start : edges.stop] = self.env.now
        self.steps.changed(agent)

    def settle(self, agent: int) -> None:
        """An agent without neighbours takes its solitary model, which is an update."""
        if not self.setup.links_of(agent):
            self.models[agent] = self.rule.arrays["solitary"][agent]
            self.steps.changed(agent)

    def _open_barrier(self) -> None:
        if self.switches.on and self.switches.forget:
            self.switches.renew_returned()
        self._still_working = len(self.agents)
        for agent in self.agents:
            agent.go()

    # --- what a new model means -----------------------------------------------------------------
    @property
    def reached(self) -> bool:
        """Has an update brought the watched metric to its level?  Then the run is over."""
        return self.watch is not None and self.watch.reached is not None

    def _reached(self) -> None:
        assert self.watch is not None
        if not self.reached:
            self.watch.reached = (float(self.env.now), self.links.sent)
            self._halt(end=True)

    def _diverged(self, agent: int) -> None:
        raise DivergenceError(
            f"the model of agent {self.setup.problem.names[agent]} is no longer finite at "
            f"time {self.env.now:g} s, after {self.links.sent} communications: "
            f"{self.models[agent][:4]}"
        )

    # --- what the recorder sees -----------------------------------------------------------------
    @property
    def now(self) -> float:
        """Simulated time."""
        return float(self.env.now)

    @property
    def models(self) -> Floats:
        """All models, (n, p): the engine's own array, which the next events change."""
        return self.rule.models

    @property
    def exhausted(self) -> int:
        """Solves that hit their limit."""
        return self.rule.exhausted

    def counters(self) -> dict[str, int]:
        """All counts of a sample row."""
        links = self.links
        return {
            "communications": links.sent,
            "delivered": links.delivered,
            "dropped": links.dropped,
            "missed": links.missed,
            "in_flight": links.in_flight,
            "stale": self.stale_messages,
            "skipped": self.skipped_ticks,
            "bytes": links.bytes,
        }

    def progress(self) -> dict[str, float]:
        """More of a sample row, where agents go through their rounds by themselves."""
        if not self.setup.near:
            return {}
        done = np.array([agent.round - 1 for agent in self.agents if agent.edges])
        return progress(sum(getattr(agent, "late", 0) for agent in self.agents), done)

    # --- time -----------------------------------------------------------------------------------
    def advance(self, time: float | None, communications: int | None) -> None:
        """Run up to a time (all its events included), a number of communications, or the end."""
        if time is not None and (self._stop_by_time is None or time < self._stop_by_time):
            self._halt_at(time, LAST)
        self._next_sample = communications or math.inf
        if self.setup.near or not self.synchronous:
            self.links.alarm = min(self._limit, self._next_sample)
        self.env.run()
        if self.is_stuck and self._stop_by_time is None:
            self.finished = True

    @property
    def is_stuck(self) -> bool:
        """Can nothing happen any more?  Rounds wait for those who do not come back."""
        return self.env.only(Halt)

    def absent(self) -> list[int]:
        """Who is off."""
        return [i for i, on in enumerate(self.switches.on) if not on]

    def _enough_sent(self) -> None:
        """After an event (synchronously: a round), so many were sent that it is time to halt."""
        if self.links.sent >= self._limit:
            self._halt(end=True)
        elif self.links.sent >= self._next_sample:
            self._halt()
        self.links.alarm = math.inf

    def flush(self) -> None:
        """Hand out the events that are waiting."""
        if self.journal is not None:
            self.journal.flush()

    def stop(self) -> None:
        """End the run from outside: a metric that is checked at samples has reached its level."""
        self.finished = True

    def check(self) -> None:
        """The law of conservation, at the end of a run."""
        self.links.check_conservation()

    def _halt(self, end: bool = False) -> None:
        self._halt_at(self.env.now, FIRST, end)

    def _halt_at(self, time: float, priority: int, end: bool = False) -> None:
        def halt(event: simpy.Event) -> None:
            # The event that called for a sample may have gone on, up to the end of the run.
            over = priority == FIRST and (self.reached or self.links.sent >= self._limit)
            self.finished = self.finished or end or over
            raise StopSimulation(None)

        self.env.schedule_at(Halt(self.env, [halt]), time, priority)  # type: ignore[arg-type]


class Halt(Happening):
    """The run returns to its caller: for a sample, or for good."""


def clock(env: Timeline, setup: Setup) -> Callable[[int], simpy.Event]:
    """What winds an agent's clock: the event of its next tick."""
    rates, rng = setup.rates.tolist(), setup.streams.clock
    if setup.scenario.clock.ticks == "poisson":
        gap = stream(lambda: rng.standard_exponential(4096))
        return lambda i: env.timeout(gap() / rates[i])
    first: list[float] = []  # clocks are wound for the first time in the order of the agents
    ticks = [0] * len(rates)

    def wind(i: int) -> simpy.Event:
        if i == len(first):
            first.append(rng.random() / rates[i])
        tick = Happening(env, [])
        env.schedule_at(tick, first[i] + ticks[i] / rates[i])
        ticks[i] += 1
        return tick

    return wind


def _compute_time(setup: Setup, now: Callable[[], float]) -> Callable[[int], float]:
    """How long an agent's next solve takes: one draw a solve, times the agent's factor."""
    law = setup.scenario.compute.time.drawn
    draw = sampler(law, setup.streams.compute)
    if setup.lasting_computing is not None:
        slow = Renewed(setup.lasting_computing, setup.streams.slowness)
        fixed = (1.0 if setup.compute_factors is None else setup.compute_factors) * np.ones(
            setup.problem.n
        )
        times = fixed.tolist()
        return lambda agent: draw() * (times[agent] * slow.now(agent, now()))
    if setup.compute_factors is None:
        constant = law.mean_value
        return (lambda agent: constant) if isinstance(law, Constant) else (lambda agent: draw())
    factors = setup.compute_factors.tolist()
    return lambda agent: draw() * factors[agent]
