"""Scale: from the forecast to instances per operator and CPU per instance. One file per scaler."""

from barograph.scale.cpu_share import CpuShare
from barograph.scale.fixed import Fixed, equal_in_total, mean_used, peak_used
from barograph.scale.measured import Measured
from barograph.scale.protocol import Scaler

__all__ = ["CpuShare", "Fixed", "Measured", "Scaler", "equal_in_total", "mean_used", "peak_used"]
