"""The algorithm: a whole run, gossip or rounds, in one file of plain Python.

Written from docs/design.md (sections 2 to 4), docs/churn.md and docs/results.md, and from nothing
else: it shares no code with the packages under test.  One heap of events, dictionaries by agent or
by link, one small class a protocol; nothing is kept up to date by difference, and nothing is fast.
What is drawn before the first event is in ``oracle_devices``, the mathematics in ``oracle_rules``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.engines.oracle_devices import Devices, draw

#: The order within an instant: agents are switched; points arrive; then is sent again what that, or
#: the end of a partition, lets pass; then comes all else, in the order of scheduling.  Where rounds
#: wait for neighbours only, deadlines come after that, by agent, and then timers.
SWITCHES, POINTS, REPEATS, REST, DEADLINES, TIMERS = range(6)


@dataclass
class Message:
    """What one agent sends another, once: every attempt of a round's message is one of its own."""

    kind: str
    sender: int
    receiver: int
    content: np.ndarray
    #: When that was first sent.
    sent_at: float
    #: Its sender's send number, the version of the link, or the round.
    number: int
    #: Of a reply: what it answers.
    request: Message | None = None
    #: Its place in the order of sending.
    place: int = -1


@dataclass
class Job:
    """What an agent computes: how long still, and what it does at the end."""

    left: float
    then: Callable[..., None]
    args: tuple[Any, ...]
    end: float = math.nan


