"""A second simulator, written from sections 2 to 4 of docs/design.md alone.

One class, one heap, dictionaries and dense arrays; models are computed anew from all that an agent
knows, nothing is kept up to date by difference.  It shares no code with the packages under test
beyond the problem's data and the random streams.  Slow, literal, and for small networks only.
"""

from __future__ import annotations

import heapq
import math
from types import SimpleNamespace

import numpy as np

from tests import oracles


# --- rules: what is told, absorbed and solved ---------------------------------------------------
class Copies:
    """What every rule with one copy of each neighbour's model knows: Θ̃ as a dictionary."""

    def __init__(self, problem, start):
        self.W, self.c, self.solitary = problem.W.toarray(), problem.confidence, problem.solitary
        self.Theta, self.start = {}, start
        for i in range(problem.n):
            self.Theta[i, i] = 0 * self.solitary[i] if start == "zero" else self.solitary[i]
            for j in np.flatnonzero(self.W[i]):
                known = self.solitary[j] if start == "known" else self.Theta[i, i]
                self.Theta[i, int(j)] = known

    def tell(self, i, j):
        return self.Theta[i, i].copy()

    def absorb(self, i, j, received, sent):
        self.Theta[i, j] = received

    def introduce(self, i, j, model):
        self.Theta[i, j] = model

    def forget(self, i):
        """Back to the start, for which neighbours are taken to agree with the agent."""
        own = 0 * self.solitary[i] if self.start == "zero" else self.solitary[i]
        self.Theta |= {(i, int(j)): own for j in (i, *np.flatnonzero(self.W[i]))}

    def models(self):
        return np.array([self.Theta[i, i] for i in range(len(self.W))])


class Propagation(Copies):
    """Equation 6."""

    protocol = "answer, then solve"

    def __init__(self, problem, start, mu):
        super().__init__(problem, start)
        self.alpha = 1 / (1 + mu)

    def solve(self, i):
        a, c, W = self.alpha, self.c[i], self.W[i]
        mean = sum(W[k] * self.Theta[i, int(k)] for k in np.flatnonzero(W)) / W.sum()
        self.Theta[i, i] = (a * mean + (1 - a) * c * self.solitary[i]) / (a + (1 - a) * c)


class Relaxation(Copies):
    """djam: argmin D‖θ − v‖² + μ D (L_i(θ) + r‖θ‖²) by the oracles' own solvers."""

    protocol = "answer, then solve"

    def __init__(self, problem, algorithm):
        super().__init__(problem, algorithm.start)
        self.problem, self.mu = problem, getattr(algorithm, "trade_off", None)
        self.ridge = getattr(algorithm, "ridge", None)

    def data(self, i):
        X, y = self.problem.data[i]
        return np.ones((len(y), 1)) if X is None else X, y

    def mean(self, i):
        W = self.W[i]
        return sum(W[k] / W.sum() * self.Theta[i, int(k)] for k in np.flatnonzero(W))

    def solve(self, i):
        D, (X, y) = self.W[i].sum(), self.data(i)
        H = 2 * D * (1 + self.mu * self.ridge) * np.eye(self.problem.p)
        solver = oracles.SOLVERS[self.problem.loss.kind]
        self.Theta[i, i] = solver(H, 2 * D * self.mean(i), X, y, self.mu * D)

    def gradient(self, i, theta):
        """∇L_i."""
        X, y = self.data(i)
        s = X @ theta
        slopes = {
            "quadratic": lambda: 2 * (s - y),
            "logistic": lambda: -y / (1 + np.exp(y * s)),
        }
        return X.T @ slopes[self.problem.loss.kind]()


