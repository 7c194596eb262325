"""What is in a results folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import DamagedError, LayoutError, MissingError, StoreWarning
from simulator.store.store import MANIFEST, read_manifest

#: What every row has; the metrics that runs ended with come after these.
COLUMNS = (
    "folder", "what", "name", "algorithm", "mode", "seed", "agents", "runs", "simulated_time",
    "communications",
)  # fmt: skip


def results_table(root: Path) -> pd.DataFrame:
    """One row a run, a sweep, a comparison or a frontier; the newest first.

    What is not complete is left out; a warning tells of what is damaged, and of what only another
    version of the program reads.
    """
    places = [*root.glob(f"*/{MANIFEST}"), *root.glob(f"sweeps/*/{MANIFEST}")]
    rows, unread = [], list[str]()
    for path in sorted(places, key=lambda path: (-path.stat().st_mtime, str(path))):
        try:
            manifest = read_manifest(path.parent)
        except MissingError:
            continue
        except (DamagedError, LayoutError) as error:
            unread.append(str(error))
            continue
        rows.append({"folder": str(path.parent), **_row(manifest, path.parent.name)})
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        warnings.warn(f"{unread[0]}{more}: not listed", StoreWarning, stacklevel=2)
    return pd.DataFrame(rows, columns=None if rows else list(COLUMNS))


def _row(manifest: dict[str, Any], folder: str) -> dict[str, Any]:
    summary = manifest.get("summary")
    row: dict[str, Any] = dict.fromkeys(COLUMNS[1:])
    if summary is None:
        what = manifest.get("what", "sweep")
        runs = len(set(manifest.get("runs", [])))
        return {**row, "what": what, "name": folder.rsplit("-", 1)[0], "runs": runs}
    known = {name: summary[name] for name in COLUMNS[2:] if name in summary}
    return {**row, "what": "run", **known, "runs": 1, **summary["metrics"]["final"]}