class Simulation:
    """Time, the network, and agents that come and go; ``rows`` and ``events`` are what is recorded.

    Subclasses say what agents do: ``begin`` (before the first event), ``receive`` (a message has
    come), ``returns`` (an agent is back), ``freed`` (it has finished computing).
    """

    #: May the run end after any event, or after a round?
    ends_within_rounds = True

    def __init__(self, scenario, problem, streams, rule):
        self.scenario, self.network, self.streams = scenario, scenario.network, streams
        self.problem, self.rule, self.n, self.p = problem, rule, problem.n, problem.p
        self.W = problem.W.toarray()
        self.N = [[int(j) for j in np.flatnonzero(row)] for row in self.W]
        self.links = [(i, j) for i in range(self.n) for j in self.N[i]]
        self.devices = Devices(scenario, problem, streams, self.links)
        # Time.
        self.now, self.queue, self.scheduled, self.over = 0.0, [], 0, False
        # What is recorded.
        self.count = dict.fromkeys(("send", "deliver", "drop", "miss", "stale", "skip"), 0)
        self.bytes, self.rows, self.events = 0, [], []
        self.copy_sent_at = dict.fromkeys(self.links, 0.0)
        # The network: when uplinks are free, what came last, and the last state of bursts and when.
        self.uplink_free = [0.0] * self.n
        self.last_arrival = dict.fromkeys(self.links, 0.0)
        self.weather = {}
        # The agents: who is on, who has never been, and what each computes.
        self.on = self.devices.on_at_first
        self.new = {i for i in range(self.n) if not self.on[i]}
        self.forgets = scenario.availability is not None and scenario.availability.forget
        self.job: list[Job | None] = [None] * self.n

    # --- time -------------------------------------------------------------------------------------
    def at(self, time, what, *args, rank=REST, agent=0):
        """Let something happen; what is infinitely far never does."""
        if time < math.inf:
            heapq.heappush(self.queue, (time, rank, agent, self.scheduled, what, args))
            self.scheduled += 1

    def run(self):
        """All events up to the end; a sample at every multiple of record.every, and at the end."""
        stop, every = self.scenario.stop, self.scenario.record.every
        end = math.inf if stop.time is None else stop.time
        self._begin_life()
        self.begin()
        self.sample(0.0)
        while not self.over:
            time = min(self.queue[0][0] if self.queue else math.inf, end)
            if time == math.inf:  # nobody can go on
                break
            while len(self.rows) * every < time:
                self.sample(len(self.rows) * every)
            self.now = time
            if not self.queue or self.queue[0][0] > end:
                break
            *_, what, args = heapq.heappop(self.queue)
            what(*args)
            self.over = self.over or (self.ends_within_rounds and self.enough())
        self.sample(self.now)
        return self

    def enough(self):
        """Have as many messages been sent as the run is to have?"""
        limit = self.scenario.stop.communications
        return limit is not None and self.count["send"] >= limit

    # --- what is recorded -------------------------------------------------------------------------
    def note(self, kind, agent, message=None, what=None):
        """A row of events.parquet; the counts of trace.csv are those of its rows."""
        self.count[kind] = self.count.get(kind, 0) + 1
        if message is None:
            row = (agent, -1, -1, what, -1, 0, None)
        else:
            peer = message.sender + message.receiver - agent
            answers = -1 if message.request is None else message.request.place
            row = (agent, peer, message.place, message.kind, answers, self.size(message))
            row += (message.sent_at,)
        self.events.append((self.now, kind, *row))

    def sample(self, time):
        """A row of trace.csv, without metrics."""
        in_flight = sum(what == self.arrive for *_, what, _ in self.queue)
        row = {"time": time, "communications": self.count["send"], "in_flight": in_flight}
        row |= {"delivered": self.count["deliver"], "dropped": self.count["drop"]}
        row |= {"missed": self.count["miss"], "stale": self.count["stale"]}
        row |= {"skipped": self.count["skip"], "bytes": self.bytes}
        row |= self.progress()
        row["models"] = self.rule.models()
        row["staleness"] = time - sum(self.copy_sent_at.values()) / max(1, len(self.links))
        self.rows.append(row)

    def progress(self):
        """More of a row of trace.csv."""
        return {}

    # --- the network ------------------------------------------------------------------------------
    def size(self, message):
        """Bytes: the header, and 8 a number."""
        return self.network.header + 8 * np.size(message.content)

    def send(self, message):
        """Put a message on its way; when it leaves the uplink."""
        i, j = message.sender, message.receiver
        departure = self.now
        if self.network.bandwidth is not None:
            busy = self.size(message) / self.network.bandwidth
            departure = self.uplink_free[i] = max(self.now, self.uplink_free[i]) + busy
        message.place = self.count["send"]
        self.bytes += self.size(message)
        self.note("send", i, message)
        lost = self.is_lost(i, j)
        latency = draw(self.network.latency, self.streams.latency)
        of_agent, of_link = self.devices.slow(i, j, self.now)
        if lost or self.parted(i, j):
            self.note("drop", i, message)
            return departure
        arrival = departure + latency * of_agent * of_link
        if self.network.fifo:
            arrival = self.last_arrival[i, j] = max(arrival, self.last_arrival[i, j])
        self.at(arrival, self.arrive, message)
        return departure

    def is_lost(self, i, j):
        """By a rate, or by the state that a chain of two is in since the last message."""
        drop, rng = self.network.drop, self.streams.loss
        if drop.kind == "rate":
            return rng.random() < drop.rate
        to_bad, to_good = 1 / drop.mean_good, 1 / drop.mean_bad
        share = chance = to_bad / (to_bad + to_good)
        if (i, j) in self.weather:
            was_bad, then = self.weather[i, j]
            memory = math.exp(-(to_bad + to_good) * (self.now - then))
            chance = share + (was_bad - share) * memory
        bad = rng.random() < chance
        self.weather[i, j] = bad, self.now
        return rng.random() < (drop.drop_bad if bad else drop.drop_good)

    def parted(self, i, j):
        """Does a partition separate two agents now?"""
        now = [cut.group for cut in self.devices.cuts if cut.begin <= self.now < cut.until]
        return any(group[i] != group[j] for group in now)

    def arrive(self, message):
        """A message is there; nobody may be."""
        if self.on[message.receiver]:
            self.note("deliver", message.receiver, message)
            self.receive(message)
        else:
            self.note("miss", message.receiver, message)

    # --- what every agent can do ------------------------------------------------------------------
    def compute(self, i, then, *args):
        """Agent i is busy for one drawn time, and then goes on; at once, if it takes none."""
        law = self.scenario.compute.time
        factor = self.devices.compute_of_agent[i].at(self.now)
        time = draw(law, self.streams.compute) * factor
        if time == 0:
            then(*args)
        else:
            self.go_on(i, Job(time, then, args))

    def go_on(self, i, job):
        """Begin what is left of a job."""
        job.end = self.now + job.left
        self.job[i] = job
        self.at(job.end, self.finish, i, job)

    def finish(self, i, job):
        """A job ends, unless it was interrupted."""
        if self.job[i] is job:
            self.job[i] = None
            job.then(*job.args)
            self.freed(i)

    def freed(self, i):
        """Agent i has finished what it was computing."""

    def solve(self, i):
        """A new model holds."""
        self.rule.solve(i)
        self.note("solve", i)

    def absorb(self, i, message, own):
        """Take in a message; ``own`` is the agent's own part of the same exchange."""
        own = self.rule.model(i) if own is None else own
        self.rule.absorb(i, message.sender, message.content, own)
        self.copy_sent_at[i, message.sender] = message.sent_at

    # --- comings and goings -----------------------------------------------------------------------
    def _begin_life(self):
        for i in range(self.n):
            if not self.on[i]:
                self.note("switch", i, what="off")
        for i in range(self.n):
            self.at(self.devices.first_switch[i], self.switch, i, rank=SWITCHES)
        for time, i in self.problem.arrivals:
            self.at(time, self.point, i, rank=POINTS)

    def point(self, i):
        """A point arrives, and is fitted at once; no message follows."""
        self.problem.arrive(i)
        self.note("point", i)
        if self.problem.refits:  # what is forgotten comes back as it is now
            self.rule.fresh |= {(i, j): self.problem.solitary[i] for j in (i, *self.N[i])}
        if not self.N[i]:
            self.rule.Theta[i, i] = self.problem.solitary[i]

    def switch(self, i):
        """Agent i goes on or off."""
        on = self.on[i] = not self.on[i]
        self.note("switch", i, what="on" if on else "off")
        self.at(self.devices.next_switch(i, self.now, on), self.switch, i, rank=SWITCHES)
        job = self.job[i]
        if not on and job is not None:  # computing pauses: the old end comes to nothing
            self.job[i] = replace(job, left=job.end - self.now)
        if on:
            self.returns(i)
            self.new.discard(i)

    def resume(self, i):
        """Go on with what was interrupted."""
        if self.job[i] is not None:
            self.go_on(i, replace(self.job[i]))

    def forget(self, i):
        """Agent i is back with its data only."""
        self.rule.forget(i)
        self.copy_sent_at |= {(i, j): self.now for j in self.N[i]}


