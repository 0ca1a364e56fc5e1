"""The papers' topologies as PySpark queries, and the load they run on."""
