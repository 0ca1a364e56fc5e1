"""The loop that turns a Snapshot into a Plan each cycle, and everything that decides when a change may happen."""
