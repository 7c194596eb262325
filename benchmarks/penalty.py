"""ADMM's penalty ρ, and the dual variables of its warm start (docs/choosing_rho.md).

    python benchmarks/penalty.py            # ten minutes or so
    python benchmarks/penalty.py --duals    # the warm start instead
    python benchmarks/penalty.py --quick    # two tasks, one seed

Of each task: Q_CL's gap to the optimum after 200 messages an agent, as a share of the solitary
models' gap, and the messages an agent sends until it is 0.1 %.  Geometric means over seeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agents.losses.loss import design
from agents.rule import Start
from agents.rules import admm
from simulator.engines.setup import prepare
from simulator.problem.build import build_problem
from simulator.runs.scenarios import load_scenario
from simulator.runs.simulation import start_engine
from simulator.seeds import Streams
from simulator.theory.objectives import Collaboration

ROOT = Path(__file__).resolve().parent.parent
LINEAR = {"task.agents": 40, "task.dimension": 10, "graph.allow_disconnected": True}
MEANS = {"task.agents": 60, "algorithm.alpha": None, "algorithm.mu": 0.01}
KNN = {"graph.k": 5, "graph.allow_disconnected": True}
#: Name → file and changes.
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear_classification, hinge": ("linear_classification", LINEAR),
    "…, logistic": ("linear_classification", {**LINEAR, "task.loss": "logistic"}),
    "…, logistic, μ = 1": (
        "linear_classification",
        {**LINEAR, "task.loss": "logistic", "algorithm.mu": 1.0},
    ),
    "…, quadratic": ("linear_classification", {**LINEAR, "task.loss": "quadratic"}),
    "…, absolute": ("linear_classification", {**LINEAR, "task.loss": "absolute"}),
    "moons, all pairs, μ = 0.01": ("moons", MEANS),
    "moons, nearest, μ = 0.01": ("moons_knn", {**MEANS, **KNN}),
    "moons, nearest, μ = 0.0001": ("moons_knn", {**MEANS, **KNN, "algorithm.mu": 1e-4}),
    "stations": ("stations", {}),
    "radon": ("radon", {}),
    "radon, absolute": ("radon", {"task.loss": "absolute"}),
    "states": ("states", {}),
}
NUMBERS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SHARES = (0.25, 0.5, 1.0)
#: The gap to reach, when it is looked at first (100 ticks of an agent), and how long a run may be.
TARGET, LOOK, STEP, LONGEST = 1e-3, 100.0, 5.0, 1000.0
#: The warm start: its α, when the gap is looked at, and the ways to choose Λ.
ALPHA, WARM = 0.7, (1.0, 5.0, 20.0, 100.0)
DUALS = ("zero", "smoothing", "at rest")


class Warm(admm.CollaborativeADMM):
    """ADMM whose first dual variables are not 0.

    smoothing: Λ_ei^i = Λ_ei^j = W_ij (θ_i − Θ̃_i^j), with which the copies are stationary in the
    augmented Lagrangian, and Λ_ei^i + Λ_ej^i = 0 where copies are what they are copies of.
    at rest: Λ_ei^i is less by W_ij/D_ii times the gradient of Q_CL by θ_i, so that the model is
    stationary too.
    """

    duals = "smoothing"

    def prepare(s: Any, start: Start) -> None:  # noqa: N805
        """As admm, and then Λ."""
        admm.CollaborativeADMM.prepare(s, start)
        degrees, models = np.diff(start.first), start.models
        W, D = start.W[:, None], np.maximum(start.D, 1e-300)[:, None]
        smoothing = W * (np.repeat(models, degrees, axis=0) - start.copies)
        own = smoothing
        if Warm.duals == "at rest":
            owner = np.repeat(np.arange(len(models)), np.diff(start.offsets))
            points = design(start.X, start.y)
            slopes = start.loss.slopes(np.einsum("kp,kp->k", points, models[owner]), start.y)
            slope = 2.0 * start.sum_over_links(smoothing) / D
            np.add.at(slope, owner, start.mu * slopes[:, None] * points)
            own = smoothing - W * np.repeat(slope, degrees, axis=0)
        s.link[:, admm.DUAL_I], s.link[:, admm.DUAL_J] = own, smoothing


class Case:
    """A task with one seed: its problem, optimum and runs."""

    def __init__(self, name: str, seed: int):
        file, changes = TASKS[name]
        self.path, self.seed = ROOT / "scenarios" / f"{file}.yaml", seed
        self.changes = {**changes, "algorithm.kind": "admm", "engine": "compiled", "seed": seed}
        self.changes |= {"stop.time": 2 * LONGEST, "record.every": None}
        scenario = self.scenario(1.0)
        self.problem = build_problem(scenario, Streams(seed))
        self.objective = Collaboration(self.problem, scenario.algorithm.trade_off)
        self.least = self.objective(self.objective.minimiser())
        self.scale = self.objective(self.problem.solitary) - self.least

    def scenario(self, rho: Any, **more: Any) -> Any:
        """The task by admm, with other keys of ``algorithm``."""
        changes = {**self.changes, "algorithm.rho": rho}
        changes |= {f"algorithm.{key}": value for key, value in more.items()}
        return load_scenario(self.path, changes)

    def engine(self, rho: Any, rule: Any = admm.CollaborativeADMM, **more: Any) -> Any:
        """A run before its first event."""
        setup = prepare(self.scenario(rho, **more), self.problem, Streams(self.seed), rule)
        return start_engine(setup, None)

    def gap(self, engine: Any) -> float:
        """Of the models as they are, as a share of the solitary models'."""
        return max((self.objective(engine.models) - self.least) / self.scale, 1e-13)

    def speed(self, rho: Any) -> tuple[float, float]:
        """The gap after 200 messages an agent, and the messages an agent needs to 0.1 %."""
        engine, reached, then, time = self.engine(rho), np.inf, np.nan, 0.0
        while np.isnan(then) or (reached == np.inf and time < LONGEST):
            time += STEP
            engine.advance(time, None)
            gap = self.gap(engine)
            if time == LOOK:
                then = gap
            if gap <= TARGET and reached == np.inf:
                reached = engine.counters()["communications"] / self.problem.n
        return then, reached

    def drop(self, duals: str) -> list[float]:
        """The gap at several times of a run from the optimum of model propagation."""
        Warm.duals = duals
        rule = admm.CollaborativeADMM if duals == "zero" else Warm
        engine, gaps = self.engine("auto", rule, start={"kind": "mp", "alpha": ALPHA}), []
        for time in (1e-9, *WARM):
            engine.advance(time, None)
            gaps.append(self.gap(engine))
        return gaps


