"""What falls due at the sources of the coarse grain, as amounts of rows."""

from collections.abc import Sequence

import numpy as np

from barograph.engines.sim.grains.due import DueTimes
from barograph.engines.sim.world.layout import Floats, Ints, OperatorPart


class FlowSources:
    """live: of each instance that reads, whether no rows are made while it stands still.

    known: loads that were computed before, by their text; equal loads are computed once.
    """

    def __init__(self, sources: Sequence[OperatorPart], until_s: float, known: dict[str, DueTimes]) -> None:
        load_of: list[int] = []
        fraction: list[float] = []
        numbers: dict[str, int] = {}
        for part in sources:
            assert part.work.load is not None
            text = part.work.load.text
            if text not in known:
                known[text] = DueTimes(part.work.load, [1.0], until_s)
            load_of += [numbers.setdefault(text, len(numbers))] * part.n
            fraction += part.work.fractions(part.n)
        self.live = np.array([part.work.live for part in sources for _ in range(part.n)], dtype=bool)
        self._load_of = np.array(load_of, dtype=np.intp)
        self._fraction = np.array(fraction)
        self._loads = [known[text] for text in numbers]

    def due(self, t_s: float) -> Floats:
        """Rows of each reading instance due by then."""
        total = np.array([load.count(t_s) for load in self._loads])
        found: Floats = total[self._load_of] * self._fraction
        return found

    def moment(self, reader: Ints, amounts: Floats) -> Floats:
        """When each of these reading instances had this amount of rows due."""
        found = np.empty(amounts.size)
        load_of = self._load_of[reader]
        for number in np.unique(load_of):
            mine = load_of == number
            found[mine] = self._loads[number].moment(amounts[mine] / self._fraction[reader[mine]])
        return found
