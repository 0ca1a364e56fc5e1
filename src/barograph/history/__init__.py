"""What was seen, forecast, decided and done, cycle by cycle, as Parquet: written while running, read back as values."""

from barograph.history.entry import Entry, Gap, errors_of
from barograph.history.read import cycles, entries, gaps, last_cycles
from barograph.history.write import Recorder

__all__ = ["Entry", "Gap", "Recorder", "cycles", "entries", "errors_of", "gaps", "last_cycles"]
