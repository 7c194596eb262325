"""``inspect`` and ``trace``: what a recorded run tells, in the terminal and in a file."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import RESULT, SECONDS

if TYPE_CHECKING:
    import pandas as pd

    from simulator.runs.story import Recorded, Window

#: Rows of a table that a terminal shows.
MOST_ROWS, MOST_MOVES = 20, 5

_RESULT = click.argument("result", metavar="RESULT", type=RESULT)
_FROM = click.option("--from", "begin", type=SECONDS, metavar="T", help="From this time on (s).")
_UNTIL = click.option("--until", "end", type=SECONDS, metavar="T", help="Up to this time (s).")


@click.command("inspect")
@_RESULT
@click.option("--agent", metavar="A", help="One agent, by its name or its number from 0.")
@click.option("--link", metavar="A,B", help="The messages between two agents.")
@_FROM
@_UNTIL
@click.option(
    "--csv", "csv", metavar="FILE", help="Write the events to a file, or - to print them."
)
def inspect_command(
    result: Path,
    agent: str | None,
    link: str | None,
    begin: float | None,
    end: float | None,
    csv: str | None,
) -> None:
    """Tell what happened in a run that was recorded with record.events.

    \b
    Examples:
      python -m simulator run scenarios/moons.yaml --set record.events=true --set record.models=true
      python -m simulator inspect results/moons-1a2b3c4d --agent 17
      python -m simulator inspect results/moons-1a2b3c4d --link 3,17 --from 10 --until 20
      python -m simulator inspect results/moons-1a2b3c4d --agent 17 --csv -
    """
    from simulator.errors import SimulatorError
    from simulator.runs.story import Recorded

    if agent is not None and link is not None:
        raise SimulatorError("give --agent or --link, not both")
    window = _window(begin, end)
    recorded = Recorded(result)
    one, other = _ends(recorded, agent, link)
    if csv is not None:
        _write_csv(recorded, window, one, other, csv)
    elif one is None:
        _show_all(recorded, window)
    elif other is None:
        _show_agent(recorded, window, one)
    else:
        _show_link(recorded, window, one, other)


@click.command("trace")
@_RESULT
@click.option(
    "-o",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.  [RESULT/trace.json]",
)
@_FROM
@_UNTIL
def trace_command(result: Path, out: Path | None, begin: float | None, end: float | None) -> None:
    """Write a recorded run as a trace for Perfetto (ui.perfetto.dev) or Chrome.

    \b
    Example:
      python -m simulator trace results/moons-1a2b3c4d --until 5
    """
    from simulator.runs.story import Recorded, write_timeline

    window = _window(begin, end)
    place = result / "trace.json" if out is None else out
    sent = write_timeline(Recorded(result), place, window)
    click.echo(f"{place}: {sent:,} messages")


def _window(begin: float | None, end: float | None) -> Window:
    from simulator.errors import SimulatorError
    from simulator.runs.story import Window

    if begin is not None and end is not None and begin > end:
        raise SimulatorError(f"--from {begin:g} must not be after --until {end:g}")
    return Window(-math.inf if begin is None else begin, math.inf if end is None else end)


def _ends(recorded: Recorded, agent: str | None, link: str | None) -> tuple[int | None, int | None]:
    from simulator.errors import SimulatorError

    if agent is not None:
        return recorded.number(agent), None
    if link is None:
        return None, None
    names = link.split(",")
    if len(names) != 2:
        raise SimulatorError(f"--link {link}: must be two agents, such as 3,17")
    one, other = recorded.number(names[0]), recorded.number(names[1])
    if one == other:
        raise SimulatorError(f"--link {link}: must be two different agents")
    return one, other


def _write_csv(
    recorded: Recorded, window: Window, one: int | None, other: int | None, target: str
) -> None:
    from simulator.store.whole_files import replacing_file

    table = recorded.events(window, one, other)
    if target == "-":
        table.to_csv(sys.stdout, index=False, lineterminator="\n")
        return
    with replacing_file(Path(target)) as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    click.echo(f"{target}: {len(table):,} events")


# --- in the terminal ------------------------------------------------------------------------------
def _show_all(recorded: Recorded, window: Window) -> None:
    counts = recorded.counts(window)
    seen = [kind for kind in counts if counts[kind].any()]
    total = ", ".join(f"{int(counts[kind].sum()):,} {kind}" for kind in seen)
    about = f"{recorded.folder}: {len(recorded.names):,} agents, {recorded.end:.6g} s"
    click.echo(f"{about}: {total or 'nothing happened'}")
    if not seen:
        return
    busiest = counts.sort_values("send", ascending=False, kind="stable")[seen]
    _show_table(busiest.head(MOST_ROWS).reset_index(names="agent"), {})
    if len(busiest) > MOST_ROWS:
        click.echo(f"… and {len(busiest) - MOST_ROWS:,} more agents; --agent A tells about one")


def _show_agent(recorded: Recorded, window: Window, agent: int) -> None:
    from simulator.runs.story import contacts, off_time

    events = recorded.events(window, agent)
    about = recorded.stored.agents.iloc[agent]
    click.echo(
        f"agent {recorded.names[agent]}: {int(about['points'])} points, confidence "
        f"{about['confidence']:.4g}, {int(about['neighbours'])} neighbours"
    )
    own = events[events["agent"] == agent]
    counts = own["kind"].value_counts()
    click.echo(", ".join(f"{n:,} {kind}" for kind, n in counts.items() if n) or "nothing happened")
    end = min(window.end, recorded.end)
    absences, length = off_time(events, agent, end)
    if absences:
        click.echo(f"off {absences} times, {length:.4g} s in all")
    known = contacts(events, agent, end)
    known["peer"] = [recorded.names[peer] for peer in known["peer"]]
    heads = {"lost_to_it": "lost to it", "delay": "delay (s)", "age": "age at the end (s)"}
    heads["peer"] = "neighbour"
    _show_table(known.head(MOST_ROWS), heads)
    if len(known) > MOST_ROWS:
        click.echo(f"… and {len(known) - MOST_ROWS:,} more neighbours; --csv - prints all events")
    _show_errors(recorded, agent, window)
    _show_moves(recorded, agent, events, window)


def _show_errors(recorded: Recorded, agent: int, window: Window) -> None:
    errors = recorded.errors(agent)
    if errors is None:
        click.echo("its error over time: not recorded (--set record.models=true)")
        return
    inside = window.of(errors)
    if len(inside) > MOST_ROWS // 2:
        step = (len(inside) - 1) / (MOST_ROWS // 2 - 1)
        inside = inside.iloc[[round(k * step) for k in range(MOST_ROWS // 2)]]
    _show_table(inside, {"l2_error": "L2 error", "distance": "distance to optimum"})


def _show_moves(recorded: Recorded, agent: int, events: pd.DataFrame, window: Window) -> None:
    moves = recorded.moves(agent, events, window, MOST_MOVES)
    if moves is None or moves.empty:
        return
    click.echo("it moved most:")
    for move in moves.to_dict("records"):
        messages: Any = move["messages"]
        said = [
            f"{row.what} of {recorded.names[row.peer]}, {row.time - row.sent_at:.3g} s old"
            for row in messages.tail(MOST_MOVES).itertuples()
        ]
        more = f" … ({len(messages)} in all)" if len(messages) > MOST_MOVES else ""
        text = "; ".join(said) or "no message"
        click.echo(
            f"  by {move['moved']:.4g} in {move['from']:.6g}–{move['until']:.6g} s: {text}{more}"
        )


def _show_link(recorded: Recorded, window: Window, one: int, other: int) -> None:
    from simulator.runs.story import fates

    table = fates(recorded.events(window, one, other))
    names = recorded.names
    click.echo(f"agents {names[one]} and {names[other]}: {len(table):,} messages")
    by_fate = table["fate"].value_counts()
    click.echo(", ".join(f"{n:,} {fate}" for fate, n in by_fate.items() if n))
    table["from"] = [names[agent] for agent in table["from"]]
    table["to"] = [names[agent] for agent in table["to"]]
    _show_table(table.tail(MOST_ROWS), {"sent": "sent (s)", "arrived": "arrived (s)"})
    if len(table) > MOST_ROWS:
        click.echo(f"(the last {MOST_ROWS}; --csv - prints all events)")


def _show_table(rows: pd.DataFrame, heads: dict[str, str]) -> None:
    from simulator.cli.terminal import Column, show_table

    show_table(
        Column(heads.get(str(name), str(name)), [_cell(value) for value in column])
        for name, column in rows.astype(object).items()
    )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
