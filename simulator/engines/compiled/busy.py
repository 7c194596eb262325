"""Being busy: an agent computes for a while, which pauses while it is off."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.draws import COMPUTE, draw
from simulator.engines.compiled.presence import life_of
from simulator.engines.compiled.queue import COMPUTED, push
from simulator.engines.compiled.world import NOBODY, agent_of


@kernel
def compute(run: Any, i: int, job: int) -> bool:
    """Be busy for one solve with a job; True if that takes no time and it is to be finished now."""
    agent = agent_of(run, i)
    agent.job = job
    duration = draw(run, COMPUTE) * agent.compute_factor
    if duration == 0.0:
        return True
    agent.busy = True
    end_in(run, i, duration)
    return False


@kernel
def end_in(run: Any, i: int, duration: float) -> None:
    """Finish after so long, unless the agent is switched off before."""
    index = i
    if run.living:
        life = life_of(run, i)
        life.due = run.now + duration
        index += run.n * life.pauses
    push(run, run.now + duration, COMPUTED, index)


@kernel
def pause(run: Any, i: int) -> None:
    """Agent i stops for the time being, if it is computing."""
    if agent_of(run, i).busy:
        life = life_of(run, i)
        life.pauses += 1
        life.left = life.due - run.now


@kernel
def go_on(run: Any, i: int) -> None:
    """Agent i takes up what it was computing, if anything."""
    if agent_of(run, i).busy:
        end_in(run, i, life_of(run, i).left)


@kernel
def end(run: Any, index: int) -> int:
    """Who has finished computing with this event: NOBODY, if it was interrupted meanwhile."""
    i = index
    if run.living:
        i = index % run.n
        if index // run.n != life_of(run, i).pauses:
            return NOBODY
    agent_of(run, i).busy = False
    return i