# --- gossip ---------------------------------------------------------------------------------------
class Gossip(Simulation):
    """Clocks, hellos and mailboxes.

    A protocol says what is done at a tick, given the neighbour that was chosen, and with a message;
    and with which number a message travels.
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.mailbox = [[] for _ in range(self.n)]
        #: Of clocks that tick regularly, the first instant and how many were planned; whom an agent
        #: chose last, where that is done in turn.
        self.first_tick, self.ticks, self.last = {}, [0] * self.n, {}

    def tick(self, i, j):
        """The clock rang, and the agent is free."""
        raise NotImplementedError

    def handle(self, i, message):
        """The agent is free, and turns to a message."""
        raise NotImplementedError

    def number(self, kind, i, j, request):
        """What a message is stamped with."""
        raise NotImplementedError

    # --- clocks -----------------------------------------------------------------------------------
    def begin(self):
        for i in range(self.n):
            self.at(0.0, self.wake, i)

    def wake(self, i):
        if self.on[i]:
            self.say_hello(i)
        self.wind(i)

    def say_hello(self, i):
        if self.scenario.algorithm.start == "hello":
            for j in self.N[i]:
                self.post("hello", i, j, self.rule.model(i))

    def wind(self, i):
        rng, rate = self.streams.clock, self.devices.rate[i]
        if self.scenario.clock.ticks == "poisson":
            self.at(self.now + rng.standard_exponential() / rate, self.ring, i)
            return
        if i not in self.first_tick:
            self.first_tick[i] = rng.random() / rate
        self.at(self.first_tick[i] + self.ticks[i] / rate, self.ring, i)
        self.ticks[i] += 1

    def ring(self, i):
        u = self.streams.peers.random()
        if not self.on[i] or self.job[i] is not None:
            self.note("skip", i)
        else:
            self.note("tick", i)
            if self.N[i]:
                self.tick(i, self.choose(i, u))
        self.wind(i)

    def choose(self, i, u):
        """The neighbour that u in [0, 1) picks, or, in turn, the one after the last."""
        peers = self.scenario.clock.peers
        if peers == "turn" and i in self.last:
            after = [j for j in self.N[i] if j > self.last[i]]
            self.last[i] = min(after or self.N[i])
            return self.last[i]
        weighted = peers == "weighted"
        share = np.cumsum(self.W[i, self.N[i]] if weighted else np.ones(len(self.N[i])))
        self.last[i] = self.N[i][int(np.count_nonzero(share <= u * share[-1]))]
        return self.last[i]

    # --- messages ---------------------------------------------------------------------------------
    def post(self, kind, i, j, content, request=None):
        """Send a message; what it says."""
        number = self.number(kind, i, j, request)
        self.send(Message(kind, i, j, content, self.now, number, request))
        return content

    def ask(self, i, j):
        self.post("request", i, j, self.rule.tell(i, j))

    def answer(self, i, request):
        """Reply with the state as it is now."""
        j = request.sender
        return self.post("reply", i, j, self.rule.tell(i, j), request)

    def receive(self, message):
        if self.job[message.receiver] is None:
            self.turn_to(message)
        else:
            self.mailbox[message.receiver].append(message)

    def turn_to(self, message):
        self.note("handle", message.receiver, message)
        self.handle(message.receiver, message)

    def freed(self, i):
        while self.mailbox[i] and self.job[i] is None:
            self.turn_to(self.mailbox[i].pop(0))

    def introduce(self, i, message):
        self.rule.introduce(i, message.sender, message.content)
        self.copy_sent_at[i, message.sender] = message.sent_at

    # --- comings and goings -----------------------------------------------------------------------
    def returns(self, i):
        """Forget everything, or go on; whoever is on for the first time says hello."""
        if i in self.new:
            self.say_hello(i)
        elif self.forgets:
            self.mailbox[i], self.job[i] = [], None
            self.last.pop(i, None)
            self.forget(i)
        else:
            self.resume(i)


class Numbered(Gossip):
    """Messages carry their sender's send number; knowledge never goes back to an older one."""

    def __init__(self, *args):
        super().__init__(*args)
        self.sends, self.heard = [0] * self.n, dict.fromkeys(self.links, 0)

    def number(self, kind, i, j, request):
        self.sends[i] += 1
        return self.sends[i]

    def is_fresh(self, i, message):
        """Is this newer than all that was heard on its link?"""
        if message.number > self.heard[i, message.sender]:
            self.heard[i, message.sender] = message.number
            return True
        self.note("stale", i, message)
        return False

    def take_in(self, i, message, own=None):
        if message.kind == "hello":
            self.introduce(i, message)
        else:
            self.absorb(i, message, own)


