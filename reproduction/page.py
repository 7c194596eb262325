"""results/paper/README.md: all figures with their captions, the claims and the choices."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Hashable
from pathlib import Path

import pandas as pd

from reproduction.beyond import WORLDS
from reproduction.paper import CAPTIONS, Paper, sections
from simulator.errors import StoreWarning
from simulator.store.store import RESULTS_VERSION
from simulator.store.whole_files import replacing_file

CHOICES = "Choices where the paper is silent"


def provenance(paper: Paper) -> str:
    """What a figure or table was made with."""
    digest = hashlib.sha256(paper.choices.file.read_bytes()).hexdigest()
    return (
        f"Made with {paper.choices.file.name} (SHA-256 {digest[:16]}…), results version "
        f"{RESULTS_VERSION}, {paper.sizes.name} size."
    )


def write_page(folder: Path, paper: Paper) -> Path:
    """Write the page from what is in the folder."""
    made, template = provenance(paper), sections("page.md")
    size = " (quick version)" if paper.sizes.name == "quick" else ""
    parts = [template["head"].format(size=size, flag=" --quick" if size else "")]
    if size:
        parts.append(template["quick"])
    if (folder / "claims.txt").is_file():
        caption = _caption(folder / "claims.txt", made)
        text = template["Claims"].format(caption=caption, claims=_claims(folder))
        parts += ["## Claims", text]
    parts.append("## Figures")
    names = [name for name in CAPTIONS if name != "claims" and (folder / f"{name}.txt").is_file()]
    for name in names:
        files = sorted([*folder.glob(f"{name}.csv"), *folder.glob(f"{name}-*.csv")])
        own = [file.name for file in files if file.stem == name or file.stem not in CAPTIONS]
        links = ", ".join(f"[{file}]({file})" for file in [f"{name}.pdf", *own])
        title, caption = CAPTIONS[name][0], _caption(folder / f"{name}.txt", made)
        known = {"name": name, "title": title, "caption": caption, "links": links}
        parts.append(template["Figures"].format_map(known))
    text = template[CHOICES].format(file=paper.choices.file.name, made=made)
    parts += [f"## {CHOICES}", text]
    page = folder / "README.md"
    with replacing_file(page) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def _caption(file: Path, made: str) -> str:
    """A caption, with a warning where it is not of the same making as the page."""
    text, _, own = file.read_text(encoding="utf-8", errors="replace").strip().partition("\n")
    return text if own == made else f"{text} **Of another making than this page: {own}**"


def _claims(folder: Path) -> str:
    """The table of claims, perhaps of an earlier reproduction, and what follows."""
    file, again = folder / "claims.csv", "`python -m reproduction claims` writes it anew"
    try:
        table = pd.read_csv(file, keep_default_na=False).astype(str)
        told = table["remark"] != ""
        table["number"] = told.cumsum().astype(str).where(told, "")
        rows = "".join(map(_row, table.to_dict("records")))
        notes = "\n".join(table[told]["number"] + ". " + table[told]["remark"])
        if not rows:
            raise ValueError("no rows")
        return "\n\n".join([f"{rows}\n{notes}", follows(table), *_worlds(folder)])
    except (OSError, ValueError, KeyError) as error:
        warnings.warn(f"{file}: damaged: {error}; {again}", StoreWarning, stacklevel=2)
        return f"\n**{file.name} is damaged; {again}.**"


def _row(row: dict[Hashable, str]) -> str:
    interval = f" ({_number(row['low'])} … {_number(row['high'])})" if row["low"] else ""
    mark = f" [{row['number']}]" if row["number"] else ""
    verdict = row["holds"] if row["holds"] == "yes" else f"**{row['holds']}**"
    return (
        f"| “{row['words']}”{mark} | {row['where']} | {row['criterion']} | {row['measure']} | "
        f"{_number(row['value'])}{interval} | {verdict} | {row['otherwise']} | "
        f"{row['chosen_for_it']} |\n"
    )


def follows(table: pd.DataFrame) -> str:
    """What follows, in a few sentences that the table decides."""
    template, chosen = sections("page.md"), table["otherwise"] != ""
    verdicts = table["holds"].where((table["holds"] != "no") | ~chosen, "no, by a choice")
    names = {verdict: ", ".join(own["claim"]) for verdict, own in table.groupby(verdicts)}
    holds = table["holds"] == "yes"
    by_choice = table[holds & chosen]["claim"]
    known = {"alone": (holds & ~chosen).sum(), "chosen": len(by_choice), "total": len(table)}
    parts = [template["follows"].format(**known, names=", ".join(by_choice))]
    rest = [
        verdict for verdict in ("in part", "no", "no, by a choice", "undecided") if verdict in names
    ]
    parts += [template[verdict].format(names=names[verdict]) for verdict in rest]
    return " ".join(" ".join(part.split()) for part in parts)


def _worlds(folder: Path) -> list[str]:
    """The worlds in which rounds and gossip were compared in time, if they were."""
    if not (file := folder / f"{WORLDS}.csv").is_file():
        return []
    table = pd.read_csv(file)
    table = table[table["rate"] == table["rate"].max()]
    timers = table["tuned_second"].astype(str).str.rpartition("=")[2]
    table = table.assign(timer=timers, percent=100 * table["drop"])
    form = (
        "| {algorithm} | {world} | {spread:g} | {percent:g} % | {timer} | {speedup:.3g} ({low:.3g} "
        "… {high:.3g}) | {communications_ratio:.2f} | {verdict} |"
    )
    rows = (form.format_map(row) for row in table.to_dict("records"))
    return [sections("page.md")["worlds"].format(rows="\n".join(rows))]


def _number(text: str) -> str:
    if text == "":
        return "not measured at this size"
    number = float(text)
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    return f"{number:.1e}" if abs(number) < 1e-3 else f"{number:.3g}"
