"""Files that only their owner can read, whatever the mask of this process is."""

import os
from pathlib import Path
from typing import BinaryIO


def write_private(file: Path, text: str) -> None:
    """A new file. FileExistsError where there is a file or a link already: it might be another user's."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)


def append_private(file: Path) -> BinaryIO:
    """To the file, or to a new one."""
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
