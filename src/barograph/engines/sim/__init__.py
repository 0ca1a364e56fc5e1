"""The simulator: the same engine port as Spark, with a world that is computed."""