class AnswerThenSolve(Numbered):
    """A tick asks; whoever is asked answers with what it was; who hears something new solves."""

    solving = ("request", "reply")

    def tick(self, i, j):
        self.ask(i, j)

    def handle(self, i, message):
        fresh = self.is_fresh(i, message)
        own = None if message.request is None else message.request.content
        if message.kind == "request":
            own = self.answer(i, message)
        if fresh:
            self.take_in(i, message, own)
            if message.kind in self.solving:
                self.compute(i, self.solve, i)


class Sparing(AnswerThenSolve):
    """The same, but every second tick does nothing, and every third news of a link causes no solve.

    Who forgets counts from 0 again.
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.rung, self.heard_of = [0] * self.n, dict.fromkeys(self.links, 0)

    def tick(self, i, j):
        self.rung[i] += 1
        if self.rung[i] % 2 == 1:
            self.ask(i, j)

    def compute(self, i, then, *args):
        if self.heard_of[self.heard_on] % 3 != 0:
            super().compute(i, then, *args)

    def absorb(self, i, message, own):
        super().absorb(i, message, own)
        self.heard_on = (i, message.sender)
        self.heard_of[self.heard_on] += 1

    def forget(self, i):
        super().forget(i)
        self.rung[i] = 0
        self.heard_of |= {(i, j): 0 for j in self.N[i]}


class Average(AnswerThenSolve):
    """The same, where absorbing is averaging, and the asking end alone solves."""

    solving = ("reply",)


class Tell(Numbered):
    """A tick solves and tells every neighbour, or the one that it chose; nobody answers."""

    def tick(self, i, j):
        everybody = self.scenario.clock.peers in (None, "all")
        self.compute(i, self.solve_and_tell, i, self.N[i] if everybody else [j])

    def solve_and_tell(self, i, whom):
        self.solve(i)
        for j in whom:
            self.ask(i, j)

    def handle(self, i, message):
        if self.is_fresh(i, message):
            self.take_in(i, message)


class SolveThenAnswer(Gossip):
    """A tick solves and asks; whoever is asked solves, answers and absorbs.

    Each end has a version of the link, raised whenever it absorbs.  A reply echoes its request's.
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.version = dict.fromkeys(self.links, 0)

    def number(self, kind, i, j, request):
        return self.version[i, j] if request is None else request.number

    def tick(self, i, j):
        self.compute(i, self.solve_and_ask, i, j)

    def solve_and_ask(self, i, j):
        self.solve(i)
        self.ask(i, j)

    def handle(self, i, message):
        if message.kind == "request":
            self.compute(i, self.solve_and_answer, i, message)
        elif message.number != self.version[i, message.sender]:
            self.note("stale", i, message)
        elif message.kind == "hello":
            self.introduce(i, message)
        else:
            self.absorb(i, message, message.request.content)

    def solve_and_answer(self, i, request):
        self.solve(i)
        self.absorb(i, request, self.answer(i, request))

    def absorb(self, i, message, own):
        super().absorb(i, message, own)
        self.version[i, message.sender] += 1

    def forget(self, i):
        """Nobody takes an old reply for a new one."""
        super().forget(i)
        for j in self.N[i]:
            self.version[i, j] += 1


