"""When rows are served, and which have to wait for room downstream: pure functions on arrays of rows.

With a_k the arrival of a row and c_k the sum of service times up to and including it,
finish_k = c_k + max over j <= k of (a_j - c_(j-1)) (Lindley's recursion), a running sum and a running maximum.
"""

import numpy as np

from barograph.engines.sim.world.layout import Floats, Ints
from barograph.engines.sim.world.routes import SentRows


def starts(begin: Floats, service: Floats, of: Ints) -> Floats:
    """When each row starts, if its instance serves its rows one after the other.

    begin: when the row could start if it were alone. of: its instance; rows stand by instance, then by arrival. All
    instances are computed in one pass: the rows of each are moved so far apart in time that they cannot meet.
    """
    total = np.cumsum(service)
    before = total - service
    apart = of * (total[-1] + begin.max() - begin.min() + 1.0)
    found: Floats = np.maximum.accumulate(begin - before + apart) - apart + before
    return found


def position(of: Ints, n: int) -> Ints:
    """Of each row its number among the rows of its instance."""
    count = np.bincount(of, minlength=n)
    found: Ints = np.arange(of.size) - (np.cumsum(count) - count)[of]
    return found


def most_that_fit(sent: list[SentRows], came: Floats, of: Ints, n: int) -> Ints:
    """How many rows each instance can execute before it has to wait for room. Room goes to rows that came first."""
    number = position(of, n)
    most = np.full(n, np.iinfo(np.intp).max, dtype=np.intp)
    for s in sent:
        stuck = s.stuck(came)
        if stuck.size:
            np.minimum.at(most, of[stuck], number[stuck])
    return most
