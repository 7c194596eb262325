"""The verbs as protocols from outside have them, in both engines: they check what they are given.

Ours are read and tested; another's may hand a verb any number, and compiled code would go on with
it.  So theirs have, in the place of each verb, the function of that name with ``checked_``.
``run_of(w)`` is what verbs act on: the world itself in SimPy, the run's record in compiled code.
"""
# ruff: noqa: D103

from __future__ import annotations

from typing import Any

from agents.protocol import (
    GOSSIP,
    ROUNDS,
    absorb,
    alarm,
    answer,
    arrived,
    choose,
    compute,
    compute_tick,
    deadline,
    end_round,
    fresh,
    has_come,
    has_sent,
    is_nothing,
    is_reply,
    is_request,
    link,
    links,
    needed,
    owns,
    peers,
    random,
    run_of,
    send,
    send_all,
    solve,
    take,
    wait,
    wake,
)

#: The functions of a protocol and of rounds, as ``acting`` numbers them.
FUNCTIONS = ("tick", "handle", "after_tick", "after", "begin", "hear", "ring", "complete")
HEAR, RING, COMPLETE = 5, 6, 7
#: What one event may do, because engines have room for no more: computations that take no time,
#: and notes besides one a link.
MOST_COMPUTATIONS, MOST_NOTES = 2, 6


def begin_function(w: Any, acting: int, i: int, m: Any, goes_on: bool) -> None:
    """A function is about to be called, for agent i, with a message or none.

    ``goes_on`` says that this is the same event as the last one's.
    """
    run = run_of(w)
    run.acting, run.acts_for, run.at_hand = acting, i, m
    run.ended, run.answered, run.last_taken = acting in (HEAR, RING), False, -1
    if not goes_on:
        run.sends_made, run.notes_made, run.computations = 0, 0, 0


def end_function(w: Any, must_end: bool) -> None:
    """A function has returned; in rounds it says how its agent goes on."""
    if must_end and not run_of(w).ended:
        raise ValueError("in rounds it must end with compute_tick, wait or end_round")


# --- what is checked ------------------------------------------------------------------------------
def own(w: Any, i: int) -> None:
    if i != run_of(w).acts_for:
        raise ValueError("a verb was given another agent")


def own_link(w: Any, i: int, k: int) -> None:
    if not owns(run_of(w), i, k):
        raise ValueError("a verb was given a link that is not the agent's")


def held(w: Any, m: Any) -> None:
    run = run_of(w)
    if is_nothing(run, m) or m != run.at_hand:
        raise ValueError("a verb was given a message that is not at hand, or was answered before")


def acts(w: Any, i: int) -> None:
    own(w, i)
    if run_of(w).ended:
        raise ValueError("only wake is for hear and ring; compute, wait and end_round come last")


def notes(w: Any) -> None:
    run = run_of(w)
    run.notes_made += 1
    if run.notes_made > run.most_links + MOST_NOTES:
        raise ValueError("fresh, solve and take are called too often in one event")


def sends(w: Any) -> None:
    run = run_of(w)
    run.sends_made += 1
    if run.sends_made > run.most_sends:
        raise ValueError("more messages are sent in one event than most_sends says")


def begins_to_compute(w: Any) -> None:
    run = run_of(w)
    run.computations += 1
    if run.computations > MOST_COMPUTATIONS:
        raise ValueError("more than two computations in one event, which take no time")
    run.ended = True


# --- looking --------------------------------------------------------------------------------------
def checked_links(w: Any, i: int) -> Any:
    own(w, i)
    return links(run_of(w), i)


def checked_choose(w: Any, i: int, u: float) -> Any:
    own(w, i)
    return choose(run_of(w), i, u)


def checked_peers(w: Any, i: int, k: int) -> Any:
    own(w, i)
    own_link(w, i, k)
    return peers(run_of(w), i, k)


def checked_is_request(w: Any, m: Any) -> bool:
    held(w, m)
    return is_request(run_of(w), m)


def checked_is_reply(w: Any, m: Any) -> bool:
    held(w, m)
    return is_reply(run_of(w), m)


def checked_link(w: Any, m: Any) -> Any:
    held(w, m)
    return link(run_of(w), m)


def checked_random(w: Any) -> float:
    return random(run_of(w))


def checked_fresh(w: Any, i: int, m: Any) -> bool:
    acts(w, i)
    held(w, m)
    notes(w)
    return fresh(run_of(w), i, m)


# --- acting ---------------------------------------------------------------------------------------
def checked_send(w: Any, i: int, k: int) -> None:
    acts(w, i)
    own_link(w, i, k)
    sends(w)
    send(run_of(w), i, k)


def checked_answer(w: Any, i: int, m: Any) -> None:
    acts(w, i)
    held(w, m)
    run = run_of(w)
    if run.answered or not is_request(run, m):
        raise ValueError("answer was given what is no request, or what has been answered")
    sends(w)
    run.answered = True
    answer(run, i, m)


def checked_absorb(w: Any, i: int, m: Any) -> None:
    acts(w, i)
    held(w, m)
    absorb(run_of(w), i, m)


def checked_solve(w: Any, i: int) -> None:
    acts(w, i)
    notes(w)
    solve(run_of(w), i)


def checked_compute(w: Any, i: int, m: Any) -> None:
    acts(w, i)
    held(w, m)
    begins_to_compute(w)
    compute(run_of(w), i, m)


def checked_compute_tick(w: Any, i: int, k: int) -> None:
    acts(w, i)
    if k != 0:
        own_link(w, i, k)
    begins_to_compute(w)
    compute_tick(run_of(w), i, k)


# --- rounds ---------------------------------------------------------------------------------------
def checked_send_all(w: Any, i: int) -> None:
    acts(w, i)
    run = run_of(w)
    run.sends_made += 1
    if run.sends_made > 1 or has_sent(run, i):
        raise ValueError("send_all is called twice in one round")
    send_all(run, i)


def checked_arrived(w: Any, i: int) -> int:
    own(w, i)
    return arrived(run_of(w), i)


def checked_needed(w: Any, i: int) -> int:
    own(w, i)
    return needed(run_of(w), i)


def checked_deadline(w: Any) -> float:
    return deadline(run_of(w))


def checked_alarm(w: Any, i: int, after: float) -> None:
    acts(w, i)
    run = run_of(w)
    if run.sends_made != 1 or not after >= 0:
        raise ValueError("alarm follows send_all, once, after a time from 0")
    run.sends_made += 1
    alarm(run, i, after)


def checked_take(w: Any, i: int, k: int) -> None:
    acts(w, i)
    own_link(w, i, k)
    run = run_of(w)
    if run.acting != COMPLETE or k <= run.last_taken:
        raise ValueError("take is for complete, which takes each link once, in ascending order")
    run.last_taken = k
    if has_come(run, i, k):
        take(run, i, k)


def checked_wait(w: Any, i: int) -> None:
    acts(w, i)
    run = run_of(w)
    run.ended = True
    wait(run, i)


def checked_wake(w: Any, i: int) -> None:
    own(w, i)
    wake(run_of(w), i)


def checked_end_round(w: Any, i: int) -> None:
    acts(w, i)
    run = run_of(w)
    run.ended = True
    end_round(run, i)


#: The checked form of each verb.
CHECKED = {verb: globals()[f"checked_{verb.__name__}"] for verb in {*GOSSIP, *ROUNDS}}
