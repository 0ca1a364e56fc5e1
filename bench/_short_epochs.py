"""CPU limits at short epochs: what one busy instance uses over several whole epochs, their ends and starts included.

It is taken from the instance's metrics, because each epoch runs in another thread. It decides no bar but says how far a
use is off, as parts of what is allowed: 10 % or one point, and above the limit the beginnings of epochs too, in which
an instance has no limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from barograph.model import Instance, Plan
from barograph.testing.local_cluster import LocalCluster
from bench._busy_split import ONE, SETTLE_S, busy, wait

NAME = "short-epochs"
EPOCH_S, EPOCHS = 5.0, 4
LIMITS_PCT = (5.0, 20.0)
BEGINNING_S = 0.05  # where the executor has run the operator before


@dataclass(frozen=True)
class EpochsUse:
    """used_pct: of a core, on the mean; epochs: how many began meanwhile."""

    used_pct: float
    epochs: int

    def off(self, wanted_pct: float) -> float:
        """How far it is off, as parts of what is allowed."""
        either_way = max(0.1 * wanted_pct, 1.0)
        above = either_way + (100.0 - wanted_pct) * BEGINNING_S / EPOCH_S
        return max((self.used_pct - wanted_pct) / above, (wanted_pct - self.used_pct) / either_way)


def at_short_epochs(stage: LocalCluster) -> Iterator[tuple[float, EpochsUse]]:
    """Of one instance that wants a whole core."""
    with stage.query(NAME, 20_000, ONE, epoch_s=EPOCH_S, workload=busy()) as counting:
        split = Instance(NAME, "split", 0)
        for limit_pct in LIMITS_PCT:
            outcome = stage.engine.apply(Plan(limits_pct={split: limit_pct}))
            assert outcome.ok and not outcome.left_out, outcome
            wait(counting, SETTLE_S)
            first = counting.epoch()
            stage.engine.observe(NAME)
            wait(counting, EPOCHS * EPOCH_S)
            now = stage.engine.observe(NAME)
            used_pct = 100.0 * now.metrics.row(split).cpu_s / now.cycle_s
            yield limit_pct, EpochsUse(round(used_pct, 2), counting.epoch() - first)
