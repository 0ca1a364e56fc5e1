"""Scenarios that are not used while the default policy is tuned; they are run at the end and reported separately.

Results on scenarios that a policy was tuned on prove little. This list was fixed before the tuning.
"""

HELD_OUT = (
    "autoscale-5-step",
    "autoscale-star",
    "chain-alpha",
    "chain-stages/s7-r4",
    "diurnal-two-peaks",
    "flash-crowd",
    "http-diurnal",
    "priority-2",
    "wordcount-random",
)
