"""How things show themselves: in one line, and in a notebook with a table and a figure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simulator.figures.style import Look, Picture

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

    def pictures(self, look: Look) -> Iterator[tuple[str, Figure]]:
        """Its figures with their names, the most telling one first."""
        raise NotImplementedError

    def plot(
        self,
        which: str | None = None,
        *,
        metric: str | None = None,
        labels: dict[str, str] | None = None,
        width: float | None = None,
    ) -> Picture:
        """A matplotlib figure: the first one, or the one named (those of the result's folder).

        ``metric`` is drawn instead of the usual one; ``labels`` has words for keys and metrics, as
        ``{"network.drop": "loss"}``; ``width`` is in inches, 3.3 for a column of a paper.
        """
        from matplotlib import rc_context

        from simulator.errors import SimulatorError
        from simulator.figures.style import PAGE, Look

        look = Look(metric=metric, labels=labels or {}, width=PAGE if width is None else width)
        names = []
        with rc_context(look.style):
            figure: Any
            for name, figure in self.pictures(look):
                if which in (None, name):
                    return figure
                names.append(name)
        if which is None:
            raise SimulatorError("there is nothing to draw: one sample, and no vectors of agents")
        raise SimulatorError(f"plot: no figure {which!r}; allowed: {', '.join(names)}")

    def __repr__(self) -> str:
        return f"<{self.title()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the title, the table and a figure."""
        from simulator.errors import SimulatorError

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


def of(kind: type[Any], given: Any) -> Any:
    """The same thing as one of a class that can show itself."""
    fields = given.__dataclass_fields__
    return kind(**{name: getattr(given, name) for name in fields})
