"""How a run of a query is started: built ahead, with room for all instances, in a size that fits."""
