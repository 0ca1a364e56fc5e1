"""The engine on real Spark: the embedded cluster, and what drives a running application."""
