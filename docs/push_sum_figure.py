"""What loss does to push-sum, for docs/extending.md: ``python docs/push_sum_figure.py``, minutes.

1,000 agents, who know 10 others each, or one of them hundreds; 60 runs of one problem each loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from simulator import load_scenario
from simulator.engines.setup import prepare
from simulator.figures.style import Look
from simulator.problem.build import build_problem
from simulator.runs.plugins import load_plugins
from simulator.runs.simulation import start_engine
from simulator.seeds import Streams

HERE = Path(__file__).parent
IMAGE = HERE / "images" / "push_sum.png"
LOSSES, RUNS, SECONDS = (0.01, 0.03, 0.1, 0.3), 60, 60
GRAPHS: dict[str, dict[str, Any]] = {
    "10 neighbours each": {"generator": "random_regular_graph", "arguments": {"d": 10, "seed": 1}},
    "few have many": {"generator": "barabasi_albert_graph", "arguments": {"m": 5, "seed": 1}},
}


def main() -> None:
    """Print the table in Markdown, and draw the picture."""
    figure = Figure(figsize=(6.8, 3.2), layout="constrained")
    theory = np.geomspace(LOSSES[0], LOSSES[-1])
    with rc_context(Look().style):
        spreads, biases = figure.subplots(1, 2, sharex=True)
        spreads.plot(100 * theory, _theory(theory, 1000), "k:", label="theory, complete graph")
        biases.axhline(0, color="k", linestyle=":")
        for number, (name, graph) in enumerate(GRAPHS.items()):
            errors = np.array([_errors(graph, loss) for loss in LOSSES])
            spread, bias = errors.std(axis=1, ddof=1), errors.mean(axis=1)
            print(
                name, *(f"{b:+.4f} ± {s:.4f}" for b, s in zip(bias, spread, strict=True)), sep=" | "
            )
            at = 100 * np.array(LOSSES)
            spreads.errorbar(at, spread, 1.96 * spread / np.sqrt(2 * RUNS), fmt="o", label=name)
            shifted = at * (1 + 0.06 * (2 * number - 1))
            biases.errorbar(shifted, bias, 1.96 * spread / np.sqrt(RUNS), fmt="o")
        spreads.set(xscale="log", yscale="log", ylabel="spread of the estimate / σ")
        biases.set(ylabel="bias of the estimate / σ")
        for axis in (spreads, biases):
            axis.set(xlabel="messages lost (%)", xticks=100 * np.array(LOSSES))
            axis.set_xticklabels([f"{100 * loss:g}" for loss in LOSSES])
            axis.minorticks_off()
        figure.legend(*spreads.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(IMAGE, dpi=150)


def _theory(loss: Any, agents: int) -> Any:
    """σ √(q/(n (2 − 3q))), which tests/engines/test_push_sum.py derives, over σ."""
    return np.sqrt(loss / (agents * (2 - 3 * loss)))


def _errors(graph: dict[str, Any], loss: float) -> list[float]:
    """What agents agree on in each run, less the mean of the solitary models, over their spread."""
    file = HERE / "examples" / "push_sum.yaml"
    changes = {f"graph.{key}": value for key, value in graph.items()}
    changes |= {"network.latency": 0, "network.drop": loss, "stop.time": SECONDS}
    scenario = load_scenario(file, changes, plugins=load_plugins(file.with_suffix(".py")))
    problem = build_problem(scenario, Streams(scenario.seed))
    known, found = problem.solitary, []
    for seed in range(RUNS):
        assert scenario.algorithm.rule is not None
        setup = prepare(scenario, problem, Streams(seed, 0), scenario.algorithm.rule)
        engine = start_engine(setup, None)
        engine.advance(SECONDS, None)
        found.append(float((engine.models.mean() - known.mean()) / known.std()))
    return found


if __name__ == "__main__":
    main()
