"""Running a workload under a load and a policy, and saying exactly what came of it."""