class Descent(Relaxation):
    """cd: (1 − a) θ + a (v − (μ/2) ∇), where ∇ and ℓ are those of L_i + r‖θ‖²."""

    protocol = "tell"

    def solve(self, i):
        X, _ = self.data(i)
        bend = {"quadratic": 2.0, "logistic": 0.25}[self.problem.loss.kind]
        ell = bend * np.linalg.eigvalsh(X.T @ X).max(initial=0.0) + 2 * self.ridge
        a, theta = 1 / (1 + self.mu / 2 * ell), self.Theta[i, i]
        gradient = self.gradient(i, theta) + 2 * self.ridge * theta
        self.Theta[i, i] = (1 - a) * theta + a * (self.mean(i) - self.mu / 2 * gradient)


class Averaging(Relaxation):
    """dpsgd: Σ_j M_ij θ_j − γ (∇L_i + (λ/n) θ_i), M of Metropolis."""

    def __init__(self, problem, algorithm, penalty):
        super().__init__(problem, algorithm)
        degrees = np.count_nonzero(self.W, axis=1)
        self.M = (self.W > 0) / (1.0 + np.maximum.outer(degrees, degrees))
        self.M += np.diag(1 - self.M.sum(axis=1))
        self.step, self.decay = algorithm.step, penalty / problem.n

    def solve(self, i):
        mixed = sum(self.M[i, k] * self.Theta[i, int(k)] for k in np.flatnonzero(self.M[i]))
        gradient = self.gradient(i, self.Theta[i, i]) + self.decay * self.Theta[i, i]
        self.Theta[i, i] = mixed - self.step * gradient


class Pairs(Averaging):
    """adpsgd: both ends take the mean of two models; who asked then steps, from where it was."""

    protocol = "average"

    def __init__(self, problem, algorithm, penalty):
        super().__init__(problem, algorithm, penalty)
        self.before = {}

    def absorb(self, i, j, received, sent):
        self.before[i] = self.Theta[i, i]
        self.Theta[i, i] = (self.Theta[i, i] + received) / 2

    def solve(self, i):
        gradient = self.gradient(i, self.before[i]) + self.decay * self.before[i]
        self.Theta[i, i] = self.Theta[i, i] - self.step * gradient


class Drifting(Copies):
    """The rule of test_oracle_network.py: θ ← θ + u (½ solitary + ½ mean of copies − θ)."""

    protocol = "tell"

    def __init__(self, problem, start, rng):
        super().__init__(problem, start)
        self.rng = rng

    def tell(self, i, j):
        return self.Theta[i, i] + 0.01 * self.rng.random()

    def solve(self, i):
        mean = np.mean([self.Theta[i, int(k)] for k in np.flatnonzero(self.W[i])], axis=0)
        aim = (self.solitary[i] + mean) / 2
        self.Theta[i, i] = self.Theta[i, i] + self.rng.random() * (aim - self.Theta[i, i])


