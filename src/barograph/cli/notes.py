"""The notes of a cluster file as a short block of text. JSON output has them all, in full."""

import textwrap
from collections.abc import Sequence

SHOWN = 10
WIDTH = 160


def block(notes: Sequence[str]) -> list[str]:
    """Nothing where there are no notes."""
    if not notes:
        return []
    lines = ["notes", *(f"  {textwrap.shorten(note, WIDTH, placeholder=' ...')}" for note in notes[:SHOWN])]
    if len(notes) > SHOWN:
        lines.append(f"  and {len(notes) - SHOWN} more; --format json has them all")
    return lines
