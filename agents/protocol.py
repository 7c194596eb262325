"""A protocol: when a rule's functions are called, and who sends what to whom.

A protocol is a class of functions over the world ``w``, an agent i and one of its links or a
message, made of the *verbs* below.  It is written once: the SimPy engine calls it as it stands,
over objects; the compiled engine puts a verb of the same name in the place of each, and there a
message is a number.  ``agents.protocols`` has the built-in ones, one a file.

``tick(w, i, u)``
    the clock rang, the agent is free and has links; u in [0, 1) is there to choose one;
``handle(w, i, m)``
    the agent is free and turns to a message that is no hello;
``after_tick(w, i, k)``, ``after(w, i, m)``
    what ``compute_tick`` and ``compute`` began is done; m is nothing if it was answered before.

A function does at most one of ``compute``, ``compute_tick``, ``wait`` and ``end_round``, and that
last; it acts on i, i's links and the message at hand alone; it answers requests only, once, and
absorbs a reply, or any message under send numbers, only if ``fresh`` has accepted it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from agents.messages import REPLY, REQUEST, ROUND, Message
from agents.rule import Array

#: One message a link: the most that one event sends.
ALL = -1


class Protocol:
    """Base class of all protocols; see the module's text."""

    kind: ClassVar[str]
    #: Do messages carry versions of links, which a reply echoes, instead of send numbers?
    versioned: ClassVar[bool] = False
    #: Does absorbing change the model?
    averages: ClassVar[bool] = False
    #: May a tick be about all neighbours (``clock.peers: all``)?  By default it then is.
    tells_all: ClassVar[bool] = False
    #: The most messages that one event sends: a number, or ALL.
    most_sends: ClassVar[int] = 1
    #: What an agent does in rounds; None: it has none.
    rounds: ClassVar[type[Rounds] | None] = None
    #: What it remembers of agents and links, ``w.name[…]``: 0 at first, and after forgetting.
    arrays: ClassVar[dict[str, Array]] = {}

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Array)}
        cls.arrays = {**cls.arrays, **own}

    def tick(w: Any, i: int, u: float) -> None:
        """Agent i's clock rang."""

    def handle(w: Any, i: int, m: Any) -> None:
        """Agent i turns to a message."""

    def after_tick(w: Any, i: int, k: int) -> None:
        """Agent i has computed after a tick."""

    def after(w: Any, i: int, m: Any) -> None:
        """Agent i has computed after a message."""


class Rounds:
    """What an agent does in a round: the base of all.

    ``begin`` is called when the barrier opens, ``hear`` when a neighbour's message that counts in
    this round has come for the first time, or had come before it began, ``ring`` at an ``alarm``,
    ``complete`` once the agent waits and has been woken, ``after_tick`` when it has computed.
    """

    #: Is what is sent computed in the same round, so that nothing is known before it?
    solves_first: ClassVar[bool] = False

    def begin(w: Any, i: int) -> None:
        """The barrier is open."""

    def hear(w: Any, i: int, k: int) -> None:
        """What counts has come on link k: wait for as many as are needed."""
        if arrived(w, i) == needed(w, i):
            wake(w, i)

    def ring(w: Any, i: int) -> None:
        """The alarm that was set in this round: wait no longer."""
        wake(w, i)

    def complete(w: Any, i: int) -> None:
        """What was waited for is there."""

    def after_tick(w: Any, i: int, k: int) -> None:
        """What ``compute_tick`` began is done."""


# --- looking --------------------------------------------------------------------------------------
def links(w: Any, i: int) -> Any:
    """The links of agent i, ascending."""
    return w.agents[i].edges


def choose(w: Any, i: int, u: float) -> Any:
    """The link that u in [0, 1) picks: uniformly, by weight, or the next in turn."""
    return w.agents[i].choose(u)


def peers(w: Any, i: int, k: int) -> Any:
    """The links that a tick is about, which chose k: k alone, or all of agent i's."""
    edges = w.agents[i].edges
    return edges if w.agents[i].to_all else range(k, k + 1)


def is_request(w: Any, m: Any) -> bool:
    """Was the message sent unasked?"""
    return bool(m.kind == REQUEST)


def is_reply(w: Any, m: Any) -> bool:
    """Does the message answer one?"""
    return bool(m.kind == REPLY)


def link(w: Any, m: Any) -> Any:
    """The receiver's link on which the message came."""
    return m.link


def random(w: Any) -> float:
    """A number in [0, 1) from the stream ``rule``."""
    return float(w.random())


def fresh(w: Any, i: int, m: Any) -> bool:
    """Is the message not outdated?  Then it counts as heard; if not, as stale.

    It is newer than all heard on its link; or of the link's present version.
    """
    agent = w.agents[i]
    place = m.link - agent.edges.start
    if agent.versioned:
        new = m.number == agent.marks[place]
    else:
        new = m.number > agent.marks[place]
        if new:
            agent.marks[place] = m.number
    if not new:
        w.stale(m)
    return new


def run_of(w: Any) -> Any:
    """What verbs act on, of the world that a protocol from outside sees."""
    return w


def owns(w: Any, i: int, k: int) -> bool:
    """Is k one of agent i's links?"""
    return k in w.agents[i].edges


