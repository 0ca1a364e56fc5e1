"""Where Barograph keeps its own files on a machine: runs in progress, and what is worth keeping between runs.

Both folders belong to one user and are refused when anybody else could have prepared them. Nothing here deletes.
"""

import os
import stat
import tempfile
from pathlib import Path

from barograph.model import BadInput

STATE_VARIABLE = "BAROGRAPH_STATE"
CACHE_VARIABLE = "BAROGRAPH_CACHE"


def state_folder() -> Path:
    """Runs in progress. On the temporary disk, because executors keep shuffle and state files below it."""
    given = os.environ.get(STATE_VARIABLE)
    return _private(Path(given).absolute() if given else _temporary())


def cache_folder() -> Path:
    """What is made once and used by every run. In the user's cache, or the temporary disk where there is none."""
    if given := os.environ.get(CACHE_VARIABLE):
        return _private(Path(given).absolute())
    caches = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(caches) if caches else Path.home() / ".cache"
        return _private(home.absolute() / "barograph")
    except (OSError, RuntimeError, BadInput):  # no home folder, or a read-only one
        return _private(_temporary())


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"barograph-{os.getuid()}"


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    except FileExistsError as error:
        raise BadInput(f"{folder} is in the way: Barograph needs a folder there") from error
    except OSError as error:
        raise BadInput(f"{folder} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
        raise BadInput(f"{folder} is not used: it must be a folder of your own that nobody else can write to")
    return folder