def table(head: str, columns: list[str], rows: dict[str, list[float]], form: str) -> None:
    """As Markdown."""
    print(f"\n| {head} | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for name, values in rows.items():
        texts = (f"{value:{form}}" if np.isfinite(value) else "–" for value in values)
        print(f"| {name} | {' | '.join(texts)} |")


def mean(values: Any) -> list[float]:
    """The geometric mean over the first axis."""
    return np.exp(np.log(values).mean(axis=0)).tolist()


def penalties(tasks: dict[str, list[Case]]) -> None:
    """Numbers and shares of the weights."""
    gaps, messages = {}, {}
    for name, cases in tasks.items():
        found, usual = [], admm.SHARE
        for admm.SHARE in SHARES:
            found.append([case.speed("auto") for case in cases])
        admm.SHARE = usual
        found += [[case.speed(rho) for case in cases] for rho in NUMBERS]
        gaps[name], messages[name] = np.array([mean(each) for each in found]).T.tolist()
    columns = ["W/4", "W/2", "W", *(f"{rho:g}" for rho in NUMBERS)]
    table("gap after 200 messages an agent, ρ =", columns, gaps, ".1e")
    table("messages an agent to 0.1 %, ρ =", columns, messages, ".0f")


def duals(tasks: dict[str, list[Case]]) -> None:
    """Zero, those of the smoothing, and those that keep the start at rest."""
    columns = ["start", *(f"{time:g} s" for time in WARM)]
    for way in DUALS:
        rows = {name: mean([case.drop(way) for case in cases]) for name, cases in tasks.items()}
        table(f"gap from `mp`, Λ: {way}", columns, rows, ".1e")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--duals", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="the first of three")
    chosen = parser.parse_args()
    names, count = (list(TASKS)[5:7], 1) if chosen.quick else (list(TASKS), 3)
    seeds = range(chosen.seed, chosen.seed + count)
    tasks = {name: [Case(name, seed) for seed in seeds] for name in names}
    (duals if chosen.duals else penalties)(tasks)


if __name__ == "__main__":
    main()
