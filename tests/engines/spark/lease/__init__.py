"""Several drivers on one checkpoint."""