def is_nothing(w: Any, m: Any) -> bool:
    """Is there no message?"""
    return m is None


# --- acting ---------------------------------------------------------------------------------------
def send(w: Any, i: int, k: int) -> None:
    """Tell the neighbour on link k, unasked."""
    agent = w.agents[i]
    sheet = w.sheets.take()
    w.steps.tell(i, k, sheet)
    if agent.versioned:
        number = agent.marks[k - agent.edges.start]
    else:
        number = agent.sends = agent.sends + 1
    w.send(Message(REQUEST, k, sheet, number, w.env.now))


def answer(w: Any, i: int, m: Any) -> None:
    """Tell the sender of a request, with the state as it is now; once."""
    agent, k = w.agents[i], m.link
    sheet = m.told = w.sheets.take()
    w.steps.tell(i, k, sheet)
    if agent.versioned:
        number = m.number
    else:
        number = agent.sends = agent.sends + 1
    w.send(Message(REPLY, k, sheet, number, w.env.now, m))


def absorb(w: Any, i: int, m: Any) -> None:
    """Take in what the message says, beside what the agent itself said in the same exchange."""
    agent, k = w.agents[i], m.link
    w.steps.absorb(i, k, m.sheet, m.told if m.answers is None else m.answers.sheet)
    if agent.versioned:
        agent.marks[k - agent.edges.start] += 1
    agent.changed = agent.averages
    w.refreshed(k, m.sent_at)


def introduce(w: Any, i: int, m: Any) -> None:
    """Take in a hello."""
    w.steps.introduce(i, m.link, m.sheet)
    w.refreshed(m.link, m.sent_at)


def solve(w: Any, i: int) -> None:
    """Get a new model."""
    w.steps.solve(i)
    w.agents[i].changed = False
    w.solved(i)


def compute(w: Any, i: int, m: Any) -> None:
    """The last verb: be busy for one solve, then ``after``; right after this, if it takes none."""
    agent = w.agents[i]
    agent.compute(agent.after, None if m.told is not None else m)


def compute_tick(w: Any, i: int, k: int) -> None:
    """The same, then ``after_tick``."""
    agent = w.agents[i]
    agent.compute(agent.after_tick, k)


def hello(w: Any, i: int, m: Any) -> None:
    """What every protocol does with a hello."""
    if fresh(w, i, m):
        introduce(w, i, m)


# --- rounds ---------------------------------------------------------------------------------------
def send_all(w: Any, i: int) -> None:
    """Tell all neighbours, each again until it has heard."""
    agent = w.agents[i]
    edges, tell = agent.edges, w.steps.tell
    if agent.same_for_all:
        sheet = w.sheets.take()
        tell(i, edges[0], sheet)
        agent.told = [sheet] * len(edges)
    else:
        agent.told = [w.sheets.take() for _ in edges]
        for edge, sheet in zip(edges, agent.told, strict=True):
            tell(i, edge, sheet)
    agent.said = agent.round
    for edge, sheet in zip(edges, agent.told, strict=True):
        agent.departed = w.send_surely(Message(ROUND, edge, sheet, agent.round, w.env.now))


def arrived(w: Any, i: int) -> int:
    """How many links have brought a message that counts in this round."""
    return int(w.agents[i].arrived)


def needed(w: Any, i: int) -> int:
    """How many of them the agent waits for."""
    return int(w.agents[i].needed)


def deadline(w: Any) -> float:
    """How long an agent waits at most: ``rounds.deadline``, or infinitely long."""
    return float(w.deadline)


def alarm(w: Any, i: int, after: float) -> None:
    """Let ``ring`` follow so long after the agent's last message left, if the round still lasts."""
    w.agents[i].alarm(after)


def has_sent(w: Any, i: int) -> bool:
    """Has the agent sent in this round?"""
    return bool(w.agents[i].said == w.agents[i].round)


def has_come(w: Any, i: int, k: int) -> bool:
    """May link k be taken?"""
    return k in w.agents[i].inbox


def take(w: Any, i: int, k: int) -> None:
    """Turn to what is new on link k, if anything is, and absorb it."""
    agent = w.agents[i]
    message = agent.taken(k)
    if message is not None:
        w.handled(message)
        w.steps.absorb(i, k, message.sheet, agent.told[k - agent.edges.start])
        w.refreshed(k, message.sent_at)


def wait(w: Any, i: int) -> None:
    """The last verb: ``complete`` follows when the agent is woken, or at once if it has been."""
    w.agents[i].waiting = True


def wake(w: Any, i: int) -> None:
    """The agent need not wait any longer: an event of its own, at this instant."""
    w.agents[i].wake()


def end_round(w: Any, i: int) -> None:
    """The last verb: the round is over for this agent."""
    w.agents[i].over = True


#: The verbs of gossip, and of rounds; those that only ``agents.checked`` needs.
COMMON = (links, random, solve, compute_tick)
GOSSIP = (*COMMON, choose, peers, is_request, is_reply, link, fresh, send, answer, absorb, compute)
ROUNDS = (*COMMON, send_all, arrived, needed, deadline, alarm, take, wait, wake, end_round)
CHECKING = (run_of, owns, is_nothing, has_sent, has_come)