# --- rounds ---------------------------------------------------------------------------------------
class Rounds(Simulation):
    """Everybody sends to all neighbours, waits for all of theirs and solves; then comes a barrier.

    A protocol says how an agent begins its round, and what it does once all are there.
    """

    ends_within_rounds = False

    def __init__(self, *args):
        super().__init__(*args)
        self.round = 0
        #: Which messages (sender, receiver, round) have arrived, and those that wait until they
        #: can pass.
        self.arrived, self.held = set(), {}
        #: Who waits for its return to begin; who has come back in this round, and just now.
        self.waiting, self.returned, self.back = set(), set(), set()

    def begin_round(self, i):
        """Agent i can begin."""
        raise NotImplementedError

    def all_there(self, i):
        """Agent i has sent its messages and has all of its neighbours'."""
        raise NotImplementedError

    # --- the barrier ------------------------------------------------------------------------------
    def begin(self):
        for cut in self.devices.cuts:
            self.at(cut.until, self.send_held, self.links, rank=REPEATS)
        self.open_barrier()

    def open_barrier(self):
        self.round += 1
        self.inbox, self.told = [{} for _ in range(self.n)], [None] * self.n
        self.unfinished, self.complete = set(range(self.n)), set()
        for i in range(self.n):
            self.at(self.now, self.enter, i)

    def enter(self, i):
        if not self.N[i]:
            self.end(i)
        elif self.on[i]:
            self.begin_round(i)
        else:
            self.waiting.add(i)

    def end(self, i):
        """Agent i has done its round; the last one closes it.

        Whoever was off meanwhile forgets now, also where the run ends with this round.
        """
        self.unfinished.remove(i)
        if not self.unfinished:
            self.note("round", -1)
            for j in sorted(self.returned):
                self.forget(j)
            self.returned.clear()
            self.over = self.enough()
            if not self.over:
                self.open_barrier()

    # --- messages ---------------------------------------------------------------------------------
    def send_all(self, i):
        self.told[i] = {j: self.rule.tell(i, j) for j in self.N[i]}
        for j, content in self.told[i].items():
            self.attempt(Message("round", i, j, content, self.now, self.round))
        self.look(i)

    def attempt(self, message):
        departure = self.send(message)
        if self.network.retransmit_after != "never":
            self.at(departure + self.network.retransmit_after, self.due, message)

    def due(self, message):
        """What has not arrived by now is sent again, as soon as it can pass."""
        i, j = message.sender, message.receiver
        if (i, j, message.number) in self.arrived:
            return
        if self.on[i] and self.on[j] and not self.parted(i, j):
            self.attempt(replace(message))
        else:
            self.held[i, j, message.number] = message

    def send_held(self, links):
        """By sender, then receiver, then round."""
        for key in sorted(key for key in self.held if key[:2] in links):
            self.due(self.held.pop(key))

    def receive(self, message):
        i, j = message.receiver, message.sender
        if (j, i, message.number) in self.arrived:
            self.note("handle", i, message)
            self.note("stale", i, message)
            return
        self.arrived.add((j, i, message.number))
        self.inbox[i][j] = message
        if len(self.inbox[i]) == len(self.N[i]):
            self.at(self.now, self.wake, i)  # an event of its own: others of this instant go first

    def wake(self, i):
        self.complete.add(i)
        self.look(i)

    def look(self, i):
        """Once agent i has sent its own and has all of theirs, it takes them in."""
        if self.told[i] is None or i not in self.complete:
            return
        for j in self.N[i]:
            self.note("handle", i, self.inbox[i][j])
            self.absorb(i, self.inbox[i][j], self.told[i][j])
        self.all_there(i)

    def solve_and_end(self, i):
        self.solve(i)
        self.end(i)

    # --- comings and goings -----------------------------------------------------------------------
    def returns(self, i):
        """Go on, or begin; what waited for agent i is sent after all switches of this instant."""
        self.resume(i)
        if self.forgets and i not in self.new:
            self.returned.add(i)
        if i in self.waiting:
            self.waiting.remove(i)
            self.at(self.now, self.enter, i)
        if not self.back:
            self.at(self.now, self.send_to_returned, rank=REPEATS)
        self.back.add(i)

    def send_to_returned(self):
        self.send_held({link for link in self.links if self.back.intersection(link)})
        self.back.clear()


