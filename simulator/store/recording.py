"""What a run records besides: its events (events.parquet) and its models (history.npz).

Events are written in chunks while the run goes on, and read as a table or in pieces.  pyarrow is an
optional extra, and imported only where there are events.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.engines.event_rows import KINDS, WHAT, Rows
from simulator.errors import SimulatorError
from simulator.shipped import install
from simulator.store.whole_files import scratch

if TYPE_CHECKING:
    from simulator.problem.problem import Floats

EVENTS = "events.parquet"
HISTORY = "history.npz"
#: The columns in their order, and how they are packed; pyarrow's defaults take six times as long.
COLUMNS = ("time", "kind", "agent", "peer", "message", "what", "answers", "bytes", "sent_at")
#: Bytes of models that are kept at most.
MOST_BYTES = 256_000_000

_WORDS = {"kind": KINDS, "what": WHAT}
_PACKING = {
    **dict.fromkeys(("agent", "peer", "message", "answers", "bytes"), "DELTA_BINARY_PACKED"),
    **dict.fromkeys(("time", "sent_at"), "BYTE_STREAM_SPLIT"),
}


# --- events ---------------------------------------------------------------------------------------
def require_pyarrow() -> None:
    """Raise unless events can be written and read here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise SimulatorError(
            f"record.events: needs pyarrow, which is not installed: {install('events')}"
        ) from None


class EventsFile:
    """Events on disk.

    A new one lies in a temporary folder, which lives as long as this object; one of the store in
    its result's.  Sent to another process, it takes its content along.
    """

    def __init__(self, path: Path | None = None):
        if path is None:
            stack = ExitStack()
            path = stack.enter_context(scratch()) / EVENTS
            weakref.finalize(self, stack.close)
        self.path = path

    def __getstate__(self) -> bytes:
        return self.path.read_bytes()

    def __setstate__(self, content: bytes) -> None:
        EventsFile.__init__(self)
        self.path.write_bytes(content)

    def read(self) -> pd.DataFrame:
        """All rows."""
        return pd.concat([*batches(self.path)], ignore_index=True)


class EventsWriter:
    """Writes rows as they come; to be closed at the end."""

    def __init__(self, path: Path):
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa = pa
        words = pa.dictionary(pa.int8(), pa.string())
        types = {"time": pa.float64(), "sent_at": pa.float64(), "agent": pa.int32()}
        types |= {"peer": pa.int32(), "kind": words, "what": words}
        self._schema = pa.schema([(name, types.get(name, pa.int64())) for name in COLUMNS])
        self._words = {name: pa.array(words) for name, words in _WORDS.items()}
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            # The integers are small already.
            compression={
                name: "lz4" if name in ("time", "sent_at") else "NONE" for name in COLUMNS
            },
            use_dictionary=list(_WORDS),
            column_encoding=_PACKING,
            write_statistics=False,
        )

    def __call__(self, rows: Rows) -> None:
        """Write so many rows, as one group."""
        if len(rows):
            columns = [self._column(name, np.ascontiguousarray(rows[name])) for name in COLUMNS]
            self._writer.write_batch(self._pa.record_batch(columns, schema=self._schema))

    def _column(self, name: str, values: Any) -> Any:
        if name not in _WORDS:
            return self._pa.array(values)
        numbers = self._pa.array(values, mask=values < 0)
        return self._pa.DictionaryArray.from_arrays(numbers, self._words[name], safe=False)

    def close(self) -> None:
        """The file is whole now."""
        self._writer.close()


def batches(
    path: Path, columns: Sequence[str] | None = None, rows: int = 2**18
) -> Iterator[pd.DataFrame]:
    """The rows of a file, so many at a time; at least one table, which may be empty."""
    require_pyarrow()
    import pyarrow.parquet as pq

    wanted = list(columns or COLUMNS)
    with pq.ParquetFile(path) as file:
        yield _table(file.schema_arrow.empty_table().select(wanted))
        for batch in file.iter_batches(rows, columns=wanted):
            yield _table(batch)


def _table(batch: Any) -> pd.DataFrame:
    """With the same categories in every piece, so that pieces can be put together."""
    table: pd.DataFrame = batch.to_pandas()
    for name, words in _WORDS.items():
        if name in table:
            table[name] = table[name].astype(pd.CategoricalDtype(list(words)))
    return table


# --- models ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class History:
    """Models (k, n, p), and the rows of trace.csv (k) at which they were the agents'."""

    samples: NDArray[np.int64]
    models: Floats
    #: What was left out, in words; empty if nothing was.
    note: str = ""


class Keeper:
    """Collects the models of a run, sample by sample."""

    def __init__(self, most_bytes: int = MOST_BYTES):
        self._most = most_bytes
        #: By the number of the sample: every ``_step``-th, and the last one.
        self._kept: dict[int, Floats] = {}
        self._count, self._step = 0, 1

    def add(self, models: Floats) -> None:
        """The models of the next sample."""
        if (self._count - 1) % self._step:
            del self._kept[self._count - 1]
        self._kept[self._count] = models.copy()
        self._count += 1
        while len(self._kept) > 3 and len(self._kept) * models.nbytes > self._most:
            self._step *= 2
            last = self._count - 1
            self._kept = {k: m for k, m in self._kept.items() if k % self._step == 0 or k == last}

    def halve(self) -> None:
        """The run has forgotten every other sample, beginning with the second."""
        self._kept = {k // 2: m for k, m in self._kept.items() if k % 2 == 0}
        self._count, self._step = (self._count + 1) // 2, max(1, self._step // 2)

    def history(self) -> History:
        """All that was kept."""
        note = ""
        if self._step > 1:
            note = (
                f"record.models: the models of every {self._step}th sample are kept, and of the "
                f"last: those of all {self._count} would have more than {self._most / 1e6:g} MB"
            )
        return History(np.array([*self._kept]), np.stack([*self._kept.values()]), note)
