"""How things show themselves: in one line, and in a notebook with a table and a figure."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from simulator.errors import SimulatorError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

#: The module that draws, imported at first use, since Matplotlib takes a while.  The package says
#: which it is (simulator/__init__.py): what is drawn lies below those who draw it.
figures = ""
#: Rows of a table that a notebook shows.
_ROWS = 20


class Shown:
    """Something with a title in one line, a table and figures."""

    def title(self) -> str:
        """What it is, in one line."""
        raise NotImplementedError

    def table(self) -> pd.DataFrame:
        """What a reader wants to know first."""
        raise NotImplementedError

    def plot(
        self,
        which: str | None = None,
        *,
        metric: str | None = None,
        labels: dict[str, str] | None = None,
        width: float | None = None,
    ) -> Any:
        """A matplotlib figure: the first one, or the one named (those of the result's folder).

        ``metric`` is drawn instead of the usual one; ``labels`` has words for keys and metrics, as
        ``{"network.drop": "loss"}``; ``width`` is in inches, 3.3 for a column of a paper.
        """
        return import_module(figures).plot(self, which, metric=metric, labels=labels, width=width)

    def draw(self, folder: Path, look: Any = None) -> None:
        """All figures as files in a folder, in the look that was asked for."""
        import_module(figures).draw(self, folder, look)

    def __repr__(self) -> str:
        return f"<{self.title()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the title, the table and a figure."""
        table = self.table()
        shown = table.head(_ROWS).to_html(index=False, border=0, na_rep="", float_format=_number)
        more = f"<p>… and {len(table) - _ROWS} more rows</p>" if len(table) > _ROWS else ""
        try:
            data = b64encode(self.plot()._repr_png_()).decode()
            picture = f'<img src="data:image/png;base64,{data}" style="max-width: 100%"/>'
        except SimulatorError:
            picture = ""
        return f"<div><p><b>{escape(self.title())}</b></p>{shown}{more}{picture}</div>"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