class SendThenSolve(Rounds):
    """Of the protocols *answer, then solve* and *tell*."""

    def begin_round(self, i):
        self.send_all(i)

    def all_there(self, i):
        self.compute(i, self.solve_and_end, i)


class SolveThenSend(Rounds):
    """Of the protocol *solve, then answer*."""

    def begin_round(self, i):
        self.compute(i, self.solve_and_send, i)

    def solve_and_send(self, i):
        self.solve(i)
        self.send_all(i)

    def all_there(self, i):
        self.end(i)


class Neighbours(Rounds):
    """Every agent goes through its rounds by itself, and waits for its own neighbours.

    ``exact``: for a message of its own round of each.  Otherwise the newest message of a link is
    all that is kept of it, and those of ``slack`` rounds before count as well; ``needed`` of them
    are enough, and so is a deadline.
    """

    ends_within_rounds = True

    def __init__(self, *args):
        super().__init__(*args)
        how = self.scenario.rounds
        share = Fraction((how.enough or "100%")[:-1]) / 100
        self.slack, self.deadline = how.slack, how.deadline
        self.exact = self.slack == 0 and self.deadline is None and share == 1
        self.needed = [math.ceil(share * len(self.N[i])) for i in range(self.n)]
        self.round, self.told, self.inbox = [0] * self.n, [None] * self.n, {}
        #: The newest round heard on each link, and the one last told by each agent.
        self.heard, self.said = dict.fromkeys(self.links, 0), [0] * self.n
        #: Who was called to go on in its round, may do so, and has; who was off at its deadline.
        self.called, self.complete, self.gone, self.overdue = set(), set(), set(), set()
        self.count["late"] = 0

    def begin(self):
        for cut in self.devices.cuts:
            self.at(cut.until, self.send_held, self.links, rank=REPEATS)
        for i in range(self.n):
            if self.N[i]:
                self.open(i)

    def open(self, i):
        """The next round of agent i."""
        self.round[i] += 1
        self.told[i] = None
        for who in (self.called, self.complete, self.gone):
            who.discard(i)
        self.at(self.now, self.enter, i)
        self.look_around(i)

    def enter(self, i):
        if not self.on[i]:
            self.waiting.add(i)
            return
        if i in self.returned:
            self.returned.remove(i)
            self.forget(i)
        self.begin_round(i)

    def end(self, i):
        self.note("round", i)
        self.open(i)

    def progress(self):
        done = [self.round[i] - 1 for i in range(self.n) if self.N[i]]
        least, most = min(done, default=0), max(done, default=0)
        mean = sum(done) / max(1, len(done))
        late = {"late": self.count["late"]}
        return late | {"round_least": least, "round_mean": mean, "round_most": most}

    # --- waiting ----------------------------------------------------------------------------------
    def counts(self, i, j):
        """Is what agent i waits for there from neighbour j?"""
        if self.exact:
            return (j, i, self.round[i]) in self.arrived
        return self.heard[i, j] >= self.round[i] - self.slack

    def look_around(self, i):
        if sum(self.counts(i, j) for j in self.N[i]) >= self.needed[i]:
            self.call(i)

    def call(self, i):
        """It need not wait any longer: an event of its own."""
        if i not in self.called:
            self.called.add(i)
            self.at(self.now, self.wake, i)

    def ring(self, i, number):
        """The deadline of a round."""
        if self.round[i] == number:
            if self.on[i]:
                self.call(i)
            else:
                self.overdue.add(i)

    def look(self, i):
        if self.told[i] is None or i not in self.complete:
            return
        self.gone.add(i)
        for j in self.N[i]:
            message = self.inbox.pop((i, j, self.round[i] if self.exact else None), None)
            if message is not None:
                self.note("handle", i, message)
                self.absorb(i, message, self.told[i][j])
        self.all_there(i)

    # --- messages ---------------------------------------------------------------------------------
    def send_all(self, i):
        self.told[i] = {j: self.rule.tell(i, j) for j in self.N[i]}
        self.said[i] = self.round[i]
        for j, content in self.told[i].items():
            message = Message("round", i, j, content, self.now, self.round[i])
            departure = self.attempt(message)
        if self.deadline is not None:
            when = departure + self.deadline
            self.at(when, self.ring, i, self.round[i], rank=DEADLINES, agent=i)
        self.look(i)

    def attempt(self, message):
        departure = self.send(message)
        if self.network.retransmit_after != "never":
            self.at(departure + self.network.retransmit_after, self.due, message, rank=TIMERS)
        return departure

    def due(self, message):
        """The newest of a link is sent again while somebody waits for it; exactly, each is."""
        i, j = message.sender, message.receiver
        least = self.round[j] - self.slack + (j in self.gone)
        if self.exact or (message.number == self.said[i] and message.number >= least):
            super().due(message)

    def receive(self, message):
        i, j, number = message.receiver, message.sender, message.number
        known = (j, i, number) in self.arrived
        self.arrived.add((j, i, number))
        if known or (not self.exact and number < self.heard[i, j]):
            self.note("handle", i, message)
            self.note("stale", i, message)
            return
        self.heard[i, j] = max(number, self.heard[i, j])
        self.inbox[i, j, number if self.exact else None] = message
        self.count["late"] += number < self.round[i]
        self.look_around(i)

    def returns(self, i):
        super().returns(i)
        if i in self.overdue:
            self.overdue.remove(i)
            self.at(self.now, self.ring, i, self.round[i], rank=DEADLINES, agent=i)


class SendThenSolveNear(Neighbours, SendThenSolve):
    """Send, wait for the neighbours, solve."""


class SolveThenSendNear(Neighbours, SolveThenSend):
    """Solve, send, wait for the neighbours."""


NEAR = {SendThenSolve: SendThenSolveNear, SolveThenSend: SolveThenSendNear}
#: What each protocol does in gossip, and in rounds if it has any.
PROTOCOLS = {
    "answer, then solve": (AnswerThenSolve, SendThenSolve),
    "solve, then answer": (SolveThenAnswer, SolveThenSend),
    "tell": (Tell, SendThenSolve),
    "average": (Average, None),
    "sparing": (Sparing, SendThenSolve),
}


def simulate(scenario, problem, streams, rule):
    """The run of a scenario, over."""
    gossip, rounds = PROTOCOLS[scenario.algorithm.protocol or rule.protocol]
    near = NEAR.get(rounds) if scenario.rounds.barrier == "neighbours" else rounds
    kind = near if scenario.algorithm.mode == "sync" else gossip
    return kind(scenario, problem, streams, rule).run()
