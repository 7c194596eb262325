"""Run experiments of the paper and write their tables, figures and captions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from reproduction.beyond import Beyond
from reproduction.choices import DEFAULT_FILE, load_choices
from reproduction.claims import SOURCES, claims_table
from reproduction.classification import (
    AccuracyByCommunications,
    AccuracyByDimension,
    AccuracyBySize,
)
from reproduction.experiment import CAPTIONS, Experiment, Paper, Tables
from reproduction.mean_estimation import ErrorByWidth, MeanCommunications, Moons, WinRatio
from reproduction.other_choices import OtherChoices
from reproduction.page import provenance, write_page
from reproduction.private import Private
from reproduction.scalability import Links, Scalability
from reproduction.sizes import FULL, QUICK
from reproduction.theory import TheoremOne, Theory
from reproduction.tuning import Tuning
from simulator.api.progress import sweep_progress
from simulator.errors import SimulatorError
from simulator.figures.style import STYLE
from simulator.store.store import Store
from simulator.store.whole_files import replacing_file
from simulator.sweeps.work import complete, unfinished
from simulator.sweeps.workers import Crew, Here, crew_for

EXPERIMENTS: dict[str, type[Experiment]] = {
    kind.id: kind
    for kind in (
        *(Moons, ErrorByWidth, WinRatio, MeanCommunications),
        *(AccuracyByDimension, AccuracyBySize, AccuracyByCommunications),
        *(Links, Scalability, TheoremOne, Theory, Tuning, OtherChoices, Beyond, Private),
    )
}
CLAIMS = "claims"
#: What can be asked for.
IDS = (*EXPERIMENTS, CLAIMS)
#: For publication: fonts that journals accept, more dots an inch.
_STYLE = {**STYLE, "pdf.fonttype": 42, "savefig.dpi": 200}


@dataclass(frozen=True)
class Reproduced:
    """An experiment that was done: its name and its files."""

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
    folder = top / "quick" if quick else top
    sizes = QUICK if quick else FULL
    paper = Paper(load_choices(choices), sizes, Store(top / ".work"), jobs, force, progress)
    paper.store.check_writable()
    tables: Tables = {}
    done = set[str]()
    with crew_for(jobs or os.cpu_count() or 1, None) as crew:
        for name in wanted:
            needed = [name] if name in EXPERIMENTS else [s for s in SOURCES if s not in tables]
            computed = stored = 0
            for source in needed:
                experiment = EXPERIMENTS[source](paper)
                new, there = _work_off(experiment, crew, done)
                computed, stored = computed + new, stored + there
                own = experiment.tables()
                tables |= own
                if name in EXPERIMENTS:
                    files = write_experiment(experiment, own, folder)
            if name == CLAIMS:
                files = [write_table(claims_table(tables), folder / f"{CLAIMS}.csv")]
                files.append(write_caption(folder, CLAIMS, CAPTIONS[CLAIMS][1], paper))
            yield Reproduced(name, files, computed, stored)
    write_page(folder, paper)


def expand(ids: Iterable[str]) -> list[str]:
    """Names in the order of the registry, each once; ``all`` is all of them."""
    given = set(ids)
    for name in given - {*IDS, "all"}:
        raise SimulatorError(f"{name}: no such experiment; allowed: all, {', '.join(IDS)}")
    return list(IDS) if "all" in given else [name for name in IDS if name in given]


def _work_off(experiment: Experiment, crew: Crew | Here, done: set[str]) -> tuple[int, int]:
    """Do what an experiment needs: how many tasks were computed, and how many were there.

    ``done`` holds what was computed just now, which ``force`` does not compute again.
    """
    computed = total = 0
    force, progress = experiment.paper.force, experiment.paper.progress
    for stage in experiment.stages():
        tasks = {task.key: task for own in stage.values() for task in own}
        new = [task for key, task in tasks.items() if key not in done]
        missing = new if force else [new[number] for number in unfinished(new)]
        if missing:
            with sweep_progress(experiment.id, len(missing), progress) as show:
                failures = complete(missing, range(len(missing)), crew, force=force, progress=show)
            for number, reason in failures.items():
                raise SimulatorError(
                    f"{experiment.id}: {len(failures)} of {len(tasks)} computations failed; the "
                    f"first: {missing[number].key}: {reason}"
                )
        done.update(tasks)
        computed, total = computed + len(missing), total + len(tasks)
    return computed, total - computed


# --- writing ------------------------------------------------------------------------------------
def write_experiment(experiment: Experiment, tables: Tables, folder: Path) -> list[Path]:
    """The figure as PNG and PDF, the tables behind it as CSV, and the caption."""
    files = []
    with rc_context(_STYLE):
        figure = Figure(figsize=experiment.size, layout="constrained")
        FigureCanvasAgg(figure)
        experiment.draw(figure, tables)
        for ending, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None})):
            files.append(folder / f"{experiment.id}.{ending}")
            with replacing_file(files[-1]) as draft:
                figure.savefig(draft, metadata=metadata)
            figure.set_layout_engine("none")  # it is laid out: the second file is as the first
    files += [write_table(table, folder / f"{name}.csv") for name, table in tables.items()]
    caption = experiment.caption(tables)
    return [*files, write_caption(folder, experiment.id, caption, experiment.paper)]


def write_caption(folder: Path, name: str, text: str, paper: Paper) -> Path:
    """A caption, and below it what the figure or table was made with."""
    path = folder / f"{name}.txt"
    with replacing_file(path) as draft:
        text = " ".join(text.split())
        draft.write_text(f"{text}\n{provenance(paper)}\n", encoding="utf-8")
    return path


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Six digits: more would differ between machines, whose libraries add in another order."""
    with replacing_file(path) as draft:
        table.to_csv(draft, index=False, lineterminator="\n", float_format="%.6g")
    return path