class Collaboration(oracles.ADMM):
    """Section 4.2 with messages: a payload is Θ̃_i^i, Θ̃_i^j, Λ_ei^i, Λ_ei^j."""

    protocol = "solve, then answer"

    def __init__(self, problem, start, mu, rho, steps=0):
        super().__init__(problem, mu, rho, "own" if start == "hello" else start)
        self.steps, self.start = steps, start
        if start == "zero":
            for i in range(problem.n):
                self.Theta[i, i] = np.zeros(problem.p)

    def solve(self, i):
        if self.steps:
            self._descend(i)
        else:
            self.primal(i)

    def _descend(self, i):
        """(Sub)gradient steps on the primal problem, from which the neighbours' part is eliminated.

        Minimised over θ_j, the terms of link (i, j) are (κ/2)‖θ − u‖², κ = Wρ/(W + ρ).
        """
        W, rho, theta = self.W[i], self.rho[i], self.Theta[i, i]
        points = []  # (weight, centre) of the quadratic terms
        u = {}
        for j in self.neighbours[i]:
            u[j] = self.Z[i, j, j] - self.Lambda[i, j, j] / rho[j]
            points.append((W[j] * rho[j] / (W[j] + rho[j]), u[j]))
            points.append((rho[j], self.Z[i, j, i] - self.Lambda[i, j, i] / rho[j]))
        X, y = self.problem.data[i]
        b, a = self.mu * W.sum(), sum(weight for weight, _ in points)
        kind = self.problem.loss.kind
        for k in range(self.steps):
            s = X @ theta
            # At a kink the slope is 0; whatever is as near as rounding may bring it is on it.
            slopes = {
                "hinge": lambda s=s: np.where(y * s < 1 - 1e-9, -y, 0.0),
                "absolute": lambda s=s: np.where(
                    np.abs(s - y) <= 1e-9 * (1 + np.abs(y)), 0.0, np.sign(s - y)
                ),
            }[kind]()
            gradient = sum(weight * (theta - centre) for weight, centre in points)
            theta = theta - 2 / (a * (k + 2)) * (gradient + b * X.T @ slopes)
        self.Theta[i, i] = theta
        for j in self.neighbours[i]:
            self.Theta[i, j] = (W[j] * theta + rho[j] * u[j]) / (W[j] + rho[j])

    def tell(self, i, j):
        own, other = self.Theta[i, i], self.Theta[i, j]
        return np.array([own, other, self.Lambda[i, j, i], self.Lambda[i, j, j]])

    def absorb(self, i, j, received, sent):
        theirs = {j: received[0], i: received[1]}, {j: received[2], i: received[3]}
        mine = {i: sent[0], j: sent[1]}, {i: sent[2], j: sent[3]}
        for k in (i, j):
            Z = ((mine[1][k] + theirs[1][k]) / self.rho[i, j] + mine[0][k] + theirs[0][k]) / 2
            self.Z[i, j, k] = Z
            self.Lambda[i, j, k] = mine[1][k] + self.rho[i, j] * (mine[0][k] - Z)

    def introduce(self, i, j, model):
        self.Z[i, j, j] = model

    def forget(self, i):
        """Back to the start, for which neighbours are taken to agree with the agent."""
        own = 0 * self.Theta[i, i] if self.start == "zero" else self.problem.solitary[i]
        self.Theta[i, i] = own
        for j in self.neighbours[i]:
            for k in (i, j):
                self.Z[i, j, k], self.Lambda[i, j, k] = own, 0 * own


# --- laws -----------------------------------------------------------------------------------------
def draw(law, rng):
    """One number of a scenario's law."""
    if law.kind == "constant":
        return float(law.value)
    if law.kind == "uniform":
        return rng.uniform(law.low, law.high)
    if law.kind == "exponential":
        return rng.exponential(law.mean)
    if law.kind == "lognormal":
        return rng.lognormal(math.log(law.mean) - law.sigma**2 / 2, law.sigma)
    if law.kind == "pareto":
        return (1 + rng.pareto(law.shape)) * (law.mean * (law.shape - 1) / law.shape)
    raise NotImplementedError(law.kind)


