"""A real Spark cluster on this machine: its processes, its nodes and their fences, and the record of each run."""
