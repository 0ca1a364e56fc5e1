"""Scale: from the forecast, how many instances each operator gets and how much CPU. One file per scaler."""

from barograph.scale.adaptive.scaler import Adaptive
from barograph.scale.cpu_share import CpuShare
from barograph.scale.fixed import Fixed, equal_in_total, mean_used, peak_used
from barograph.scale.measured import Measured
from barograph.scale.parallelism import Combine, Parallelism
from barograph.scale.protocol import Scaler
from barograph.scale.true_rate import TrueRate

__all__ = [
    "Adaptive",
    "Combine",
    "CpuShare",
    "Fixed",
    "Measured",
    "Parallelism",
    "Scaler",
    "TrueRate",
    "equal_in_total",
    "mean_used",
    "peak_used",
]
