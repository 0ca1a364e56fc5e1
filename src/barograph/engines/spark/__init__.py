"""The Spark engine: a Scala plug-in reports telemetry and carries out orders, and this package drives it."""
