"""The figures of a run, computed from what was recorded. Pure, but for rows_read, which reads checkpoints."""
