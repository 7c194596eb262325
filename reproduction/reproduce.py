"""Run experiments of the paper and write their tables, figures and captions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from reproduction.beyond import beyond
from reproduction.choices import DEFAULT_FILE, load_choices
from reproduction.claims import SOURCES, claims_table
from reproduction.classification import fig3_left, fig3_middle, fig3_right
from reproduction.mean_estimation import fig1, fig2_left, fig2_middle, fig2_right
from reproduction.other_choices import other_choices
from reproduction.page import provenance, write_page
from reproduction.paper import CAPTIONS, Experiment, Paper, Tables, filled
from reproduction.private import private
from reproduction.scalability import fig4, fig5
from reproduction.sizes import FULL, QUICK
from reproduction.theory import theorem1, theory
from reproduction.tuning import tuning
from simulator.errors import SimulatorError
from simulator.figures.style import STYLE
from simulator.store.store import Store
from simulator.store.whole_files import replacing_file
from simulator.sweeps.workers import crew_for

#: What is computed and drawn, and the figure's size in inches.
EXPERIMENTS: dict[str, tuple[Experiment, tuple[float, float]]] = {
    "fig1": (fig1, (9.4, 2.0)),
    "fig2-left": (fig2_left, (4.6, 3.3)),
    "fig2-middle": (fig2_middle, (4.6, 3.3)),
    "fig2-right": (fig2_right, (5.2, 3.8)),
    "fig3-left": (fig3_left, (4.8, 3.5)),
    "fig3-middle": (fig3_middle, (4.8, 3.5)),
    "fig3-right": (fig3_right, (5.2, 3.5)),
    "fig4": (fig4, (4.4, 4.2)),
    "fig5": (fig5, (7.6, 3.5)),
    "theorem1": (theorem1, (8.0, 3.4)),
    "theory": (theory, (8.8, 3.3)),
    "tuning": (tuning, (10.4, 4.2)),
    "choices": (other_choices, (9.4, 9.6)),
    "beyond": (beyond, (7.6, 6.4)),
    "private": (private, (8.4, 3.8)),
}
CLAIMS = "claims"
#: What can be asked for.
IDS = (*EXPERIMENTS, CLAIMS)
#: For publication: fonts that journals accept, more dots an inch.
_STYLE = {**STYLE, "pdf.fonttype": 42, "savefig.dpi": 200}


@dataclass(frozen=True)
class Reproduced:
    """An experiment that was done: its name, its files, and how much of it there was to do."""

    id: str
    files: list[Path]
    computed: int
    stored: int


def reproduce(
    ids: Sequence[str],
    *,
    choices: Path = DEFAULT_FILE,
    out: Path | str = "results",
    quick: bool = False,
    jobs: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Iterator[Reproduced]:
    """Do experiments one after another; what is stored is used again, so a kill costs little.

    Files go to ``<out>/paper``, small versions (``quick``) to ``<out>/paper/quick``, and what was
    computed to ``<out>/paper/.work``, apart from runs of one's own.

    >>> from reproduction.reproduce import reproduce
    >>> list(reproduce(["fig2-left"], quick=True))  # doctest: +SKIP
    """
    wanted = expand(ids)
    top = Path(out) / "paper"
    folder, sizes = (top / "quick", QUICK) if quick else (top, FULL)
    known, store = load_choices(choices), Store(top / ".work")
    store.check_writable()
    tables: Tables = {}
    with crew_for(jobs or os.cpu_count() or 1, None) as crew:
        paper = Paper(known, sizes, store, crew, jobs, force, progress)
        for name in wanted:
            paper.begin(name)
            if name == CLAIMS:
                files = [write_table(claims_table(tables), folder / f"{CLAIMS}.csv")]
                files.append(write_caption(folder, CAPTIONS[CLAIMS][1], paper, {}))
            else:
                own, files = write_experiment(paper, folder)
                tables |= own
            yield Reproduced(name, files, paper.computed, len(paper.asked) - paper.computed)
    write_page(folder, paper)


def expand(ids: Iterable[str]) -> list[str]:
    """Names in the order of the registry, each once; claims need what they are read from."""
    given = set(ids)
    for name in given - {*IDS, "all"}:
        raise SimulatorError(f"{name}: no such experiment; allowed: all, {', '.join(IDS)}")
    given |= {*SOURCES} if CLAIMS in given else set()
    return list(IDS) if "all" in given else [name for name in IDS if name in given]


def write_experiment(paper: Paper, folder: Path) -> tuple[Tables, list[Path]]:
    """The figure as PNG and PDF, the tables behind it as CSV, and the caption."""
    make, size = EXPERIMENTS[paper.id]
    files = []
    with rc_context(_STYLE), threadpool_limits(limits=1, user_api="blas"):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        tables, words = make(paper, figure)
        for ending, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
            files.append(folder / f"{paper.id}.{ending}")
            with replacing_file(files[-1]) as draft:
                figure.savefig(draft, metadata=metadata)
            figure.set_layout_engine("none")  # it is laid out: the second file is as the first
    files += [write_table(table, folder / f"{name}.csv") for name, table in tables.items()]
    table = tables[paper.id]
    known = {"choices": paper.choices, "sizes": paper.sizes, "table": table, "rows": len(table)}
    caption = write_caption(folder, CAPTIONS[paper.id][1], paper, known | words)
    return tables, [*files, caption]


def write_caption(folder: Path, text: str, paper: Paper, known: dict[str, Any]) -> Path:
    """A caption, and below it what the figure or table was made with."""
    path = folder / f"{paper.id}.txt"
    with replacing_file(path) as draft:
        draft.write_text(f"{filled(text, known)}\n{provenance(paper)}\n", encoding="utf-8")
    return path


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Six digits: more would differ between machines, whose libraries add in another order."""
    with replacing_file(path) as draft:
        table.to_csv(draft, index=False, lineterminator="\n", float_format="%.6g")
    return path
