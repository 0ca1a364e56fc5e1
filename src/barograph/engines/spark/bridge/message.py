"""An answer of the plug-in: named columns of whole numbers or text, each of any length. ``View.scala`` writes it.

It only knows the form: one Arrow batch of one row, in which each column is a list. Columns that are not there have not
changed since the cursor.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Whole = NDArray[np.int64]
_NOTHING: Whole = np.zeros(0, dtype=np.int64)


class Message:
    """Numbers are views of the bytes that came, without a copy; they cannot be written."""

    def __init__(self, content: bytes) -> None:
        batch = pa.ipc.open_stream(content).read_next_batch()
        self._columns = dict(zip(batch.schema.names, batch.columns, strict=True))

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def numbers(self, name: str) -> Whole:
        column = self._columns.get(name)
        return _NOTHING if column is None else column.values.to_numpy()

    def number(self, name: str) -> int:
        return int(self.numbers(name)[0])

    def whole(self, name: str) -> list[int]:
        """For columns that are seldom there."""
        found: list[int] = self.numbers(name).tolist()
        return found

    def texts(self, name: str) -> list[str]:
        column = self._columns.get(name)
        return [] if column is None else column.values.to_pylist()
