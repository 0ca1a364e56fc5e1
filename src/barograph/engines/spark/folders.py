"""The folders of Barograph's own files: runs in progress, and a cache that is kept between runs.

Both belong to one user and are refused if another user could have written to them. Nothing is deleted here.
"""

import logging
import os
import stat
import tempfile
from pathlib import Path

from barograph.logs import OnceOnly
from barograph.model import BadInput

log = logging.getLogger(__name__)
_warnings = OnceOnly(log)

STATE_VARIABLE = "BAROGRAPH_STATE"
CACHE_VARIABLE = "BAROGRAPH_CACHE"


def state_folder() -> Path:
    """For runs in progress. On the temporary disk, because executors keep shuffle and state files below it."""
    given = os.environ.get(STATE_VARIABLE)
    return _private(Path(given).absolute() if given else _temporary())


def cache_folder() -> Path:
    """For files that every run uses. In the user's cache, or on the temporary disk if there is no cache."""
    if given := os.environ.get(CACHE_VARIABLE):
        return _private(Path(given).absolute())
    caches = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(caches) if caches else Path.home() / ".cache"
        return _private(home.absolute() / "barograph")
    except (OSError, RuntimeError, BadInput) as error:  # no home folder, or a read-only one
        instead = _private(_temporary())
        _warnings.warn("cache", f"no cache in the home folder: {error}; {instead} is used")
        return instead


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"barograph-{os.getuid()}"


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    except FileExistsError as error:
        raise BadInput(f"{folder} exists and is not a folder: Barograph needs one there") from error
    except OSError as error:
        raise BadInput(f"{folder} cannot be created: {error.strerror}") from error
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
        raise BadInput(f"{folder} is not used: it must be a folder of your own that no other user can write to")
    return folder