# --- the run --------------------------------------------------------------------------------------
class Simulation:
    """A run as sections 2 to 4 describe it; ``rows`` has its samples, ``rule`` its models."""

    def __init__(self, scenario, problem, streams, rule):
        self.scenario, self.streams, self.rule = scenario, streams, rule
        self.network, self.n = scenario.network, problem.n
        self.W = problem.W.toarray()
        self.N = [[int(j) for j in np.flatnonzero(row)] for row in self.W]
        self.links = [(i, j) for i in range(self.n) for j in self.N[i]]
        self._draw_factors()
        self.now, self.queue, self.scheduled = 0.0, [], 0
        self.sent = self.delivered = self.dropped = self.stale = self.skipped = self.bytes = 0
        self.missed = 0
        # Who is on; what each computes until when; in rounds, who waits for its return to begin,
        # and which messages wait until they can pass.
        self.on, self.job = [True] * self.n, [None] * self.n
        self.waiting, self.held = set(), {}
        self.uplink_free = [0.0] * self.n
        self.last_arrival = dict.fromkeys(self.links, 0.0)
        self.weather = {}  # the last state of a link, and when
        self.copy_of = dict.fromkeys(self.links, 0.0)  # when the copy held was sent
        self.busy, self.mailbox = [False] * self.n, [[] for _ in range(self.n)]
        self.sends, self.heard = [0] * self.n, dict.fromkeys(self.links, 0)
        self.version = dict.fromkeys(self.links, 0)
        self.rows = []

    def _draw_factors(self):
        rng, latency, compute = self.streams.rates, self.network.latency, self.scenario.compute.time
        ones = SimpleNamespace(kind="constant", value=1.0)
        self.rate = [draw(self.scenario.clock.rate, rng) for _ in range(self.n)]
        self.agent_factor = [draw(latency.per_agent or ones, rng) for _ in range(self.n)]
        self.compute_factor = [draw(compute.per_agent or ones, rng) for _ in range(self.n)]
        self.link_factor = {}
        for i, j in self.links:
            if i < j:
                factor = draw(latency.per_link or ones, rng)
                self.link_factor[i, j] = self.link_factor[j, i] = factor

    # --- events -----------------------------------------------------------------------------------
    def at(self, time, what, *args):
        heapq.heappush(self.queue, (time, self.scheduled, what, args))
        self.scheduled += 1

    def run(self):
        """All events up to the end; a sample at every multiple of record.every, and at the end."""
        stop, every = self.scenario.stop, self.scenario.record.every
        end = math.inf if stop.time is None else stop.time
        limit = stop.communications or math.inf
        synchronous = self.scenario.algorithm.mode == "sync"
        self.over = False
        if synchronous:
            self.limit = limit
            self._open_barrier()
        else:
            for i in range(self.n):
                self.at(0.0, self._start, i)
        self._sample(0.0)
        samples = 1
        while not self.over:
            time = self.queue[0][0] if self.queue else math.inf
            while samples * every < min(time, end):
                self._sample(samples * every)
                samples += 1
            if time > end:
                self.now = end
                break
            self.now, _, what, args = heapq.heappop(self.queue)
            what(*args)
            self.over = self.over or (not synchronous and self.sent >= limit)
        self._sample(self.now)
        return self

    def _sample(self, time):
        in_flight = sum(what == self._arrive for _, _, what, _ in self.queue)
        row = {"time": time, "communications": self.sent, "delivered": self.delivered}
        row |= {"dropped": self.dropped, "missed": self.missed, "in_flight": in_flight}
        row["stale"] = self.stale
        row |= {"skipped": self.skipped, "bytes": self.bytes}
        row["staleness"] = time - sum(self.copy_of.values()) / len(self.copy_of)
        self.rows.append(row)

    # --- the network ------------------------------------------------------------------------------
    def send(self, message):
        """Put a message on its way; when it leaves the uplink."""
        i, j = message.sender, message.receiver
        departure, size = self.now, self.network.header + 8 * np.size(message.payload)
        if self.network.bandwidth is not None:
            departure = max(self.now, self.uplink_free[i]) + size / self.network.bandwidth
            self.uplink_free[i] = departure
        self.sent += 1
        self.bytes += size
        lost = self._lost(i, j)
        latency = draw(self.network.latency, self.streams.latency)
        if lost or self.parted(i, j):
            self.dropped += 1
            return departure
        arrival = departure + (latency * self.agent_factor[i]) * self.link_factor[i, j]
        if self.network.fifo:
            arrival = self.last_arrival[i, j] = max(arrival, self.last_arrival[i, j])
        self.at(arrival, self._arrive, message)
        return departure

    def _lost(self, i, j):
        drop, rng = self.network.drop, self.streams.loss
        if drop.kind == "rate":
            return rng.random() < drop.rate
        to_bad, to_good = 1 / drop.mean_good, 1 / drop.mean_bad
        share = to_bad / (to_bad + to_good)
        chance = share
        if (i, j) in self.weather:
            was_bad, then = self.weather[i, j]
            memory = math.exp(-(to_bad + to_good) * (self.now - then))
            chance = share + (was_bad - share) * memory
        bad = rng.random() < chance
        self.weather[i, j] = bad, self.now
        return rng.random() < (drop.drop_bad if bad else drop.drop_good)

    def parted(self, i, j):
        """Is what is sent between two agents now lost, whatever its luck?"""
        return False

    def _arrive(self, message):
        if not self.on[message.receiver]:
            self.missed += 1
            return
        self.delivered += 1
        if message.kind == "round":
            self._collect(message)
        elif self.busy[message.receiver]:
            self.mailbox[message.receiver].append(message)
        else:
            self._handle(message)

    # --- gossip -----------------------------------------------------------------------------------
    def _start(self, i):
        if self.on[i]:
            self.say_hello(i)
        self._wind(i)

    def say_hello(self, i):
        if self.scenario.algorithm.start == "hello":
            for j in self.N[i]:
                self._tell("hello", i, j, self.rule.models()[i])

    def _wind(self, i):
        gap = self.streams.clock.standard_exponential()
        self.at(self.now + gap / self.rate[i], self._tick, i)

    def _tick(self, i):
        u = self.streams.peers.random()
        if not self.on[i] or (self.N[i] and self.busy[i]):
            self.skipped += 1
        elif self.N[i]:
            j = self._peer(i, u)
            if self.rule.protocol in ("answer, then solve", "average"):
                self._tell("request", i, j, self.rule.tell(i, j))
            elif self.rule.protocol == "solve, then answer":
                self._compute(
                    i, lambda: self._tell("request", i, j, self.rule.tell(i, j), self.version[i, j])
                )
            else:
                self._compute(i, lambda: self._tell_all(i))
        self._wind(i)

    def _peer(self, i, u):
        N = self.N[i]
        if self.scenario.clock.peers == "uniform":
            return N[int(u * len(N))]
        share = np.cumsum(self.W[i, N])
        return N[int(np.count_nonzero(share <= u * share[-1]))]

    def _tell_all(self, i):
        for j in self.N[i]:
            self._tell("request", i, j, self.rule.tell(i, j))

    def _tell(self, kind, i, j, payload, number=0, asked=None):
        if self.rule.protocol != "solve, then answer":
            self.sends[i] += 1
            number = self.sends[i]
        message = SimpleNamespace(kind=kind, sender=i, receiver=j, payload=payload, number=number)
        message.sent_at, message.asked = self.now, asked
        self.send(message)

    def _compute(self, i, then):
        """Solve, then do what follows; busy meanwhile if that takes time."""
        time = draw(self.scenario.compute.time, self.streams.compute) * self.compute_factor[i]

        def done():
            self.busy[i] = False
            self.rule.solve(i)
            then()
            while self.mailbox[i] and not self.busy[i]:
                self._handle(self.mailbox[i].pop(0))

        if time == 0:
            self.rule.solve(i)
            then()
        else:
            self.busy[i] = True
            self.after(i, time, done)

    def after(self, i, time, done):
        """Agent i does something after computing for so long, unless that is interrupted."""
        job = self.job[i] = SimpleNamespace(end=self.now + time, done=done)

        def end():
            if self.job[i] is job:
                self.job[i] = None
                done()

        self.at(job.end, end)

    def _handle(self, message):
        if self.rule.protocol == "solve, then answer":
            self._handle_versions(message)
        else:
            self._handle_numbers(message)

    def _handle_numbers(self, message):
        i, j = message.receiver, message.sender
        fresh = message.number > self.heard[i, j]
        if fresh:
            self.heard[i, j], self.copy_of[i, j] = message.number, message.sent_at
        else:
            self.stale += 1
        if message.kind == "request" and self.rule.protocol != "tell":
            self._tell("reply", i, j, self.rule.tell(i, j))
        if fresh and message.kind == "hello":
            self.rule.introduce(i, j, message.payload)
        elif fresh:
            self.rule.absorb(i, j, message.payload, None)
            averages = self.rule.protocol == "average" and message.kind == "reply"
            if averages or self.rule.protocol == "answer, then solve":
                self._compute(i, lambda: None)

    def _handle_versions(self, message):
        i, j = message.receiver, message.sender

        def absorb(own):
            self.rule.absorb(i, j, message.payload, own)
            self.version[i, j] += 1
            self.copy_of[i, j] = message.sent_at

        def answer():
            own = self.rule.tell(i, j)
            absorb(own)
            self._tell("reply", i, j, own, message.number, asked=message.payload)

        if message.kind == "request":
            self._compute(i, answer)
        elif message.number != self.version[i, j]:
            self.stale += 1
        elif message.kind == "hello":
            self.rule.introduce(i, j, message.payload)
            self.copy_of[i, j] = message.sent_at
        else:
            absorb(message.asked)

    # --- rounds -----------------------------------------------------------------------------------
    def _open_barrier(self):
        self.unfinished, self.complete = set(range(self.n)), set()
        self.inbox, self.outbox = [{} for _ in range(self.n)], [None] * self.n
        for i in range(self.n):
            self.at(self.now, self._begin, i)

    def _begin(self, i):
        if not self.N[i]:
            self._finished(i)
        elif not self.on[i]:
            self.waiting.add(i)
        elif self.rule.protocol == "solve, then answer":
            self._work(i, self._send_to_all)
        else:
            self._send_to_all(i)

    def _work(self, i, then):
        time = draw(self.scenario.compute.time, self.streams.compute) * self.compute_factor[i]

        def done():
            self.rule.solve(i)
            then(i)

        if time == 0:
            done()
        else:
            self.after(i, time, done)

    def _send_to_all(self, i):
        self.outbox[i] = {j: self.rule.tell(i, j) for j in self.N[i]}
        for j in self.N[i]:
            message = SimpleNamespace(kind="round", sender=i, receiver=j, arrived=False)
            message.payload, message.sent_at = self.outbox[i][j], self.now
            self._attempt(message)
        self._absorb_if_ready(i)

    def _attempt(self, message):
        departure = self.send(message)
        if self.network.retransmit_after != "never":
            self.at(departure + self.network.retransmit_after, self._due, message)

    def _due(self, message):
        if not message.arrived and self.passes(message.sender, message.receiver):
            self._attempt(message)
        elif not message.arrived:
            self.held[message.sender, message.receiver] = message

    def passes(self, i, j):
        return self.on[i] and self.on[j] and not self.parted(i, j)

    def retry(self, links):
        """What was held up on these links goes on, where it can pass."""
        for i, j in sorted(links):
            if (i, j) in self.held and self.passes(i, j):
                self._due(self.held.pop((i, j)))

    def _collect(self, message):
        if message.arrived:
            self.stale += 1
            return
        message.arrived = True
        i = message.receiver
        self.inbox[i][message.sender] = message
        if len(self.inbox[i]) == len(self.N[i]):
            # An event of its own: what else arrives at this instant comes before the round's end.
            self.at(self.now, self._complete, i)

    def _complete(self, i):
        self.complete.add(i)
        self._absorb_if_ready(i)

    def _absorb_if_ready(self, i):
        if self.outbox[i] is None or i not in self.complete:
            return
        for j, message in self.inbox[i].items():
            self.rule.absorb(i, j, message.payload, self.outbox[i][j])
            self.copy_of[i, j] = message.sent_at
        if self.rule.protocol == "solve, then answer":
            self._finished(i)
        else:
            self._work(i, self._finished)

    def _finished(self, i):
        self.unfinished.remove(i)
        if not self.unfinished:
            self.over = self.sent >= self.limit
            if not self.over:
                self._open_barrier()
