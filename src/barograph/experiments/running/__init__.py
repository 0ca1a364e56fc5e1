"""A run of a workload on a real cluster, from start to end."""
