"""The Spark engine: a small Scala plug-in is its hands and eyes, this package drives it."""
