"""Text that several commands print: columns that line up, and the notes of a cluster file."""

import textwrap
from collections.abc import Sequence

SHOWN = 10
WIDTH = 160


def table(rows: Sequence[Sequence[str]], right: str = "", indent: int = 0) -> list[str]:
    """A line for each row; each column is as wide as its widest cell. right: a mark in place k aligns column k right.

    ``table([["a", "1"], ["bc", "20"]], right=" >")`` is ``["a    1", "bc  20"]``. Shorter rows end early.
    """
    widths = [max(len(row[k]) for row in rows if len(row) > k) for k in range(max(map(len, rows), default=0))]
    marks = right.ljust(len(widths))
    return [
        (" " * indent + "  ".join(
            cell.rjust(width) if mark == ">" else cell.ljust(width)
            for cell, width, mark in zip(row, widths, marks, strict=False)
        )).rstrip()
        for row in rows
    ]  # fmt: skip


def notes_block(notes: Sequence[str]) -> list[str]:
    """The first notes, each in one line. Nothing where there are none. JSON output has them all, in full."""
    if not notes:
        return []
    lines = ["notes", *(f"  {textwrap.shorten(note, WIDTH, placeholder=' ...')}" for note in notes[:SHOWN])]
    if len(notes) > SHOWN:
        lines.append(f"  and {len(notes) - SHOWN} more; --format json has them all")
    return lines
