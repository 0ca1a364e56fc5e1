"""An error after which the work goes on all the same, as a warning in the log."""

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def tolerated(log: logging.Logger, what: str, *kinds: type[Exception]) -> Iterator[None]:
    """what: which work failed, as in ``words: its lease was not given back``."""
    try:
        yield
    except kinds as error:
        log.warning("%s: %s: %s", what, type(error).__name__, error)
