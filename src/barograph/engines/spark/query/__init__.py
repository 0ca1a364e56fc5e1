"""One streaming query: its options, its checkpoint, its restarts after failures, and the repartition of its state."""
