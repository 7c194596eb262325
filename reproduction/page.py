"""results/paper/README.md: all figures with their captions, the claims and the choices."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from reproduction.choices import Choices
from reproduction.experiment import Paper
from simulator.errors import StoreWarning
from simulator.store.drafts import replacing_file
from simulator.store.store import RESULTS_VERSION


def provenance(paper: Paper) -> str:
    """What a figure or table was made with."""
    digest = hashlib.sha256(paper.choices.file.read_bytes()).hexdigest()
    return (
        f"Made with {paper.choices.file.name} (SHA-256 {digest[:16]}…), results version "
        f"{RESULTS_VERSION}, {paper.sizes.name} size."
    )


def write_page(folder: Path, paper: Paper, titles: list[tuple[str, str]]) -> Path:
    """Write the page from what is in the folder."""
    quick = paper.sizes.name == "quick"
    command = f"python -m reproduction all{' --quick' if quick else ''}"
    parts = [
        f"# The paper, reproduced{' (quick version)' if quick else ''}\n",
        "Vanhaesebrouck, Bellet, Tommasi: *Decentralized Collaborative Learning of Personalized "
        "Models over Networks* (AISTATS 2017), sections 5.1, 5.2 and appendix E. This page and "
        f"everything on it is written by `{command}`; each figure is there as PNG and PDF, beside "
        "the CSV behind it.\n",
    ]
    if quick:
        parts.append(
            "Sizes are far below the paper's here: this version shows that everything works, and "
            "its verdicts on claims mean little.\n"
        )
    made = provenance(paper)
    if (folder / "claims.txt").is_file():
        parts += ["## Claims\n", _caption(folder / "claims.txt", made) + "\n"]
        parts.append(_claims(folder / "claims.csv"))
    parts.append("## Figures\n")
    for name, title in titles:
        if not (folder / f"{name}.txt").is_file():
            continue
        files = sorted([*folder.glob(f"{name}.csv"), *folder.glob(f"{name}-*.csv")])
        own = [file.name for file in files if _belongs(file.stem, name, titles)]
        links = ", ".join(f"[{file}]({file})" for file in [f"{name}.pdf", *own])
        parts += [
            f"### {name}: {title}\n",
            f"![{title}]({name}.png)\n",
            f"{_caption(folder / f'{name}.txt', made)} ({links})\n",
        ]
    parts += ["## Choices where the paper is silent\n", _choices(paper.choices)]
    parts.append(f"{made}\n")
    page = folder / "README.md"
    with replacing_file(page) as draft:
        draft.write_text("\n".join(parts), encoding="utf-8")
    return page


def _caption(file: Path, made: str) -> str:
    """A caption, with a warning where it is not of the same making as the page."""
    text, _, own = file.read_text(encoding="utf-8", errors="replace").strip().partition("\n")
    return text if own == made else f"{text} **Of another making than this page: {own}**"


def _belongs(stem: str, name: str, titles: list[tuple[str, str]]) -> bool:
    """Is a table of this name that experiment's, and not one's of a longer name?"""
    return stem == name or not any(stem == other for other, _ in titles)


def _claims(file: Path) -> str:
    """The table of claims, perhaps of an earlier reproduction."""
    try:
        table = pd.read_csv(file, keep_default_na=False)
        if table.empty:
            raise ValueError("no rows")
        return _claims_table(table)
    except (OSError, ValueError, KeyError) as error:
        again = "`python -m reproduction claims` writes it anew"
        warnings.warn(f"{file}: damaged: {error}; {again}", StoreWarning, stacklevel=2)
        return f"**{file.name} is damaged; {again}.**\n"


def _claims_table(table: pd.DataFrame) -> str:
    lines = [
        "| claim | where | measure | measured (95 % interval) | criterion | holds | chosen for it "
        "|",
        "|---|---|---|---|---|---|---|",
    ]
    remarks: list[str] = []
    for row in table.to_dict("records"):
        low = "" if row["low"] == "" else f" ({_number(row['low'])} … {_number(row['high'])})"
        mark = ""
        if row["remark"]:
            remarks.append(f"{len(remarks) + 1}. {row['remark']}")
            mark = f" [{len(remarks)}]"
        verdict = row["holds"] if row["holds"] == "yes" else f"**{row['holds']}**"
        lines.append(
            f"| {row['text']}{mark} | {row['where']} | {row['measure']} | "
            f"{_number(row['value'])}{low} | {row['criterion']} | {verdict} | "
            f"{row['chosen_for_it']} |"
        )
    return "\n".join([*lines, "", *remarks, "", _follows(table), ""])


def _follows(table: pd.DataFrame) -> str:
    """What follows, in a few sentences that the table decides."""
    by_verdict = {
        verdict: list(table[table["holds"] == verdict]["claim"])
        for verdict in ("yes", "no", "undecided")
    }
    parts = [
        f"**What follows.** {len(by_verdict['yes'])} of {len(table)} claims hold as we measure "
        "them."
    ]
    if by_verdict["no"]:
        parts.append(f"These do not: {', '.join(by_verdict['no'])}.")
    if by_verdict["undecided"]:
        parts.append(f"Undecided, at these sizes: {', '.join(by_verdict['undecided'])}.")
    rows = {row["claim"]: row for row in table.to_dict("records")}
    times = {
        "equal": "with equal delays",
        "loss": "with equal delays and loss",
        "passing": "where the tail of delays passes",
        "link": "where slow links stay slow",
        "agent": "where slow agents stay slow",
    }
    found = [
        f"{_number(rows[f'faster-{name}']['value'])} {text}"
        for name, text in times.items()
        if f"faster-{name}" in rows and rows[f"faster-{name}"]["value"] != ""
    ]
    if found:
        parts.append(
            "What the paper could only expect, that gossip is much faster on a network with "
            "delays, depends on the kind of delay. With rounds that send again what is late, their "
            "timer tuned, the time of rounds over that of gossip (clocks of 25 ticks a second) "
            f"is {', '.join(found)}."
        )
        gains = [text for name, text in times.items() if _above_one(rows.get(f"faster-{name}"))]
        where = f"only {', and '.join(gains)}" if gains else "nowhere"
        parts.append(
            f"So gossip is faster {where}: sending again heals loss and slowness that passes, but "
            "not slowness that stays."
        )
    return " ".join(parts)


def _above_one(row: dict[Hashable, Any] | None) -> bool:
    """Is the whole interval of a ratio above 1?"""
    return row is not None and row["low"] != "" and float(str(row["low"])) > 1


def _number(value: object) -> str:
    if value == "":
        return "not measured at this size"
    number = float(str(value))
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    return f"{number:.1e}" if abs(number) < 1e-3 else f"{number:.3g}"


def _choices(choices: Choices) -> str:
    lines = [
        f"From `{choices.file.name}`, which the code reads; `choices` above shows what the others "
        "would change.\n",
        "| choice | value | others tried | why |",
        "|---|---|---|---|",
    ]
    for name, choice in choices.all.items():
        others = ", ".join(_value(value) for value in choice.others)
        lines.append(f"| `{name}` | {_value(choice.value)} | {others} | {_cell(choice.why)} |")
    return "\n".join([*lines, ""])


def _value(value: object) -> str:
    """As the file has it."""
    return (
        yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
        .split("\n")[0]
        .strip("{}")
    )


def _cell(text: str) -> str:
    """Text that may stand in a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
